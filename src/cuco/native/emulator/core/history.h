// The modification histories of sync words (internal to the core; words.h says what they are for).
#pragma once

#include "block.h"
#include "words.h"

#include <deque>
#include <string>
#include <vector>

namespace cuco::emu {

struct Version {
  uint64_t serial = 0;             // rising over all words of the run
  unsigned char value[16] = {};    // the whole word after this write
  uint16_t mask = 0;               // bytes of the word that were written
  bool rmw = false;                // continues the release sequence of the version before
  bool add = false;
  EmuScope scope = EMU_SYS;        // of the release
  int rank = -1;                   // of the writer
  uint32_t later = 0;              // additions ordered after this one, among those counted (read.cpp)
  int64_t number = 0;              // add: sum of all deltas so far; else: stores so far
  Event writer;
  Stamp stamp;                     // empty: relaxed without a fence before it
};

struct Seen { Event reader; uint64_t serial; };

struct Word {
  uint64_t address = 0;            // canonical
  uint32_t size = 0;
  WordId id = 0;
  std::deque<Version> versions;    // the first is what was there before anything is known
  std::vector<Seen> seen;          // reads by threads: nobody after them may read older versions
  uint64_t counted = 0;            // Version::later covers additions up to this serial
  int64_t added = 0, stored = 0;
  std::vector<Thread*> waiting;
  bool awaited = false;            // in awaited_words()
  Word* next = nullptr;            // another word in the same 16 bytes

  const Version& newest() const { return versions.back(); }
  uint16_t bytes_mask(uint64_t at, uint32_t bytes) const {
    return static_cast<uint16_t>(((1u << bytes) - 1) << (at - address));
  }
};

// The word that contains these bytes, made on first use from what memory holds; narrower ones in the way are merged. If
// memory has changed behind the history's back (a weak write), the history starts again from there.
Word& word_at(uint64_t address, uint32_t bytes);
Word* find_word(uint64_t address);                    // nullptr: no history here
bool refresh(Word& word);                             // notices weak writes; true if there was one

bool is_internal(uint64_t address);                   // words of NCCL's own protocols

// Appends what memory now holds as a new version and wakes the waiting threads.
Version& append(Word& word, uint16_t mask, const Event& writer, int rank);
void wake_waiters(Word& word);

// The version that a thread reads by policy, and what follows: ordering, coherence, trace (read.cpp).
const Version& first_read(Thread* t, Word& word);
const Version& version_with(const Word& word, uint64_t serial);                  // the newest one not younger
const Version* next_version(const Word& word, uint64_t serial, uint16_t mask);   // oldest one younger than serial
// waits: the thread's time depends on the read (a wait event of the trace).
void took(Thread* t, Word& word, const Version& version, EmuOrder order, EmuScope scope, uint32_t site,
          bool waits);
void publish(Thread* t, Version& version, EmuOrder order, EmuScope scope, bool internal);

// ---- words of the trace
struct WordRecord { int rank; std::string name; uint64_t address; };
WordRecord describe_word(WordId id);
bool newest_version(uint64_t address, WordId& word, int64_t& number);

// Words that threads wait for, and some that nobody waits for any more.
void await(Word& word, Thread* t);
std::vector<Word*>& awaited_words();

}  // namespace cuco::emu

// Counted work of a CTA, phase by phase, and the sync events of its threads (internal to the core). Kept in memory until
// the end of the run, because only then it is known which words anybody waited for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cuco::emu {

struct Block;
struct Thread;

enum class Sync : uint8_t { store, add, wait_count, wait_version };

struct SyncEvent {
  uint64_t position;   // progress within the phase
  Sync kind;
  uint32_t word;       // WordId
  int64_t value;       // version, delta or count
};

// The events of one thread in one phase.
struct Strand {
  std::vector<SyncEvent> events;
};

struct FinishedStrand {
  uint32_t thread;
  uint64_t total;
  std::vector<SyncEvent> events;
};

struct Remote { int peer; uint64_t written, read; };

struct FinishedPhase {
  uint32_t work = 0;            // index into the table of distinct work vectors
  uint64_t max_progress = 0;
  std::vector<Remote> remote;
  std::vector<FinishedStrand> strands;
};

class PhaseRecorder {
 public:
  void begin(Block& block);                       // a CTA starts
  void arrive(Thread* t);                         // t reaches a block-wide barrier, or ends
  void join(Block& block);                        // all have arrived: a phase may end here
  void end(Block& block);                         // the CTA has ended
  void event(Thread* t, Sync kind, uint32_t word, int64_t value);
  void drop_wait(Thread* t);                      // the wait recorded last was an iteration of a spin
  void remote(Block& block, int peer, uint64_t bytes, bool write);

  // Spins: counters as they were when a strong load returned, to take an iteration back.
  void mark(Block& block, Thread* t);
  bool take_back(Block& block, Thread* t, uint32_t iterations);

 private:
  void close(Block& block);
  void split_plain(Block& block);
  std::vector<FinishedPhase> done_;
  FinishedPhase open_;
  uint64_t phase_max_ = 0;      // greatest progress of a thread since the last join
  uint64_t plain_max_ = 0;      // the same, summed over the joins since the phase began
  uint32_t joins_ = 0;          // joins that the open phase has passed
  bool plain_ = true;           // no events and no remote traffic yet
  std::vector<uint64_t> counters_, dynamic_;            // what EmuBlock points to
  std::vector<uint64_t> at_join_, at_join_dynamic_;     // the same at the last join
};

extern uint64_t switch_count;   // suspensions of threads so far

// Everything that finished CTAs left, for finish_trace().
struct CtaPhases {
  uint64_t launch;
  int64_t cta;
  std::vector<FinishedPhase> phases;
};
std::vector<CtaPhases>& finished_ctas();
const std::vector<std::vector<uint64_t>>& distinct_work();

}  // namespace cuco::emu

// Which version a strong load returns, and what the reader learns from it.
#include "history.h"
#include "runtime.h"
#include "waits.h"

#include <cstring>

#include <algorithm>

namespace cuco::emu {
namespace {

constexpr size_t kMaxSeen = 64;
constexpr size_t kMaxChain = 512;

// Index of the oldest version that happens-before and earlier reads allow the thread to see.
size_t floor_index(Thread* t, const Word& word) {
  uint64_t serial = 0;
  if (t->extra)
    if (auto it = t->extra->seen.find(word.address); it != t->extra->seen.end()) serial = it->second;
  for (const Seen& seen : word.seen)
    if (seen.serial > serial && happens_before(seen.reader, t)) serial = seen.serial;
  size_t i = word.versions.size() - 1;
  while (i > 0 && word.versions[i].serial > serial && !happens_before(word.versions[i].writer, t)) i--;
  return i;
}

// A release of this scope and an acquire of that scope reach each other.
bool in_scope(Thread* t, const Version& version, EmuScope scope) {
  const EmuScope narrow = std::min(version.scope, scope);
  if (narrow == EMU_SYS) return true;
  if (narrow == EMU_GPU) return version.rank == t->cta().grid->launch.rank;
  return version.writer.agent == t->cta().agent;
}

bool ordered(const Version& first, const Version& second) {
  if (second.stamp) return second.stamp.contains(first.writer);
  return first.writer.agent == second.writer.agent && first.writer.thread == second.writer.thread &&
         first.writer.tick <= second.writer.tick;
}

// Brings Version::later up to date for the release sequence [first, total]: each addition is compared once with every
// earlier one, however often the sequence is read.
void count_later(Word& word, size_t first, size_t total) {
  for (size_t j = first; j <= total; j++) {
    const Version& later = word.versions[j];
    if (later.serial <= word.counted) continue;
    if (later.add)
      for (size_t i = first; i < j; i++)
        if (word.versions[i].add && ordered(word.versions[i], later)) word.versions[i].later++;
  }
  word.counted = std::max(word.counted, word.versions[total].serial);
}

size_t index_of(const Word& word, uint64_t serial) {
  auto it = std::lower_bound(word.versions.begin(), word.versions.end(), serial,
                             [](const Version& v, uint64_t s) { return v.serial < s; });
  return static_cast<size_t>(it - word.versions.begin());
}

// How far a thread has learnt a word's versions without a gap, so that reading a long sequence one version at a time does
// not look at all of it each time. What it heard with relaxed loads counts for relaxed loads only. Kept beside the newest
// version it has seen, under keys that no address has.
uint64_t& learnt_until(Thread* t, const Word& word, bool acquires) {
  return t->more().seen[word.address | (acquires ? 1ull << 63 : 1ull << 62)];
}

// The release sequence around version `last`, where it is short enough for its additions to be compared.
struct Sequence {
  bool compare = false;    // there are later additions, and not too many in all
  size_t adds_begin = 0, adds = 0, taken = 0;
};

Sequence sequence_of(Word& word, size_t last) {
  Sequence s;
  size_t first = last, total = last;
  while (first > 0 && word.versions[first].rmw && last - first <= kMaxChain) first--;
  while (total + 1 < word.versions.size() && word.versions[total + 1].add && total - first <= kMaxChain) total++;
  if (total == last || total - first >= kMaxChain) return s;
  s.compare = true;
  s.adds_begin = first + (word.versions[first].rmw ? 0 : 1);
  s.taken = last + 1 - s.adds_begin;
  count_later(word, s.adds_begin, total);
  for (size_t i = s.adds_begin; i <= total; i++) s.adds += word.versions[i].add;
  return s;
}

// What the release sequence that ends with version `last` publishes. Additions commute: of n concurrent ones, a reader
// that sees k < n knows only of those that are among the first k in every order; one is not if it may come after k others.
void collect(Thread* t, Word& word, size_t last, EmuScope scope, bool acquires, Clock& clock) {
  uint64_t& learnt = learnt_until(t, word, acquires);
  const size_t known = index_of(word, learnt + 1);
  size_t first = last;
  while (first > known && word.versions[first].rmw) first--;
  const Sequence s = sequence_of(word, last);
  bool gap = false;
  for (size_t i = first; i <= last; i++) {
    const Version& version = word.versions[i];
    if (version.stamp) {
      const bool late = s.compare && version.add && s.adds - 1 - version.later >= s.taken;
      if (late || !in_scope(t, version, scope)) gap = true;
      else if (!happens_before(version.stamp.event, t)) version.stamp.join_into(clock);
    } else if (version.writer && !happens_before(version.writer, t)) {
      gap = true;
    }
    if (!gap) learnt = std::max(learnt, version.serial);
  }
}

uint64_t value_of(const Word& word, const Version& version) {
  uint64_t value = 0;
  std::memcpy(&value, version.value, std::min(word.size, 8u));
  return value;
}

// Whether the version tells the thread of a write that it did not know of. A count depends on every addition in it, not
// only on the last one: which came last is chance.
bool depends(Thread* t, const Word& word, size_t index) {
  if (!happens_before(word.versions[index].writer, t)) return true;
  const uint64_t learnt = learnt_until(t, word, true);
  for (size_t steps = 0; index > 1 && word.versions[index].add && steps < kMaxChain; steps++) {
    if (word.versions[index - 1].serial <= learnt) return false;
    if (!happens_before(word.versions[--index].writer, t)) return true;
  }
  return false;
}

}  // namespace

const Version& first_read(Thread* t, Word& word) {
  if (settings().reads == ReadPolicy::newest || word.versions.size() == 1) return word.newest();
  return word.versions[floor_index(t, word)];
}

const Version* next_version(const Word& word, uint64_t serial, uint16_t mask) {
  for (size_t i = index_of(word, serial + 1); i < word.versions.size(); i++)
    if (word.versions[i].mask & mask) return &word.versions[i];
  return nullptr;
}

const Version& version_with(const Word& word, uint64_t serial) {
  const size_t i = index_of(word, serial + 1);
  return word.versions[i ? i - 1 : 0];
}

void took(Thread* t, Word& word, const Version& version, EmuOrder order, EmuScope scope, uint32_t site,
          bool waits) {
  uint64_t& seen = t->more().seen[word.address];
  const bool fresh = version.serial > seen;
  seen = std::max(seen, version.serial);
  if (&version == &word.versions.front()) return;
  const bool news = fresh && depends(t, word, index_of(word, version.serial));
  if (news) {
    if (waits) t->cta().phases.event(t, version.add ? Sync::wait_count : Sync::wait_version, word.id, version.number);
    if (word.seen.size() >= kMaxSeen) word.seen.erase(word.seen.begin());
    word.seen.push_back({event_of(t), version.serial});
  }
  const bool internal = is_internal(word.address);
  if (waits && version.writer && !internal) note_wait(t, site, word.address, value_of(word, version), version.writer.agent);
  const bool acquires = internal || order == EMU_ACQUIRE || order == EMU_ACQ_REL || order == EMU_SC;
  if (!fresh && !acquires) return;
  Clock clock;
  collect(t, word, index_of(word, version.serial), internal ? EMU_SYS : acquires ? scope : EMU_SYS, acquires, clock);
  if (clock.empty()) return;
  if (acquires) learn(t, clock);
  else t->more().relaxed.join(clock);
}

void publish(Thread* t, Version& version, EmuOrder order, EmuScope scope, bool internal) {
  version.scope = internal ? EMU_SYS : scope;
  if (internal || order == EMU_RELEASE || order == EMU_ACQ_REL || order == EMU_SC) {
    version.stamp = release_stamp(t);
    version.writer = version.stamp.event;
  } else if (t->extra && t->extra->fence) {
    version.stamp = t->extra->fence;
    version.scope = t->extra->fence_scope;
  }
}

}  // namespace cuco::emu

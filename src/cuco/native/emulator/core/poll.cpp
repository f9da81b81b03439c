#include "poll.h"

#include "runtime.h"

#include <algorithm>

namespace cuco::emu {
namespace {

constexpr size_t kMaxPolls = 32;                               // places remembered per thread
constexpr uint64_t kFreeTurns[] = {64, 4096, 262144};          // granted one after the other
constexpr size_t kManyWaiting = 64;                            // with more threads waiting, the last grant is left out

}  // namespace

Poll& poll_again(Thread* t, uint64_t address, uint32_t site) {
  auto& polls = t->more().polls;
  for (Poll& poll : polls)
    if (poll.address == address && poll.site == site) return poll;
  if (polls.size() >= kMaxPolls) polls.erase(polls.begin());
  Poll& fresh = polls.emplace_back();
  fresh.address = address;
  fresh.site = site;
  return fresh;
}

Poll& poll_at(Thread* t, uint64_t address, uint32_t site) {
  t->more().strong_calls++;
  return poll_again(t, address, site);
}

Visit classify(Thread* t, Poll& poll) {
  if (!poll.call) return Visit::first;
  const uint64_t cost = t->progress - poll.returned_at;
  const bool alone = poll.call + 1 == t->extra->strong_calls;
  if (cost != poll.cycle) {
    poll.cycle = cost;
    poll.spinning = false;
    return Visit::first;
  }
  if (!alone) return Visit::scan;
  if (poll.free_turns) {
    poll.free_turns--;
    return Visit::free_turn;
  }
  PhaseRecorder& phases = t->cta().phases;
  if (phases.take_back(t->cta(), t, poll.spinning ? 1 : 2)) phases.drop_wait(t);
  poll.spinning = true;
  return Visit::spin;
}

void leave_poll(Thread* t, Poll& poll, uint64_t serial) {
  if (serial != poll.seen) poll.free_turns = poll.grants = 0;
  poll.seen = serial;
  poll.returned_at = t->progress;
  poll.call = t->extra->strong_calls;
  t->cta().phases.mark(t->cta(), t);
}

void wait_for_word(Thread* t, Word& word, uint32_t site) {
  await(word, t);
  t->wait_address = word.address;
  suspend(t, Wait::word, site);
}

namespace {

// Whether a thread that waits for a change may go on: without one (free turns), or because one was withheld from it
// (policy oldest).
bool let_go(Thread* t, const Word* word, bool timed, bool many) {
  Poll& poll = poll_again(t, t->wait_address, t->wait_site);
  const size_t last = std::size(kFreeTurns) - (many ? 1 : 0);
  const bool withheld = word && word->newest().serial > poll.seen;
  if (!withheld && (timed ? !t->extra->read_clock : poll.grants >= last)) return false;
  if (!withheld && !timed) poll.free_turns = kFreeTurns[poll.grants++];
  t->extra->read_clock = false;
  t->extra->released = true;
  make_ready(t);
  return true;
}

}  // namespace

bool release_pollers(bool timed) {
  size_t waiting = 0, released = 0;
  for (const Word* word : awaited_words()) waiting += word->waiting.size();
  for (const Block* block : resident_blocks()) waiting += block->shared_polls.size();
  const bool many = waiting > kManyWaiting;
  for (Word* word : awaited_words())
    released += std::erase_if(word->waiting, [&](Thread* t) { return let_go(t, word, timed, many); });
  for (Block* block : resident_blocks())
    released += std::erase_if(block->shared_polls,
                              [&](const SharedPoll& p) { return let_go(p.thread, nullptr, timed, many); });
  return released > 0;
}

}  // namespace cuco::emu

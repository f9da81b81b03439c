// Spins (internal to the core). A thread that loads again at the same site and address, with nothing strong in between
// and an iteration that cost the same as the one before, spins: it is suspended instead, until a next version exists, and
// its iterations are taken back from the counters. A first repetition gets the same answer again, because it may be an
// outer loop that comes by; only the cost tells.
//
// A wait that is satisfied already, repeated in a loop of constant cost, looks like a spin. So when nothing else can run,
// suspended threads get free turns with the old answer before anything is called a deadlock.
#pragma once

#include "history.h"

namespace cuco::emu {

enum class Visit {
  first,      // or after other work: answer by policy
  spin,       // suspend until there is something new
  scan,       // one of several polled words: yield if there is nothing new
  free_turn,  // a spin that may go on with the old answer
};

// The thread's poll at this place; counts the strong operation.
Poll& poll_at(Thread* t, uint64_t address, uint32_t site);
// What this visit is; takes a spin's iterations back.
Visit classify(Thread* t, Poll& poll);
// Before the operation returns. `poll` must be looked up again after a suspension (poll_again).
void leave_poll(Thread* t, Poll& poll, uint64_t serial);
Poll& poll_again(Thread* t, uint64_t address, uint32_t site);
void wait_for_word(Thread* t, Word& word, uint32_t site);

}  // namespace cuco::emu

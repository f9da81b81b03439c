// State of the running process that several of the core's files share (internal to the core).
#pragma once

#include "block.h"
#include "finding.h"
#include "scheduler.h"

namespace cuco::emu {

struct HostFiber {
  int rank = -1;
  std::string name;
  std::function<void()> body;
  std::function<bool()> predicate;              // empty: runnable, or polling if `yielded`
  std::function<std::string()> describe;
  bool yielded = false, done = false;
  uint64_t yielded_at = 0;                      // Scheduler::progress() then
  struct Exceptions { void* caught = nullptr; unsigned uncaught = 0; } exceptions;   // __cxa_eh_globals
  void* context = nullptr;
  char* top = nullptr;
};

struct Scheduler::Impl {
  std::vector<std::unique_ptr<HostFiber>> hosts;
  std::vector<Actor*> actors;
  std::vector<Block*> queue;        // blocks with threads that can run
  std::vector<Block*> yielding;     // blocks with yielded threads
  std::vector<bool> held;
  HostFiber* host = nullptr;        // the running one
  int actor_rank = -1;              // of the running actor
  bool stopped = false;             // fail() was called
  uint64_t forced = 0, forced_progress = ~0ull;   // idle rounds without progress

  struct Entity { HostFiber* host = nullptr; Block* block = nullptr; Actor* actor = nullptr; };
  std::vector<Entity> round;        // of the current round
};

extern void* scheduler_context;     // where a fiber goes that gives up the thread of control
[[noreturn]] void leave_run();      // fail(): back to Scheduler::run(), for good
void enqueue(Block& block);         // the block has threads that can run
void add_yielding(Block& block);    // the block has yielded threads

void check_slice(const GridLaunch& launch);   // slice.cpp

// Writes who waits for what into the finding of a deadlock (deadlock.cpp).
Finding explain_deadlock(const Scheduler::Impl& state);

// Stuck: threads blocked on words whose memory a weak write has changed (words.cpp); threads that spin and have not yet
// been given a stale answer, or (timed) that read the clock while they spin (spin.cpp). True if a thread can run again.
bool recheck_words();
bool release_pollers(bool timed);

}  // namespace cuco::emu

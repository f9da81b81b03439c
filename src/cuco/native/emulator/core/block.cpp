#include "block.h"

#include "runtime.h"

namespace cuco::emu {

Thread* running = nullptr;
void* scheduler_context = nullptr;

namespace {

constexpr uint64_t kSlice = 1u << 22;   // progress after which a thread without waits lets others run

void thread_main();

// A thread that has not begun gets a stack of its own.
Thread* start_thread(Block& block) {
  Thread* t = &block.threads[block.unstarted++];
  t->stack = block.stacks->get();
  t->sp = block.stacks->prepare(t->stack, thread_main);
  return t;
}

// The next thread of the block to run, taken off its list; nullptr when all wait.
Thread* next_thread(Block& block) {
  for (;;) {
    if (!block.ready.empty()) return block.ready.pop();
    if (block.unstarted < block.nthreads) return start_thread(block);
    if (block.active_meetings && release_active_masks(block)) continue;
    if (!block.shared_polls.empty() && wake_shared_polls(block)) continue;
    return nullptr;
  }
}

void forget_extra(Thread* t) {
  Block& block = t->cta();
  if (t->extra->pending) {
    block.learnt.join(*t->extra->pending);
    block.pending_threads--;
  }
  finish_copies(block, t);
  delete t->extra;
  t->extra = nullptr;
}

// Everything that follows from a thread's end, except what becomes of its stack.
void thread_ended(Thread* t) {
  Block& block = t->cta();
  block.phases.arrive(t);
  t->done = true;
  block.live--;
  block.warps[t->warp].live &= ~(1u << t->lane);
  if (t->extra) forget_extra(t);
  if (block.active_barriers) barriers_after_exit(block, t);
  if (!block.warps[t->warp].meetings.empty()) meetings_after_exit(block, t);
}

// Where control goes after a thread's end: an unstarted thread takes over the stack, which costs no switch.
Thread* successor(Thread* t) {
  Block& block = t->cta();
  if (block.ready.empty() && block.unstarted < block.nthreads) {
    Thread* n = &block.threads[block.unstarted++];
    n->stack = t->stack;
    return n;
  }
  return nullptr;
}

[[noreturn]] void switch_from_ended(Thread* t) {
  Block& block = t->cta();
  Thread* n = next_thread(block);   // before the stack is free: a new context on it would overwrite this frame
  block.stacks->put(t->stack);
  running = n;
  void* nowhere;
  cuco_emu_switch(&nowhere, n ? n->sp : scheduler_context);
  __builtin_unreachable();
}

void thread_main() {
  for (;;) {
    Thread* t = running;
    Grid* grid = t->cta().grid;
    grid->launch.kernel->entry(t, grid->params);
    t = running;
    thread_ended(t);
    Thread* n = successor(t);
    if (!n) switch_from_ended(t);
    running = n;
  }
}

void switch_away(Thread* t) {
  Block& block = t->cta();
  Thread* n = next_thread(block);
  if (n == t) return;
  running = n;
  cuco_emu_switch(&t->sp, n ? n->sp : scheduler_context);
}

}  // namespace

void run_block(Block& block) {
  Thread* t = next_thread(block);
  if (!t) return;
  running = t;
  cuco_emu_switch(&scheduler_context, t->sp);
  running = nullptr;
}

void make_ready(Thread* t) {
  Block& block = t->cta();
  block.ready.push(t);
  if (!block.queued) enqueue(block);
}

void suspend(Thread* t, Wait why, uint32_t site) {
  t->wait = why;
  t->wait_site = site;
  switch_count++;
  switch_away(t);
  t->wait = Wait::none;
}

void yield_thread(Thread* t, uint32_t site, uint64_t wake_at) {
  Block& block = t->cta();
  if (wake_at) block.wake_at = block.wake_at ? std::min(block.wake_at, wake_at) : wake_at;
  if (block.yielded.empty()) add_yielding(block);
  block.yielded.push(t);
  block.yielded_at = scheduler().progress();
  suspend(t, Wait::yield, site);
}

void end_thread_now(Thread* t) {
  thread_ended(t);
  switch_from_ended(t);
}

EmuThread* current_thread() { return running; }
const EmuModule& module_of(const EmuThread* self) {
  return *static_cast<const Thread*>(self)->cta().grid->launch.module->module;
}

}  // namespace cuco::emu

using namespace cuco::emu;

extern "C" void emu_exit(EmuThread* self) { end_thread_now(thread_of(self)); }

extern "C" void emu_out_of_fuel(EmuThread* self, uint32_t site) {
  Thread* t = thread_of(self);
  if (t->progress > settings().fuel)
    fail_at(self, site, "timeout", "instruction-budget",
            "a thread has executed " + std::to_string(t->progress) +
                " instructions in one launch without ending; its loop waits for something that never comes, or reads "
                "memory that the compiler keeps in a register");
  t->fuel = t->progress + kSlice;
  scheduler().made_progress();
  yield_thread(t, site);
}

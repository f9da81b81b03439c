#include "scheduler.h"

#include "memory.h"
#include "runtime.h"
#include "trace.h"

#include <algorithm>
#include <cstdlib>
#include <cxxabi.h>
#include <exception>

namespace cuco::emu {
namespace {

constexpr uint64_t kSlowRounds = 256;   // how long a slow CTA waits on average while others go on
constexpr size_t kHostStack = 8ull << 20;
constexpr uint64_t kCyclesPerRound = 1000;
constexpr uint64_t kIdleRounds = 48;        // each doubles the clock's jump, so every timeout passes

Settings job;
std::unique_ptr<Memory> the_memory;
std::unique_ptr<Scheduler> the_scheduler;
void* process_context = nullptr;            // of Scheduler::run()

void host_main() {
  Scheduler::Impl& state = scheduler().impl();
  HostFiber* fiber = state.host;
  try {
    fiber->body();
  } catch (const std::exception& error) {
    fail({.kind = "crash", .rule = "host-exception", .rank = fiber->rank,
          .message = fiber->name + " ended with an uncaught C++ exception: " + error.what()});
  } catch (...) {
    fail({.kind = "crash", .rule = "host-exception", .rank = fiber->rank,
          .message = fiber->name + " ended with an uncaught C++ exception"});
  }
  fiber->done = true;
  void* nowhere;
  cuco_emu_switch(&nowhere, scheduler_context);
}

bool can_run(const HostFiber& fiber, uint64_t progress) {
  if (fiber.done) return false;
  if (fiber.predicate) return fiber.predicate();
  return !fiber.yielded || fiber.yielded_at != progress;
}

// The C++ runtime keeps the exceptions being handled per OS thread; each host fiber has its own.
void exchange_exceptions(HostFiber& fiber) {
  auto* active = reinterpret_cast<HostFiber::Exceptions*>(abi::__cxa_get_globals());
  std::swap(*active, fiber.exceptions);
}

void run_host(HostFiber& fiber) {
  Scheduler& s = scheduler();
  if (!fiber.yielded) s.made_progress();
  fiber.predicate = nullptr;
  fiber.describe = nullptr;
  fiber.yielded = false;
  s.impl().host = &fiber;
  exchange_exceptions(fiber);
  cuco_emu_switch(&scheduler_context, fiber.context);
  exchange_exceptions(fiber);
  s.impl().host = nullptr;
  if (fiber.done && fiber.top) {
    unmap_stack(fiber.top, kHostStack);
    fiber.top = nullptr;
    s.made_progress();
  }
}

void wake_yielded(Scheduler::Impl& state, bool all) {
  Scheduler& s = scheduler();
  std::erase_if(state.yielding, [&](Block* block) {
    if (!all && block->yielded_at == s.progress() && !(block->wake_at && block->wake_at <= s.now())) return false;
    block->wake_at = 0;
    block->ready.splice(block->yielded);
    if (!block->queued) enqueue(*block);
    return true;
  });
}

// Everything that is ready, in the seed's order.
void gather(Scheduler::Impl& state) {
  Scheduler& s = scheduler();
  auto& round = state.round;
  round.clear();
  wake_yielded(state, false);
  dispatch_all();
  for (auto& host : state.hosts)
    if (!s.held(host->rank) && can_run(*host, s.progress())) round.push_back({.host = host.get()});
  for (size_t i = 0; i < state.actors.size(); i++)
    if (!s.held(state.actors[i]->rank()) && state.actors[i]->ready()) round.push_back({.actor = state.actors[i]});
  std::erase_if(state.queue, [&](Block* block) {
    // Slow ones come back by themselves, too: an actor may be busy for ever with what one of them has half written.
    if (block->slow && s.random().below(kSlowRounds) == 0) block->slow = false;
    if (block->slow || s.held(block->grid->launch.rank)) return false;
    round.push_back({.block = block});
    return true;
  });
  if (settings().shuffle)
    for (size_t i = round.size(); i > 1; i--) std::swap(round[i - 1], round[s.random().below(i)]);
}

void run_entity(Scheduler::Impl& state, size_t index) {
  Scheduler& s = scheduler();
  const Scheduler::Impl::Entity entity = state.round[index];
  if (entity.host) {
    if (can_run(*entity.host, s.progress())) run_host(*entity.host);
  } else if (entity.actor) {
    if (!entity.actor->ready()) return;
    state.actor_rank = entity.actor->rank();
    s.made_progress();
    entity.actor->step();
    state.actor_rank = -1;
  } else if (entity.block) {
    Block& block = *entity.block;
    run_block(block);
    block.queued = false;
    if (block.live == 0) block_ended(&block);
    else if (block.runnable()) enqueue(block);
  }
}

bool step_lazy_actor(Scheduler::Impl& state) {
  Scheduler& s = scheduler();
  std::vector<Actor*> willing;
  for (Actor* actor : state.actors)
    if (!s.held(actor->rank()) && actor->ready_when_stuck()) willing.push_back(actor);
  if (willing.empty()) return false;
  Actor* actor = willing[s.random().below(willing.size())];
  state.actor_rank = actor->rank();
  s.made_progress();
  actor->step();
  state.actor_rank = -1;
  return true;
}

bool release_slow_cta(Scheduler::Impl& state) {
  std::vector<Block*> slow;
  for (Block* block : state.queue)
    if (block->slow && !scheduler().held(block->grid->launch.rank)) slow.push_back(block);
  if (slow.empty()) return false;
  slow[scheduler().random().below(slow.size())]->slow = false;
  return true;
}

bool release_held_rank(Scheduler::Impl& state) {
  Scheduler& s = scheduler();
  for (size_t rank = 0; rank < state.held.size(); rank++) {
    if (!state.held[rank]) continue;
    s.release(static_cast<int>(rank));
    if (s.on_release) s.on_release(static_cast<int>(rank));
    return true;
  }
  return false;
}

// Pollers that nothing new has reached run anyway, with the clock moved on: they may count or time out.
bool force_pollers(Scheduler::Impl& state) {
  Scheduler& s = scheduler();
  if (state.forced_progress != s.progress()) {
    state.forced = 0;
    state.forced_progress = s.progress();
  }
  if (++state.forced > kIdleRounds) return false;
  s.advance_clock(kCyclesPerRound << std::min<uint64_t>(state.forced, 40));
  const size_t before = state.queue.size();
  wake_yielded(state, true);
  bool any = state.queue.size() != before;
  for (auto& host : state.hosts)
    if (host->yielded && !host->done && !s.held(host->rank)) {
      host->yielded_at = ~0ull;
      any = true;
    }
  return release_pollers(true) || any;
}

bool finished(const Scheduler::Impl& state) {
  for (const auto& host : state.hosts)
    if (!host->done) return false;
  for (Actor* actor : state.actors)
    if (!actor->idle()) return false;
  return open_grids() == 0;
}

// Nothing is ready. True if something has been found to go on with.
bool unstick(Scheduler::Impl& state) {
  // Pollers come last: thousands of turns of a spin are dear, and whatever else goes on ends most of them.
  return recheck_words() || step_lazy_actor(state) || release_slow_cta(state) || release_held_rank(state) ||
         release_pollers(false) || force_pollers(state);
}

void scheduler_main() {
  Scheduler& s = scheduler();
  Scheduler::Impl& state = s.impl();
  for (;;) {
    gather(state);
    if (state.round.empty()) {
      if (finished(state)) break;
      if (unstick(state)) continue;
      if (dispatch_all()) continue;
      fail(explain_deadlock(state));
    }
    s.count_round(kCyclesPerRound);
    if (s.rounds() > settings().host_switches)
      fail({.kind = "timeout", .rule = "rounds",
            .message = "the run has not ended after " + std::to_string(s.rounds()) + " scheduler rounds"});
    for (size_t i = 0; i < state.round.size(); i++) run_entity(state, i);
  }
  leave_run();
}

}  // namespace

void leave_run() {
  void* nowhere;
  cuco_emu_switch(&nowhere, process_context);
  __builtin_unreachable();
}

void enqueue(Block& block) {
  block.queued = true;
  // Nothing says how fast a CTA is: what others may rely on is only what they have waited for.
  block.slow = settings().slow_ctas && scheduler().random().below(100) < settings().slow_ctas;
  scheduler().impl().queue.push_back(&block);
}

void add_yielding(Block& block) { scheduler().impl().yielding.push_back(&block); }

Actor::Actor(int rank) : rank_(rank) { scheduler().impl().actors.push_back(this); }

Actor::~Actor() {
  if (!the_scheduler) return;
  Scheduler::Impl& state = scheduler().impl();
  std::erase(state.actors, this);
  for (auto& entity : state.round)
    if (entity.actor == this) entity.actor = nullptr;
}

Scheduler::Scheduler(const Settings& s) : random_(s.seed), impl_(std::make_unique<Impl>()) {
  impl_->held.resize(static_cast<size_t>(s.ranks));
  for (int rank : s.held_ranks) hold(rank);
}

Scheduler::~Scheduler() = default;

void Scheduler::spawn(int rank, std::string name, std::function<void()> body) {
  auto fiber = std::make_unique<HostFiber>();
  fiber->rank = rank;
  fiber->name = std::move(name);
  fiber->body = std::move(body);
  fiber->top = map_stack(kHostStack);
  fiber->context = prepare_context(fiber->top, host_main);
  impl_->hosts.push_back(std::move(fiber));
}

bool Scheduler::run() {
  char* top = map_stack(kHostStack);
  cuco_emu_switch(&process_context, prepare_context(top, scheduler_main));
  unmap_stack(top, kHostStack);
  finish_trace();
  return !impl_->stopped;
}

void Scheduler::wait_until(std::function<bool()> predicate, std::function<std::string()> describe) {
  HostFiber* fiber = impl_->host;
  if (!fiber) fail({.kind = "crash", .rule = "internal", .message = "a wait outside a host fiber"});
  if (predicate()) return;
  fiber->predicate = std::move(predicate);
  fiber->describe = std::move(describe);
  cuco_emu_switch(&fiber->context, scheduler_context);
}

void Scheduler::yield() {
  HostFiber* fiber = impl_->host;
  if (!fiber) return;
  fiber->yielded = true;
  fiber->yielded_at = progress_;
  cuco_emu_switch(&fiber->context, scheduler_context);
}

int Scheduler::current_rank() const {
  if (running) return running->cta().grid->launch.rank;
  if (impl_->host) return impl_->host->rank;
  return impl_->actor_rank;
}

bool Scheduler::on_host_fiber() const { return impl_->host != nullptr; }

bool Scheduler::quiet() const {
  return open_grids() == 0 && std::all_of(impl_->actors.begin(), impl_->actors.end(), [](Actor* a) { return a->idle(); });
}

void Scheduler::hold(int rank) {
  if (rank >= 0 && static_cast<size_t>(rank) < impl_->held.size()) impl_->held[static_cast<size_t>(rank)] = true;
}
void Scheduler::release(int rank) {
  if (rank >= 0 && static_cast<size_t>(rank) < impl_->held.size()) impl_->held[static_cast<size_t>(rank)] = false;
}
bool Scheduler::held(int rank) const {
  return rank >= 0 && static_cast<size_t>(rank) < impl_->held.size() && impl_->held[static_cast<size_t>(rank)];
}

void start(const Settings& s) {
  job = s;
  the_memory = std::make_unique<Memory>(s.ranks, s.machine.memory, s.poison);
  the_scheduler = std::make_unique<Scheduler>(job);
  install_fault_handler();
}

const Settings& settings() { return job; }
Scheduler& scheduler() { return *the_scheduler; }
Memory& memory() { return *the_memory; }

}  // namespace cuco::emu

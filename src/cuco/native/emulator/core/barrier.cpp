// bar.sync, bar.arrive, bar.red: block-wide and counted barriers.
#include "block.h"
#include "finding.h"
#include "runtime.h"

namespace cuco::emu {
namespace {

void finish_generation(Barrier& bar) {
  uint32_t& result = bar.result[bar.generation & 1];
  if (bar.op == EMU_RED_AND) result = bar.red_count == bar.red_threads;
  else if (bar.op == EMU_RED_OR) result = bar.red_count != 0;
  else result = bar.red_count;
  bar.red_count = bar.red_threads = 0;
  bar.generation++;
}

// All have arrived. The caller of the last arrival, if it waits too, is not in the list.
void release(Block& block, uint32_t id, Thread* last) {
  Barrier& bar = block.barriers[id];
  finish_generation(bar);
  if (bar.count == 0) {
    join_all(block);
    block.phases.join(block);
  } else {
    if (last) learn(last, bar.learnt);
    for (Thread* t = bar.waiting.head; t; t = t->next) learn(t, bar.learnt);
    bar.learnt = Clock();
    std::fill(bar.lanes.begin(), bar.lanes.end(), 0u);
  }
  block.ready.splice(bar.waiting);
  bar.arrived = 0;
  bar.active = false;
  block.active_barriers &= ~(1u << id);
  scheduler().made_progress();
  if (!block.queued && block.runnable()) enqueue(block);
}

// Counted barriers count whole warps: when the last live lane of a warp arrives, its missing lanes count too.
void count_lane(Block& block, Barrier& bar, Thread* t) {
  if (bar.lanes.empty()) bar.lanes.resize(block.nwarps);
  uint32_t& lanes = bar.lanes[t->warp];
  const uint32_t live = block.warps[t->warp].live;
  lanes |= 1u << t->lane;
  bar.arrived++;
  if ((lanes & live) != live) return;
  bar.arrived += 32 - static_cast<uint32_t>(__builtin_popcount(lanes));
  lanes = 0;
}

void check_use(Thread* t, const Barrier& bar, uint32_t id, uint32_t count, uint32_t site) {
  if (id >= kBarriers)
    fail_at(t, site, "crash", "barrier-id", "barrier " + std::to_string(id) + " does not exist (0 to 15 do)");
  if (count % 32)
    fail_at(t, site, "crash", "barrier-count",
            "barrier " + std::to_string(id) + " with " + std::to_string(count) +
                " threads: the count must be a multiple of 32");
  if (bar.active && bar.count != count)
    fail_at(t, site, "crash", "barrier-count",
            "barrier " + std::to_string(id) + " is in use with " + std::to_string(bar.count) + " threads at " +
                describe_site(module_of(t), bar.site) + " and with " + std::to_string(count) +
                " here (0 means all threads)");
}

// True when this arrival completes the barrier.
bool arrive(Thread* t, uint32_t id, uint32_t count, uint32_t site) {
  Block& block = t->cta();
  Barrier& bar = block.barriers[std::min(id, kBarriers - 1)];
  if (id >= kBarriers || count || (bar.active && bar.count)) check_use(t, bar, id, count, site);
  if (!bar.active) {
    bar.active = true;
    bar.count = count;
    bar.site = site;
    block.active_barriers |= 1u << id;
  }
  if (count == 0) {
    block.phases.arrive(t);
    return ++bar.arrived >= block.live;
  }
  release_stamp(t).join_into(bar.learnt);
  count_lane(block, bar, t);
  return bar.arrived >= count;
}

void sync(Thread* t, uint32_t id, uint32_t count, uint32_t site) {
  if (arrive(t, id, count, site)) {
    release(t->cta(), id, t);
    return;
  }
  t->cta().barriers[id].waiting.push(t);
  t->wait_detail = static_cast<uint8_t>(id);
  suspend(t, Wait::barrier, site);
}

}  // namespace

void barriers_after_exit(Block& block, Thread* t) {
  for (uint32_t id = 0; id < kBarriers; id++) {
    Barrier& bar = block.barriers[id];
    if (!bar.active) continue;
    if (bar.count == 0) {
      if (block.live && bar.arrived >= block.live) release(block, id, nullptr);
      continue;
    }
    uint32_t& lanes = bar.lanes[t->warp];
    const uint32_t live = block.warps[t->warp].live;
    if (!lanes || !live || (lanes & live) != live) continue;
    bar.arrived += 32 - static_cast<uint32_t>(__builtin_popcount(lanes));
    lanes = 0;
    if (bar.arrived >= bar.count) release(block, id, nullptr);
  }
}

}  // namespace cuco::emu

using namespace cuco::emu;

extern "C" void emu_bar_sync(EmuThread* self, uint32_t id, uint32_t count, uint32_t site) {
  sync(thread_of(self), id, count, site);
}

extern "C" void emu_bar_arrive(EmuThread* self, uint32_t id, uint32_t count, uint32_t site) {
  Thread* t = thread_of(self);
  if (arrive(t, id, count, site)) release(t->cta(), id, nullptr);
}

extern "C" uint32_t emu_bar_red(EmuThread* self, uint32_t id, uint32_t count, EmuBarRed op, uint32_t predicate,
                                uint32_t site) {
  Thread* t = thread_of(self);
  Barrier& bar = t->cta().barriers[std::min(id, kBarriers - 1)];
  bar.red_threads++;
  bar.red_count += predicate != 0;
  bar.op = op;
  const uint32_t generation = bar.generation;
  sync(t, id, count, site);
  return bar.result[generation & 1];
}

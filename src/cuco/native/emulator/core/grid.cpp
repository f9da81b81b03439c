#include "grid.h"

#include "finding.h"
#include "memory.h"
#include "runtime.h"
#include "trace.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace cuco::emu {
namespace {

constexpr uint64_t kWorkspace = 4096;    // of a cooperative grid

struct Sm { uint32_t threads = 0, blocks = 0, registers = 0, shared = 0; };

struct Device {
  std::vector<Sm> sms;
  std::vector<std::unique_ptr<Grid>> grids;   // by priority, then submission
  uint32_t resident_threads = 0, resident_ctas = 0;
  bool changed = false;                       // something to dispatch since the last try
};

std::vector<Device> devices;
std::vector<Block*> resident;
uint64_t launches = 0, open = 0;
AccessObserver* observer = nullptr;
std::vector<std::unique_ptr<Block>> spare_blocks;

Device& device(int rank) {
  if (devices.empty()) devices.resize(static_cast<size_t>(settings().ranks));
  Device& d = devices[static_cast<size_t>(rank)];
  if (d.sms.empty()) d.sms.resize(settings().machine.sms);
  return d;
}

uint32_t round_up(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit * unit; }

// What one CTA takes of an SM. Registers are given out per warp in units of 256, shared memory in units of 128 bytes.
Sm demand(const EmuKernel& kernel, uint32_t threads, uint32_t registers, uint32_t dynamic_shared) {
  const uint32_t warps = (threads + 31) / 32;
  const uint32_t fixed = round_up(kernel.static_shared, std::max<uint32_t>(kernel.dynamic_align, 16));
  return {warps * 32, 1, round_up(warps, 4) * round_up(std::max<uint32_t>(registers, 1), 8) * 32,
          round_up(fixed + dynamic_shared + settings().machine.shared_reserved, 128)};
}

bool fits(const Sm& used, const Sm& need) {
  const MachineLimits& m = settings().machine;
  return used.threads + need.threads <= m.threads_per_sm && used.blocks + need.blocks <= m.blocks_per_sm &&
         used.registers + need.registers <= m.registers_per_sm && used.shared + need.shared <= m.shared_per_sm;
}

void take(Sm& sm, const Sm& need, int sign) {
  sm.threads += static_cast<uint32_t>(sign) * need.threads;
  sm.blocks += static_cast<uint32_t>(sign) * need.blocks;
  sm.registers += static_cast<uint32_t>(sign) * need.registers;
  sm.shared += static_cast<uint32_t>(sign) * need.shared;
}

Sm demand(const Grid& grid) {
  return demand(*grid.launch.kernel, grid.threads, grid.launch.registers, grid.launch.dynamic_shared);
}

// The emptiest SM that has room; -1 if none has.
int choose_sm(const Device& d, const Sm& need) {
  int best = -1;
  for (size_t i = 0; i < d.sms.size(); i++)
    if (fits(d.sms[i], need) && (best < 0 || d.sms[i].threads < d.sms[static_cast<size_t>(best)].threads))
      best = static_cast<int>(i);
  return best;
}

// Shared memory of CTAs: slots of equal size with an inaccessible page behind each CTA's largest possible block.
char* take_shared(bool give_back, char* slot) {
  static std::vector<char*> free_slots;
  static uint64_t next = kSharedZone;
  if (give_back) {
    free_slots.push_back(slot);
    return nullptr;
  }
  if (free_slots.empty()) {
    const uint64_t bytes = (settings().machine.shared_per_block + 1024 + kPage - 1) / kPage * kPage;
    void* p = mmap(reinterpret_cast<void*>(next), bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (p == MAP_FAILED) fail({.kind = "crash", .rule = "internal", .message = "no address space for shared memory"});
    next += bytes + kPage;
    free_slots.push_back(static_cast<char*>(p));
  }
  char* top = free_slots.back();
  free_slots.pop_back();
  return top;
}

void make_threads(Block& block, const Grid& grid) {
  const uint32_t* dims = grid.launch.block;
  if (block.nthreads != grid.threads) {
    block.threads = std::make_unique<Thread[]>(grid.threads);
    block.nthreads = grid.threads;
  } else {
    std::fill_n(block.threads.get(), block.nthreads, Thread());
  }
  uint32_t x = 0, y = 0, z = 0;
  for (uint32_t i = 0; i < grid.threads; i++) {
    Thread& t = block.threads[i];
    t.tid[0] = x, t.tid[1] = y, t.tid[2] = z;
    t.linear = i, t.lane = i & 31, t.warp = i >> 5;
    t.block = &block;
    t.fuel = 1u << 22;
    if (++x == dims[0]) {
      x = 0;
      if (++y == dims[1]) y = 0, z++;
    }
  }
  block.warps.assign(grid.warps, Warp());
  for (uint32_t w = 0; w < grid.warps; w++) {
    const uint32_t lanes = std::min<uint32_t>(32, grid.threads - w * 32);
    block.warps[w].live = lanes == 32 ? ~0u : (1u << lanes) - 1;
  }
}

void place_block(Block& block, Grid& grid, int sm) {
  const GridLaunch& launch = grid.launch;
  const uint64_t index = grid.next++;
  std::copy_n(launch.block, 3, block.ntid);
  std::copy_n(launch.grid, 3, block.nctaid);
  block.ctaid[0] = static_cast<uint32_t>(index % launch.grid[0]);
  block.ctaid[1] = static_cast<uint32_t>(index / launch.grid[0] % launch.grid[1]);
  block.ctaid[2] = static_cast<uint32_t>(index / launch.grid[0] / launch.grid[1]);
  block.index = static_cast<int64_t>(index);
  block.grid = &grid;
  block.shared_bytes = grid.shared;
  block.dynamic_base = grid.dynamic_base;
  block.dynamic_bytes = launch.dynamic_shared;
  block.smid = static_cast<uint32_t>(sm);
  block.nsmid = settings().machine.sms;
  block.nwarps = grid.warps;
  block.gridid = grid.id;
  block.grid_workspace = grid.workspace;
  block.arena_lo = memory().arena_lo(launch.rank);
  block.arena_hi = memory().arena_hi(launch.rank);
  block.globals = launch.module->globals.data();
  block.core = &block;
  // Behind the slot's first bytes lies an inaccessible page: place the CTA's shared memory so that its end is near it.
  const uint32_t slot = (settings().machine.shared_per_block + 1024 + kPage - 1) / kPage * kPage;
  block.slot = take_shared(false, nullptr);
  block.shared = block.slot + (slot - std::max(grid.shared, 1u)) / 1024 * 1024;
  std::memset(block.shared, settings().poison, grid.shared);
}

Block* new_block(Grid& grid, int sm) {
  std::unique_ptr<Block> block;
  if (!spare_blocks.empty()) {
    block = std::move(spare_blocks.back());
    spare_blocks.pop_back();
  } else {
    block = std::make_unique<Block>();
  }
  place_block(*block, grid, sm);
  make_threads(*block, grid);
  block->live = grid.threads;
  block->unstarted = 0;
  block->stacks = &stack_pool(grid.launch.kernel->local_bytes);
  block->agent = new_agent({AgentInfo::Kind::cta, grid.launch.rank, grid.launch.stream, grid.launch.op, block->index,
                            grid.launch.kernel->name});
  block->base = grid.after;
  block->tick = block->all_before = 1;
  block->phases.begin(*block);
  return block.release();
}

void recycle(Block* block) {
  block->yielded = block->ready = ThreadList();
  block->wake_at = block->yielded_at = 0;
  block->mbarriers.clear();
  block->shared_clocks.clear();
  block->shared_polls.clear();
  for (Barrier& barrier : block->barriers)
    if (barrier.active || barrier.generation || !barrier.lanes.empty()) barrier = Barrier();
  block->active_barriers = block->active_meetings = 0;
  block->base = nullptr;
  block->pending_threads = 0;
  block->learnt = Clock();
  spare_blocks.emplace_back(block);
}

// Later grids wait behind the first that has CTAs to start and no room.
bool dispatch(Device& d) {
  bool any = false;
  for (auto& grid : d.grids) {
    const Sm need = demand(*grid);
    while (grid->next < grid->ctas) {
      const int sm = choose_sm(d, need);
      if (sm < 0) return any;
      take(d.sms[static_cast<size_t>(sm)], need, 1);
      Block* block = new_block(*grid, sm);
      d.resident_threads += grid->threads;
      d.resident_ctas++;
      resident.push_back(block);
      enqueue(*block);
      if (observer) observer->cta_started(&block->threads[0]);
      any = true;
    }
  }
  return any;
}

void complete_grid(Device& d, Grid* grid) {
  const GridLaunch& launch = grid->launch;
  Clock done = std::move(grid->done);
  done.add(launch.stream, launch.op);
  if (launch.stream == kNoStream) done.join(launch.after);
  if (grid->workspace) memory().release(grid->workspace);
  std::free(grid->params);
  auto callback = std::move(grid->launch.complete);
  std::erase_if(d.grids, [&](const auto& g) { return g.get() == grid; });
  open--;
  scheduler().made_progress();
  if (callback) callback(done);
}

}  // namespace

uint32_t ctas_per_sm(const EmuKernel& kernel, uint32_t threads, uint32_t registers, uint32_t dynamic_shared) {
  const Sm need = demand(kernel, threads, registers, dynamic_shared);
  Sm used;
  uint32_t n = 0;
  while (fits(used, need)) take(used, need, 1), n++;
  return n;
}

std::string launch_problem(const GridLaunch& launch) {
  const MachineLimits& m = settings().machine;
  const EmuKernel& k = *launch.kernel;
  const uint64_t threads = uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  const uint64_t ctas = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  auto text = [](uint64_t n) { return std::to_string(n); };
  if (!threads || !ctas) return "a grid or block dimension is 0";
  if (threads > m.threads_per_block) return text(threads) + " threads in a block, at most " + text(m.threads_per_block);
  if (launch.block[2] > 64 || launch.grid[1] > 65535 || launch.grid[2] > 65535 || launch.grid[0] > 0x7fffffffu)
    return "a grid or block dimension is too large";
  const uint64_t maximum = uint64_t{k.maxntid[0]} * std::max(k.maxntid[1], 1u) * std::max(k.maxntid[2], 1u);
  if (maximum && threads > maximum) return text(threads) + " threads in a block, __launch_bounds__ says " + text(maximum);
  const Sm need = demand(k, static_cast<uint32_t>(threads), launch.registers, launch.dynamic_shared);
  if (need.shared > m.shared_per_block + m.shared_reserved)
    return text(need.shared - m.shared_reserved) + " bytes of shared memory, at most " + text(m.shared_per_block);
  const uint64_t per_sm = ctas_per_sm(k, static_cast<uint32_t>(threads), launch.registers, launch.dynamic_shared);
  if (!per_sm) return "a block needs more registers than an SM has";
  if (launch.cooperative && ctas > per_sm * m.sms)
    return "a cooperative grid of " + text(ctas) + " blocks, but only " + text(per_sm * m.sms) + " fit at once";
  return "";
}

uint64_t submit(GridLaunch launch) {
  check_slice(launch);
  Device& d = device(launch.rank);
  auto grid = std::make_unique<Grid>();
  launches = std::max(launches + 1, launch.id);
  grid->id = launch.id ? launch.id : launches;
  grid->ctas = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  grid->threads = launch.block[0] * launch.block[1] * launch.block[2];
  grid->warps = (grid->threads + 31) / 32;
  const EmuKernel& k = *launch.kernel;
  grid->dynamic_base = round_up(k.static_shared, std::max<uint32_t>(k.dynamic_align, 16));
  grid->shared = grid->dynamic_base + launch.dynamic_shared;
  grid->after = std::make_shared<const Clock>(launch.after);
  grid->params = static_cast<char*>(std::aligned_alloc(128, (launch.params.size() + 255) / 128 * 128));
  std::memcpy(grid->params, launch.params.data(), launch.params.size());
  if (launch.cooperative)
    grid->workspace = memory().allocate(launch.rank, kWorkspace, 4096, MemoryKind::internal, "grid workspace");
  const int priority = launch.priority;
  grid->launch = std::move(launch);
  auto at = std::find_if(d.grids.begin(), d.grids.end(), [&](const auto& g) { return g->launch.priority > priority; });
  const uint64_t id = grid->id;
  d.grids.insert(at, std::move(grid));
  open++;
  return id;
}

bool dispatch_all() {
  bool any = false;
  for (size_t rank = 0; rank < devices.size(); rank++)
    if (!scheduler().held(static_cast<int>(rank))) any |= dispatch(devices[rank]);
  return any;
}

void block_ended(Block* block) {
  Grid* grid = block->grid;
  Device& d = device(grid->launch.rank);
  finish_late_writes(*block);
  block->phases.end(*block);
  if (observer) observer->cta_ended(block);
  join_all(*block);
  if (block->base && block->base != grid->after) grid->done.join(*block->base);
  take(d.sms[block->smid], demand(*grid), -1);
  d.resident_threads -= grid->threads;
  d.resident_ctas--;
  take_shared(true, block->slot);
  forget_shared(*block);
  std::erase(resident, block);
  recycle(block);
  scheduler().made_progress();
  if (++grid->ended == grid->ctas) complete_grid(d, grid);
}

const std::vector<Block*>& resident_blocks() { return resident; }
uint64_t open_grids() { return open; }

Residency residency(int rank) {
  const Device& d = device(rank);
  uint64_t waiting = 0;
  for (const auto& grid : d.grids) waiting += grid->ctas - grid->next;
  return {d.resident_ctas, d.resident_threads, waiting, d.grids.size()};
}

void observe_accesses(AccessObserver* o) { observer = o; }
AccessObserver* access_observer() { return observer; }

ThreadPlace place_of(const EmuThread* self) {
  const auto* t = static_cast<const Thread*>(self);
  const Block& block = t->cta();
  ThreadPlace place{block.grid->launch.rank, block.grid->id, block.grid->launch.kernel->name, block.index, {}, {},
      t->linear};
  std::copy_n(block.ctaid, 3, place.cta_id);
  std::copy_n(t->tid, 3, place.thread_id);
  return place;
}

}  // namespace cuco::emu

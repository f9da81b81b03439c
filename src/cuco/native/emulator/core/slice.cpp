// Timing slices: kernels whose value work is counted, not executed. A slice is valid only while no dropped value decides
// control, synchronisation or an address; these checks end the run otherwise.
#include "finding.h"
#include "memory.h"
#include "runtime.h"
#include "slice.h"

#include <cstring>
#include <map>
#include <set>
#include <vector>

namespace cuco::emu {
namespace {

// Allocations (by serial) into which a sliced kernel's stores were dropped, or whose data the run was not given.
std::set<uint64_t> hollow;
// Single dropped stores, as a bit per 256 bytes of an allocation: data and flags of one allocation can be told apart.
constexpr int kBlockShift = 8;
struct Dropped {
  uint64_t start = 0;
  std::vector<uint64_t> bits;
  bool test(uint64_t address) const {
    const uint64_t block = (address - start) >> kBlockShift;
    return block / 64 < bits.size() && (bits[block / 64] >> block % 64 & 1);
  }
  void set(uint64_t address) {
    const uint64_t block = (address - start) >> kBlockShift;
    bits[block / 64] |= uint64_t{1} << block % 64;
  }
};
std::map<uint64_t, Dropped> dropped;   // by serial

// Copies to peers store to few allocations, each through one linear alias: what was found out about an address holds for
// its neighbours. lo, hi: addresses as the kernel uses them; + delta: in the arena.
struct Span {
  uint64_t lo = 1, hi = 0, delta = 0;
  int rank = -1;
  Dropped* dropped = nullptr;
};
constexpr size_t kSpans = 64;
Span spans[kSpans];

bool is_hollow(uint64_t address) {
  const Allocation* a = hollow.empty() && dropped.empty() ? nullptr : memory().find(address);
  if (!a) return false;
  const auto it = dropped.find(a->serial);
  return hollow.count(a->serial) || (it != dropped.end() && it->second.test(memory().canonical(address)));
}

// Everything about the allocation behind an address that has passed emu_remote's check; hi 0 if its alias is not linear.
Span survey(uint64_t address) {
  const uint64_t canonical = memory().canonical(address);
  const Allocation* a = memory().find(canonical);
  if (!a || !a->bytes) return {};
  Dropped& d = dropped[a->serial];
  if (d.bits.empty()) {
    d.start = a->address;
    d.bits.resize((a->bytes >> kBlockShift) / 64 + 1);
  }
  d.set(canonical);
  const uint64_t delta = canonical - address, first = a->address - delta, last = first + a->bytes - 1;
  if (memory().canonical(first) != a->address || memory().canonical(last) != a->address + a->bytes - 1) return {};
  return {first, first + a->bytes, delta, Memory::in_pinned(canonical) ? -1 : memory().rank_of(canonical), &d};
}

}  // namespace

void check_slice(const GridLaunch& launch) {
  if (launch.module->module->variant != EMU_SLICE) return;
  const EmuKernel& kernel = *launch.kernel;
  if (!kernel.sliced)   // executed whole, on data that sliced kernels may not have computed
    fail({.kind = "unsupported", .rule = "slice", .rank = launch.rank,
          .message = std::string("kernel ") + kernel.name + " has no timing slice: " +
              (kernel.refusal ? kernel.refusal : ""),
          .kernel = kernel.name});
  for (uint32_t i = 0; i < kernel.nguards; i++) {
    const EmuGuard& guard = kernel.guards[i];
    uint64_t pointer = 0;
    std::memcpy(&pointer, launch.params.data() + guard.param_offset, sizeof pointer);
    if (!pointer) continue;
    const Allocation* a = memory().find(pointer);
    if (!a || a->rank != launch.rank || a->kind == MemoryKind::pinned || memory().canonical(pointer) != pointer)
      fail({.kind = "unsupported", .rule = "slice", .rank = launch.rank,
            .message = std::string("the timing slice of ") + kernel.name + " does not hold: parameter " +
                       std::to_string(guard.param_index) + " points to " + memory().describe(pointer) +
                       ", not to the rank's own memory",
            .kernel = kernel.name});
    if (guard.stores) hollow.insert(a->serial);
  }
}

void mark_unfilled(uint64_t address) {
  if (const Allocation* a = memory().find(address)) hollow.insert(a->serial);
}

}  // namespace cuco::emu

using namespace cuco::emu;

extern "C" void emu_dropped_store(EmuThread* self, uint64_t address, uint32_t size, uint32_t site) {
  const EmuBlock& view = *self->block;
  const bool own = address - view.arena_lo < view.arena_hi - view.arena_lo;
  Span& span = spans[(address >> 24) % kSpans];
  if (address - span.lo < span.hi - span.lo && address + size <= span.hi) {
    span.dropped->set(address + span.delta);
    Block& block = thread_of(self)->cta();
    if (!own && span.rank != block.grid->launch.rank) block.phases.remote(block, span.rank, size, true);
    return;
  }
  if (!own) {
    if (Memory::in_shared(address) || Memory::in_stack(address)) return;
    emu_remote(self, address, size, EMU_WRITE, site);
  }
  span = survey(address);
}

extern "C" void emu_control_read(EmuThread* self, uint64_t address, uint32_t, uint32_t spoiled, uint32_t site) {
  const bool dropped = (spoiled & 1 && Memory::in_shared(address)) || (spoiled & 2 && Memory::in_stack(address)) ||
                       is_hollow(address);
  if (dropped)
    fail_at(self, site, "unsupported", "slice",
            "the timing slice does not hold: " + memory().describe(address) +
                " decides control or an address, but its value was not computed");
}

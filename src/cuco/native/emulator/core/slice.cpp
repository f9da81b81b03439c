// Timing slices: kernels whose value work is counted, not executed. A slice is valid only while no dropped value decides
// control, synchronisation or an address; these checks end the run otherwise.
#include "finding.h"
#include "memory.h"
#include "runtime.h"
#include "slice.h"

#include <cstring>
#include <set>
#include <unordered_set>

namespace cuco::emu {
namespace {

// Allocations (by serial) into which a sliced kernel's stores were dropped, or whose data the run was not given.
std::set<uint64_t> hollow;
// Single dropped stores, as blocks of 256 bytes: data and flags of one allocation can be told apart.
constexpr int kBlockShift = 8;
std::unordered_set<uint64_t> dropped_blocks;
uint64_t last_dropped = 0;

bool is_hollow(uint64_t address) {
  if (dropped_blocks.count(memory().canonical(address) >> kBlockShift)) return true;
  const Allocation* a = hollow.empty() ? nullptr : memory().find(address);
  return a && hollow.count(a->serial);
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
  if (address - self->block->arena_lo >= self->block->arena_hi - self->block->arena_lo)
    emu_remote(self, address, size, EMU_WRITE, site);
  const uint64_t block = memory().canonical(address) >> kBlockShift;
  if (block == last_dropped) return;
  last_dropped = block;
  dropped_blocks.insert(block);
}

extern "C" void emu_control_read(EmuThread* self, uint64_t address, uint32_t, uint32_t spoiled, uint32_t site) {
  const bool dropped = (spoiled & 1 && Memory::in_shared(address)) || (spoiled & 2 && Memory::in_stack(address)) ||
                       is_hollow(address);
  if (dropped)
    fail_at(self, site, "unsupported", "slice",
            "the timing slice does not hold: " + memory().describe(address) +
                " decides control or an address, but its value was not computed");
}

// When a timing slice is valid. A slice drops value work on the promise that nothing depends on it: pointers it does not
// follow are local, and memory it does not fill decides nothing. The translator proves what the text shows; the rest is
// checked here, at launch and at every load that decides control.
#include "finding.h"
#include "memory.h"
#include "runtime.h"
#include "slice_guard.h"

#include <cstring>
#include <set>

namespace cuco::emu {
namespace {

std::set<uint64_t> unfilled;   // serial numbers of allocations into which computed values were not written

[[noreturn]] void refuse(const GridLaunch& launch, const std::string& why) {
  Finding finding{.kind = "unsupported", .rule = "slice"};
  finding.rank = launch.rank;
  finding.kernel = launch.kernel->name;
  finding.message = std::string("kernel ") + launch.kernel->name + " cannot be timed by its slice: " + why;
  fail(std::move(finding));
}

void check_pointer(const GridLaunch& launch, const EmuGuard& guard) {
  uint64_t address;
  if (guard.param_offset + sizeof address > launch.params.size()) return;
  std::memcpy(&address, launch.params.data() + guard.param_offset, sizeof address);
  if (!address) return;
  const uint64_t canonical = memory().canonical(address);
  if (Memory::in_pinned(canonical) || memory().rank_of(canonical) != launch.rank)
    refuse(launch, "parameter " + std::to_string(guard.param_index) + " points to " + memory().describe(address) +
                       ", which is not this rank's device memory");
  const Allocation* a = memory().find(canonical);
  if (guard.stores && a) unfilled.insert(a->serial);
}

}  // namespace

void check_slice(const GridLaunch& launch) {
  if (launch.module->module->variant != EMU_SLICE) return;
  const EmuKernel& kernel = *launch.kernel;
  if (!kernel.sliced) refuse(launch, kernel.refusal ? kernel.refusal : "it has none");
  for (uint32_t i = 0; i < kernel.nguards; i++) check_pointer(launch, kernel.guards[i]);
}

}  // namespace cuco::emu

using namespace cuco::emu;

extern "C" void emu_control_read(EmuThread* self, uint64_t address, uint32_t size, uint32_t spoiled, uint32_t site) {
  bool bad = false;
  if (Memory::in_shared(address)) {
    bad = spoiled & 1;
  } else if (Memory::in_stack(address)) {
    bad = spoiled & 2;
  } else if (!unfilled.empty()) {
    const Allocation* a = memory().find(memory().canonical(address));
    bad = a && unfilled.count(a->serial);
  }
  if (bad)
    fail_at(self, site, "unsupported", "slice",
            "this load of " + std::to_string(size) + " bytes decides control, and a timing slice does not compute what it reads");
}

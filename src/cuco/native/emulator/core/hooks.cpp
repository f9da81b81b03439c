// Weak accesses that reach the core: those outside the own arena, and in the hooks variant every one.
#include "finding.h"
#include "memory.h"
#include "runtime.h"
#include "shared.h"

namespace cuco::emu {
namespace {

const char* verb(EmuAccess access) { return access == EMU_READ ? "reads" : access == EMU_WRITE ? "writes" : "updates"; }

[[noreturn]] void out_of_bounds(EmuThread* self, uint64_t address, uint32_t size, EmuAccess access, uint32_t site) {
  const Allocation* a = memory().find(address);
  Finding finding{.kind = "out-of-bounds", .rule = a && a->freed ? "use-after-free" : "bounds"};
  finding.buffer = memory().describe(address);
  const Place place = user_place(module_of(self), site);
  finding.file = place.file;
  finding.line = place.line;
  finding.message = std::string("a GPU thread ") + verb(access) + " " + std::to_string(size) + " bytes at " +
                    finding.buffer +
                    (place.line > 0 ? " (" + describe(place) + ")" : "");
  fail(std::move(finding));
}

bool is_local(uint64_t address) { return Memory::in_stack(address) || Memory::in_params(address); }
bool is_parameter(const Block& block, uint64_t address) {
  return address - reinterpret_cast<uint64_t>(block.grid->params) < block.grid->launch.params.size();
}

}  // namespace
}  // namespace cuco::emu

using namespace cuco::emu;

extern "C" void emu_remote(EmuThread* self, uint64_t address, uint32_t size, EmuAccess access, uint32_t site) {
  Thread* t = thread_of(self);
  if (Memory::in_shared(address)) return check_shared(t, address, size, site);
  const Block& block = t->cta();
  if (is_local(address) || is_parameter(block, address)) return;
  if (!memory().valid(address, size)) out_of_bounds(self, address, size, access, site);
  const uint64_t canonical = memory().canonical(address);
  const int peer = Memory::in_pinned(canonical) ? -1 : memory().rank_of(canonical);
  if (peer == block.grid->launch.rank) return;
  PhaseRecorder& phases = t->cta().phases;
  if (access != EMU_WRITE) phases.remote(t->cta(), peer, size, false);
  if (access != EMU_READ) phases.remote(t->cta(), peer, size, true);
}

extern "C" void emu_hook_global(EmuThread* self, uint64_t address, uint32_t size, EmuAccess access, uint32_t site) {
  if (Memory::in_shared(address)) return emu_hook_shared(self, address, size, access, site);
  const Block& block = thread_of(self)->cta();
  if (is_local(address) || is_parameter(block, address)) return;
  if (!memory().valid(address, size)) out_of_bounds(self, address, size, access, site);
  if (AccessObserver* observer = access_observer())
    observer->global_access(self, memory().canonical(address), size, access, site);
}

extern "C" void emu_hook_shared(EmuThread* self, uint64_t address, uint32_t size, EmuAccess access, uint32_t site) {
  check_shared(thread_of(self), address, size, site);
  if (AccessObserver* observer = access_observer())
    observer->shared_access(self, static_cast<uint32_t>(address - reinterpret_cast<uint64_t>(self->block->shared)), size,
                            access, site);
}

// Clocks, sleeping, address spaces, device malloc, and the ways to stop.
#include "finding.h"
#include "memory.h"
#include "runtime.h"

#include <cstring>

namespace cuco::emu {
namespace {

constexpr uint64_t kClockRead = 32;   // cycles that reading a clock takes

uint64_t read_clock(Thread* t) {
  t->more().read_clock = true;
  scheduler().advance_clock(kClockRead);
  return scheduler().now();
}

uint64_t nanoseconds(uint64_t cycles) { return cycles * 1000 / settings().machine.clock_mhz; }

}  // namespace
}  // namespace cuco::emu

using namespace cuco::emu;

extern "C" uint64_t emu_clock(EmuThread* self, uint32_t) { return read_clock(thread_of(self)); }

extern "C" uint64_t emu_globaltimer(EmuThread* self, uint32_t) { return nanoseconds(read_clock(thread_of(self))); }

extern "C" void emu_nanosleep(EmuThread* self, uint32_t ns, uint32_t site) {
  const uint64_t cycles = uint64_t{ns} * settings().machine.clock_mhz / 1000;
  yield_thread(thread_of(self), site, scheduler().now() + cycles + 1);
}

extern "C" uint32_t emu_isspace(EmuThread* self, EmuSpace space, uint64_t address) {
  Thread* t = thread_of(self);
  switch (space) {
    case EMU_SHARED: {
      const Block& block = t->cta();
      return address - reinterpret_cast<uint64_t>(block.shared) < std::max(block.shared_bytes, 1u);
    }
    case EMU_LOCAL: return Memory::in_stack(address);
    case EMU_PARAM: {
      const Grid& grid = *t->cta().grid;
      return address - reinterpret_cast<uint64_t>(grid.params) < grid.launch.params.size();
    }
    case EMU_CONST: {
      const Allocation* a = memory().find(address);
      const EmuModule& module = module_of(self);
      if (!a || a->kind != MemoryKind::symbol) return 0;
      for (uint32_t i = 0; i < module.nglobals; i++)
        if (t->block->globals[i] == a->address) return module.globals[i].space == EMU_CONST;
      return 0;
    }
    case EMU_GLOBAL: return memory().rank_of(address) >= 0;
    default: return 0;
  }
}

extern "C" uint64_t emu_malloc(EmuThread* self, uint64_t bytes, uint32_t) {
  const int rank = thread_of(self)->cta().grid->launch.rank;
  return bytes ? memory().allocate(rank, bytes, 256, MemoryKind::device, "device malloc") : 0;
}

extern "C" void emu_free(EmuThread* self, uint64_t address, uint32_t site) {
  if (address && !memory().release(address))
    fail_at(self, site, "out-of-bounds", "device-free", "free() of " + memory().describe(address) +
                                                            ", which is not the start of a live allocation");
}

extern "C" void emu_assertfail(EmuThread* self, const char* message, const char* file, uint32_t line,
    const char* function,
                               uint32_t) {
  (void)self;
  fail({.kind = "crash", .rule = "assert", .file = file ? file : "", .line = static_cast<int>(line),
        .message = std::string("assertion `") + (message ? message : "") + "' failed in " + (function ? function : "?")});
}

extern "C" void emu_trap(EmuThread* self, uint32_t site, const char* why) {
  const std::string reason = why && *why ? std::string(": ") + why : "";
  fail_at(self, site, "crash", "trap", "the kernel executes a trap" + reason);
}

extern "C" void emu_unsupported(EmuThread* self, uint32_t site) {
  const EmuModule& module = module_of(self);
  const char* text = site < module.nsites && module.sites[site].text ? module.sites[site].text : "?";
  fail_at(self, site, "unsupported", "instruction", std::string("the emulator does not know the PTX instruction `") +
      text + "`");
}

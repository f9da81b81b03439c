// A kernels library in a rank: its globals get memory, initial values and relocated addresses.
#include "finding.h"
#include "grid.h"
#include "memory.h"

#include <cstring>
#include <stdexcept>

namespace cuco::emu {
namespace {

void initialise(const EmuGlobal& global, uint64_t address) {
  char* bytes = reinterpret_cast<char*>(address);
  std::memset(bytes, 0, global.size);
  std::memcpy(bytes, global.init, global.init ? global.init_bytes : 0);
}

void relocate(const EmuGlobal& global, uint64_t address, const std::vector<uint64_t>& globals) {
  for (uint32_t i = 0; i < global.nrelocs; i++) {
    const EmuReloc& reloc = global.relocs[i];
    const uint64_t target = reloc.kind == EMU_RELOC_GLOBAL ? globals[reloc.global]
                                                           : reinterpret_cast<uint64_t>(reloc.function);
    const uint64_t value = target + static_cast<uint64_t>(reloc.addend);
    std::memcpy(reinterpret_cast<char*>(address) + reloc.offset, &value, sizeof value);
  }
}

}  // namespace

RankModule load_module(const EmuModule* module, int rank) {
  if (module->abi != EMU_ABI)
    throw std::runtime_error("the kernels library has ABI " + std::to_string(module->abi) + ", the emulator " +
                             std::to_string(EMU_ABI) + ": translate again");
  RankModule loaded{module, {}};
  for (uint32_t i = 0; i < module->nglobals; i++) {
    const EmuGlobal& global = module->globals[i];
    const uint64_t address = memory().allocate(rank, global.size, global.align, MemoryKind::symbol, global.name);
    if (!address) throw std::runtime_error(std::string("no device memory for ") + global.name);
    initialise(global, address);
    loaded.globals.push_back(address);
  }
  for (uint32_t i = 0; i < module->nglobals; i++) relocate(module->globals[i], loaded.globals[i], loaded.globals);
  return loaded;
}

}  // namespace cuco::emu

// Images: what the host libraries register with the runtime while they are loaded, on behalf of the rank that loads them.
#pragma once

#include "core.h"

#include <cuda_runtime_api.h>

#include <map>
#include <string>

namespace cuco::cuda {

// A kernel as a host function pointer of one image stands for it. Attributes belong to it.
struct Kernel {
  std::string name;                       // mangled
  const EmuKernel* code = nullptr;
  const emu::RankModule* module = nullptr;
  int rank = -1;
  uint32_t registers = 32;
  uint32_t max_dynamic_shared = 0;        // cudaFuncAttributeMaxDynamicSharedMemorySize
  int carveout = -1;                      // cudaFuncAttributePreferredSharedMemoryCarveout
  // Most threads a block of this kernel may have: launch bounds, registers, the device.
  uint32_t max_threads() const;
  uint32_t bound() const;                 // by launch bounds alone
};

struct Variable {
  std::string name;
  uint64_t address = 0;                   // in the rank's memory
  uint64_t bytes = 0;
  bool constant = false;
};

// The kernels library of the run and the registers that ptxas counted, by mangled name. Call once, before any image
// is loaded.
void use_kernels(const EmuModule* module, std::map<std::string, int> registers);

// nullptr: the pointer is no kernel (or variable) of the calling rank.
Kernel* find_kernel(const void* host_function);
const Variable* find_variable(const void* host_variable);
// The kernel of that handle, which __cudaGetKernel or cudaGetFuncBySymbol gave out, or nullptr.
Kernel* kernel_of_handle(const void* handle);

}  // namespace cuco::cuda

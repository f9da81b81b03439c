#include "image.h"

#include "host.h"

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

namespace cuco::cuda {
namespace {

struct Loaded {
  const EmuModule* module = nullptr;
  std::map<std::string, int> registers;
  std::map<int, std::unique_ptr<emu::RankModule>> by_rank;
};

Loaded& loaded() {
  static Loaded state;
  return state;
}

// Host pointers are those of a rank's private copy of the host library, so the address alone tells the rank.
std::map<const void*, std::unique_ptr<Kernel>>& kernels() {
  static std::map<const void*, std::unique_ptr<Kernel>> table;
  return table;
}

std::map<const void*, Variable>& variables() {
  static std::map<const void*, Variable> table;
  return table;
}

std::set<const void*>& handles() {
  static std::set<const void*> table;
  return table;
}

const emu::RankModule& module_of_rank(int rank) {
  auto& slot = loaded().by_rank[rank];
  if (!slot) slot = std::make_unique<emu::RankModule>(emu::load_module(loaded().module, rank));
  return *slot;
}

const EmuKernel* code_of(const std::string& name) {
  const EmuModule* module = loaded().module;
  for (uint32_t i = 0; module && i < module->nkernels; i++)
    if (name == module->kernels[i].name) return &module->kernels[i];
  return nullptr;
}

[[noreturn]] void mismatch(const std::string& what) {
  emu::Finding finding;
  finding.kind = "crash";
  finding.rule = "image";
  finding.rank = current_rank();
  finding.message = what + ", which the kernels library does not have: host and kernels libraries are of two builds";
  emu::fail(finding);
}

}  // namespace

uint32_t Kernel::bound() const {
  uint32_t most = emu::settings().machine.threads_per_block;
  for (const uint32_t* d : {code->maxntid, code->reqntid})
    if (d[0]) most = std::min(most, d[0] * std::max(1u, d[1]) * std::max(1u, d[2]));
  return most;
}

uint32_t Kernel::max_threads() const {
  uint32_t most = bound();
  while (most > 32 && !emu::ctas_per_sm(*code, most, registers, 0)) most -= 32;
  return most;
}

void use_kernels(const EmuModule* module, std::map<std::string, int> registers) {
  loaded().module = module;
  loaded().registers = std::move(registers);
}

Kernel* find_kernel(const void* host_function) {
  const auto found = kernels().find(host_function);
  return found != kernels().end() && found->second->rank == current_rank() ? found->second.get() : nullptr;
}

const Variable* find_variable(const void* host_variable) {
  const auto found = variables().find(host_variable);
  return found == variables().end() ? nullptr : &found->second;
}

Kernel* kernel_of_handle(const void* handle) {
  if (!handles().contains(handle)) return find_kernel(handle);
  auto* kernel = const_cast<Kernel*>(static_cast<const Kernel*>(handle));
  return kernel->rank == current_rank() ? kernel : nullptr;
}

namespace {

void register_kernel(const void* host_function, const char* name) {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = name;
  kernel->code = code_of(name);
  if (!kernel->code) mismatch("the program registers kernel " + kernel->name);
  kernel->rank = current_rank();
  kernel->max_dynamic_shared = 49152 - std::min(49152u, kernel->code->static_shared);
  kernel->module = &module_of_rank(kernel->rank);
  const auto counted = loaded().registers.find(kernel->name);
  if (counted != loaded().registers.end()) kernel->registers = static_cast<uint32_t>(counted->second);
  handles().insert(kernel.get());
  kernels()[host_function] = std::move(kernel);
}

void register_variable(const void* host_variable, const char* name, uint64_t bytes, bool constant) {
  const emu::RankModule& module = module_of_rank(current_rank());
  for (uint32_t i = 0; i < module.module->nglobals; i++) {
    if (module.module->globals[i].name != std::string(name)) continue;
    variables()[host_variable] = {name, module.globals[i], bytes, constant};
    return;
  }
  // nvcc registers variables that no device code uses, and leaves them out of the PTX. They exist all the same.
  const uint64_t address = emu::memory().allocate(current_rank(), bytes, 256, emu::MemoryKind::symbol, name);
  emu::memory().rename(address, name);
  variables()[host_variable] = {name, address, bytes, constant};
}

}  // namespace
}  // namespace cuco::cuda

// ------------------------------------------------------------------------------------------------ what nvcc's host code calls
extern "C" {

void** __cudaRegisterFatBinary(void* fat_binary) {
  static std::vector<std::unique_ptr<void*>> given;
  given.push_back(std::make_unique<void*>(fat_binary));
  return given.back().get();
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void**, const char* host_function, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  cuco::cuda::register_kernel(host_function, name);
}

void __cudaRegisterVar(void**, char* host_variable, char*, const char* name, int, size_t bytes, int constant, int) {
  cuco::cuda::register_variable(host_variable, name, bytes, constant != 0);
}

// A __managed__ variable: the host reaches it through a pointer, which from here on is its address in the rank's memory.
void __cudaRegisterManagedVar(void**, void** host_pointer, char*, const char* name, int, size_t bytes, int constant, int) {
  cuco::cuda::register_variable(host_pointer, name, bytes, constant != 0);
  *host_pointer = reinterpret_cast<void*>(cuco::cuda::find_variable(host_pointer)->address);
}

void __cudaRegisterTexture(void**, const void*, const void**, const char* name, int, int, int) {
  cuco::cuda::unsupported(std::string("texture reference ") + name + ": the emulator has no textures");
}
void __cudaRegisterSurface(void**, const void*, const void**, const char* name, int, int) {
  cuco::cuda::unsupported(std::string("surface reference ") + name + ": the emulator has no surfaces");
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  cuco::cuda::Kernel* found = cuco::cuda::find_kernel(host_function);
  if (!found) return cuco::cuda::done(cudaErrorInvalidDeviceFunction);
  *kernel = reinterpret_cast<cudaKernel_t>(found);
  return cudaSuccess;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  cuco::cuda::host().configurations.push_back({grid, block, shared, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  auto& stack = cuco::cuda::host().configurations;
  if (stack.empty()) return cuco::cuda::done(cudaErrorMissingConfiguration);
  *grid = stack.back().grid;
  *block = stack.back().block;
  *shared = stack.back().shared;
  *static_cast<cudaStream_t*>(stream) = stack.back().stream;
  stack.pop_back();
  return cudaSuccess;
}
}

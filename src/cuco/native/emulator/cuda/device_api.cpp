// Device selection, properties and limits, all from the machine of the job.
#include "device.h"

#include "api.h"

#include <algorithm>
#include <cstring>
#include <map>

using namespace cuco::cuda;
namespace emu = cuco::emu;

namespace cuco::cuda {
namespace {

int domain_size() { return std::max(1, emu::settings().lsa_team); }
int first_of_domain() { return current_rank() / domain_size() * domain_size(); }

}  // namespace

int device_count() { return std::min(domain_size(), emu::settings().ranks - first_of_domain()); }
int device_of_rank(int rank) {
  const int device = rank - first_of_domain();
  return device >= 0 && device < device_count() ? device : -1;
}
int rank_of_device(int device) { return first_of_domain() + device; }

}  // namespace cuco::cuda

namespace {

bool known(int device) { return device >= 0 && device < device_count(); }

void fill_sizes(cudaDeviceProp& p) {
  const emu::MachineLimits& machine = emu::settings().machine;
  const auto as_int = [](uint64_t value) { return static_cast<int>(value); };
  p.totalGlobalMem = machine.memory;
  p.sharedMemPerBlock = 49152;
  p.sharedMemPerBlockOptin = machine.shared_per_block;
  p.sharedMemPerMultiprocessor = machine.shared_per_sm;
  p.reservedSharedMemPerBlock = machine.shared_reserved;
  p.regsPerBlock = p.regsPerMultiprocessor = as_int(machine.registers_per_sm);
  p.maxThreadsPerBlock = as_int(machine.threads_per_block);
  p.maxThreadsPerMultiProcessor = as_int(machine.threads_per_sm);
  p.maxBlocksPerMultiProcessor = as_int(machine.blocks_per_sm);
  p.multiProcessorCount = as_int(machine.sms);
  p.totalConstMem = 65536;
  p.memPitch = 2147483647;
  p.l2CacheSize = 50 << 20;
  p.memoryBusWidth = 5120;
}

cudaDeviceProp properties(int device) {
  cudaDeviceProp p = {};
  std::strcpy(p.name, "CUCo emulated GPU (sm_90)");
  fill_sizes(p);
  p.major = 9;
  p.warpSize = 32;
  const int threads[3] = {1024, 1024, 64}, grid[3] = {2147483647, 65535, 65535};
  std::copy(threads, threads + 3, p.maxThreadsDim);
  std::copy(grid, grid + 3, p.maxGridSize);
  p.pciBusID = device + 1;
  p.uuid.bytes[0] = static_cast<char>(rank_of_device(device) + 1);
  p.textureAlignment = 512;
  p.asyncEngineCount = 3;
  p.concurrentKernels = p.unifiedAddressing = p.canMapHostMemory = p.managedMemory = p.concurrentManagedAccess = 1;
  p.cooperativeLaunch = p.streamPrioritiesSupported = p.memoryPoolsSupported = p.computePreemptionSupported = 1;
  p.globalL1CacheSupported = p.localL1CacheSupported = p.unifiedFunctionPointers = 1;
  p.canUseHostPointerForRegisteredMem = p.ECCEnabled = 1;
  return p;
}

// Attributes that say what cudaDeviceProp says, by the field.
int attribute_of(const cudaDeviceProp& p, cudaDeviceAttr attribute, bool& found) {
  const auto as_int = [](size_t value) { return static_cast<int>(std::min<size_t>(value, 2147483647)); };
  found = true;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: return p.maxThreadsPerBlock;
    case cudaDevAttrMaxBlockDimX: return p.maxThreadsDim[0];
    case cudaDevAttrMaxBlockDimY: return p.maxThreadsDim[1];
    case cudaDevAttrMaxBlockDimZ: return p.maxThreadsDim[2];
    case cudaDevAttrMaxGridDimX: return p.maxGridSize[0];
    case cudaDevAttrMaxGridDimY: return p.maxGridSize[1];
    case cudaDevAttrMaxGridDimZ: return p.maxGridSize[2];
    case cudaDevAttrMaxSharedMemoryPerBlock: return as_int(p.sharedMemPerBlock);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return as_int(p.sharedMemPerBlockOptin);
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return as_int(p.sharedMemPerMultiprocessor);
    case cudaDevAttrReservedSharedMemoryPerBlock: return as_int(p.reservedSharedMemPerBlock);
    case cudaDevAttrTotalConstantMemory: return as_int(p.totalConstMem);
    case cudaDevAttrWarpSize: return p.warpSize;
    case cudaDevAttrMaxPitch: return as_int(p.memPitch);
    case cudaDevAttrMaxRegistersPerBlock: return p.regsPerBlock;
    case cudaDevAttrMaxRegistersPerMultiprocessor: return p.regsPerMultiprocessor;
    case cudaDevAttrMultiProcessorCount: return p.multiProcessorCount;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return p.maxThreadsPerMultiProcessor;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return p.maxBlocksPerMultiProcessor;
    case cudaDevAttrL2CacheSize: return p.l2CacheSize;
    case cudaDevAttrGlobalMemoryBusWidth: return p.memoryBusWidth;
    case cudaDevAttrComputeCapabilityMajor: return p.major;
    case cudaDevAttrComputeCapabilityMinor: return p.minor;
    case cudaDevAttrPciBusId: return p.pciBusID;
    case cudaDevAttrPciDeviceId: return p.pciDeviceID;
    case cudaDevAttrPciDomainId: return p.pciDomainID;
    case cudaDevAttrAsyncEngineCount: return p.asyncEngineCount;
    case cudaDevAttrTextureAlignment: return as_int(p.textureAlignment);
    default: break;
  }
  switch (attribute) {
    case cudaDevAttrConcurrentKernels: case cudaDevAttrUnifiedAddressing: case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrManagedMemory: case cudaDevAttrConcurrentManagedAccess: case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrStreamPrioritiesSupported: case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrComputePreemptionSupported: case cudaDevAttrGlobalL1CacheSupported:
    case cudaDevAttrLocalL1CacheSupported: case cudaDevAttrEccEnabled: case cudaDevAttrGpuOverlap:
    case cudaDevAttrCanUseHostPointerForRegisteredMem: return 1;
    // What the emulator does not have, or what says "no restriction".
    case cudaDevAttrClusterLaunch: case cudaDevAttrIntegrated: case cudaDevAttrComputeMode:
    case cudaDevAttrKernelExecTimeout: case cudaDevAttrTccDriver: case cudaDevAttrIsMultiGpuBoard:
    case cudaDevAttrHostNativeAtomicSupported: case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrHostRegisterSupported: case cudaDevAttrGPUDirectRDMASupported: case cudaDevAttrIpcEventSupport:
    case cudaDevAttrDirectManagedMemAccessFromHost: case cudaDevAttrPageableMemoryAccessUsesHostPageTables:
    case cudaDevAttrMaxPersistingL2CacheSize: case cudaDevAttrMaxAccessPolicyWindowSize: return 0;
    default: found = false; return 0;
  }
}

}  // namespace

CUCO_API(cudaGetDeviceCount, (int* count), {
  if (!count) return cudaErrorInvalidValue;
  *count = device_count();
  return cudaSuccess;
})

CUCO_API(cudaGetDevice, (int* device), {
  if (!device) return cudaErrorInvalidValue;
  *device = device_of_rank(current_rank());
  return cudaSuccess;
})

CUCO_API(cudaSetDevice, (int device), {
  if (!known(device)) return cudaErrorInvalidDevice;
  if (device != device_of_rank(current_rank()))
    unsupported("cudaSetDevice(" + std::to_string(device) + ") on a rank whose device is " +
                std::to_string(device_of_rank(current_rank())) + ": a rank drives one device");
  return cudaSuccess;
})

CUCO_API(cudaInitDevice, (int device, unsigned, unsigned), { return known(device) ? cudaSuccess : cudaErrorInvalidDevice; })
CUCO_API(cudaSetDeviceFlags, (unsigned), { return cudaSuccess; })
CUCO_API(cudaGetDeviceFlags, (unsigned* flags), {
  if (!flags) return cudaErrorInvalidValue;
  *flags = cudaDeviceScheduleAuto | cudaDeviceMapHost;
  return cudaSuccess;
})
CUCO_API(cudaDeviceSetCacheConfig, (cudaFuncCache), { return cudaSuccess; })
CUCO_API(cudaDeviceSetLimit, (cudaLimit, size_t), { return cudaSuccess; })
CUCO_API(cudaDeviceGetLimit, (size_t * value, cudaLimit limit), {
  if (!value) return cudaErrorInvalidValue;
  switch (limit) {
    case cudaLimitStackSize: *value = 1024; return cudaSuccess;
    case cudaLimitPrintfFifoSize: *value = 1 << 20; return cudaSuccess;
    case cudaLimitMallocHeapSize: *value = 8 << 20; return cudaSuccess;
    default: return cudaErrorUnsupportedLimit;
  }
})

CUCO_API(cudaGetDeviceProperties, (cudaDeviceProp * out, int device), {
  if (!out) return cudaErrorInvalidValue;
  if (!known(device)) return cudaErrorInvalidDevice;
  *out = properties(device);
  return cudaSuccess;
})

CUCO_API(cudaDeviceGetAttribute, (int* value, cudaDeviceAttr attribute, int device), {
  if (!value) return cudaErrorInvalidValue;
  if (!known(device)) return cudaErrorInvalidDevice;
  if (attribute == cudaDevAttrClockRate) {
    *value = static_cast<int>(emu::settings().machine.clock_mhz * 1000);
    return cudaSuccess;
  }
  bool found = false;
  const int answer = attribute_of(properties(device), attribute, found);
  if (!found) unsupported("cudaDeviceGetAttribute of attribute " + std::to_string(static_cast<int>(attribute)));
  *value = answer;
  return cudaSuccess;
})

CUCO_API(cudaDeviceGetPCIBusId, (char* text, int length, int device), {
  if (!text || length < 13) return cudaErrorInvalidValue;
  if (!known(device)) return cudaErrorInvalidDevice;
  std::snprintf(text, static_cast<size_t>(length), "0000:%02x:00.0", device + 1);
  return cudaSuccess;
})

CUCO_API(cudaDeviceGetStreamPriorityRange, (int* least, int* greatest), {
  if (least) *least = kLeastPriority;
  if (greatest) *greatest = kGreatestPriority;
  return cudaSuccess;
})

CUCO_API(cudaDriverGetVersion, (int* version), {
  if (!version) return cudaErrorInvalidValue;
  *version = CUDART_VERSION;
  return cudaSuccess;
})
CUCO_API(cudaRuntimeGetVersion, (int* version), {
  if (!version) return cudaErrorInvalidValue;
  *version = CUDART_VERSION;
  return cudaSuccess;
})

// ------------------------------------------------------------------------------------------------ peers
namespace {

std::map<int, std::vector<bool>>& enabled_peers() {
  static std::map<int, std::vector<bool>> table;
  return table;
}

}  // namespace

CUCO_API(cudaDeviceCanAccessPeer, (int* can, int device, int peer), {
  if (!can) return cudaErrorInvalidValue;
  if (!known(device) || !known(peer)) return cudaErrorInvalidDevice;
  *can = device != peer;
  return cudaSuccess;
})

CUCO_API(cudaDeviceEnablePeerAccess, (int peer, unsigned flags), {
  if (flags) return cudaErrorInvalidValue;
  if (!known(peer)) return cudaErrorInvalidDevice;
  if (peer == device_of_rank(current_rank())) return cudaErrorPeerAccessUnsupported;
  auto& enabled = enabled_peers()[current_rank()];
  enabled.resize(static_cast<size_t>(device_count()));
  if (enabled[static_cast<size_t>(peer)]) return cudaErrorPeerAccessAlreadyEnabled;
  enabled[static_cast<size_t>(peer)] = true;
  return cudaSuccess;
})

CUCO_API(cudaDeviceDisablePeerAccess, (int peer), {
  if (!known(peer)) return cudaErrorInvalidDevice;
  auto& enabled = enabled_peers()[current_rank()];
  enabled.resize(static_cast<size_t>(device_count()));
  if (!enabled[static_cast<size_t>(peer)]) return cudaErrorPeerAccessNotEnabled;
  enabled[static_cast<size_t>(peer)] = false;
  return cudaSuccess;
})

CUCO_API(cudaDeviceGetP2PAttribute, (int* value, cudaDeviceP2PAttr attribute, int device, int peer), {
  if (!value || device == peer) return cudaErrorInvalidValue;
  if (!known(device) || !known(peer)) return cudaErrorInvalidDevice;
  switch (attribute) {
    case cudaDevP2PAttrPerformanceRank: *value = 0; return cudaSuccess;
    case cudaDevP2PAttrAccessSupported:
    case cudaDevP2PAttrNativeAtomicSupported: *value = 1; return cudaSuccess;
    default: *value = 0; return cudaSuccess;
  }
})

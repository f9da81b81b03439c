// cudaLaunchKernel and its relatives, cudaFuncGetAttributes and cudaFuncSetAttribute, occupancy.
#include "api.h"
#include "launch.h"

#include <algorithm>

using namespace cuco::cuda;
namespace emu = cuco::emu;

namespace {

// The attributes of a cudaLaunchConfig_t; the rest are hints, which change nothing here.
cudaError_t read_attributes(const cudaLaunchConfig_t& config, LaunchShape& shape) {
  for (unsigned i = 0; i < config.numAttrs; i++) {
    const cudaLaunchAttribute& attribute = config.attrs[i];
    switch (attribute.id) {
      case cudaLaunchAttributeCooperative: shape.cooperative = attribute.val.cooperative != 0; break;
      case cudaLaunchAttributePriority: shape.priority = attribute.val.priority; break;
      case cudaLaunchAttributeClusterDimension: {
        const auto& d = attribute.val.clusterDim;
        if (d.x != 1 || d.y != 1 || d.z != 1)
          unsupported("a launch in clusters of " + std::to_string(d.x) + "x" + std::to_string(d.y) + "x" +
                      std::to_string(d.z) + " blocks: the emulator has no clusters");
        break;
      }
      case cudaLaunchAttributeProgrammaticEvent:
      case cudaLaunchAttributeLaunchCompletionEvent:
        unsupported("a launch attribute that records an event within the kernel");
      default: break;
    }
  }
  return cudaSuccess;
}

cudaError_t launch_with(const cudaLaunchConfig_t* config, const void* function, void** arguments, Default meaning) {
  if (!config) return cudaErrorInvalidValue;
  LaunchShape shape{config->gridDim, config->blockDim, config->dynamicSmemBytes, false, {}};
  if (const cudaError_t wrong = read_attributes(*config, shape)) return wrong;
  return launch(kernel_of_handle(function), shape, arguments, find_stream(config->stream, meaning));
}

uint32_t blocks_per_sm(const Kernel& kernel, int block, size_t shared) {
  if (static_cast<uint32_t>(block) > kernel.max_threads() || shared > kernel.max_dynamic_shared) return 0;
  return emu::ctas_per_sm(*kernel.code, static_cast<uint32_t>(block), kernel.registers, static_cast<uint32_t>(shared));
}

cudaError_t set_attribute(Kernel& kernel, cudaFuncAttribute attribute, int value) {
  const emu::MachineLimits& machine = emu::settings().machine;
  switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
      if (value < 0 || kernel.code->static_shared + static_cast<uint32_t>(value) > machine.shared_per_block)
        return cudaErrorInvalidValue;
      kernel.max_dynamic_shared = static_cast<uint32_t>(value);
      return cudaSuccess;
    case cudaFuncAttributePreferredSharedMemoryCarveout:
      if (value < -1 || value > 100) return cudaErrorInvalidValue;
      kernel.carveout = value;
      return cudaSuccess;
    default: return cudaErrorNotSupported;  // cluster attributes
  }
}

}  // namespace

// clang-format off
CUCO_BOTH(cudaLaunchKernel, _ptsz, (const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream), {
  return launch(kernel_of_handle(function), {grid, block, shared, false, {}}, arguments, find_stream(stream, default_stream));
})
CUCO_BOTH(__cudaLaunchKernel, _ptsz, (cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream), {
  return launch(kernel_of_handle(kernel), {grid, block, shared, false, {}}, arguments, find_stream(stream, default_stream));
})
CUCO_BOTH(cudaLaunchCooperativeKernel, _ptsz, (const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream), {
  return launch(kernel_of_handle(function), {grid, block, shared, true, {}}, arguments, find_stream(stream, default_stream));
})
CUCO_BOTH(cudaLaunchKernelExC, _ptsz, (const cudaLaunchConfig_t* config, const void* function, void** arguments), {
  return launch_with(config, function, arguments, default_stream);
})
// clang-format on

CUCO_API(cudaFuncSetAttribute, (const void* function, cudaFuncAttribute attribute, int value), {
  Kernel* kernel = kernel_of_handle(function);
  return kernel ? set_attribute(*kernel, attribute, value) : cudaErrorInvalidDeviceFunction;
})

CUCO_API(cudaFuncSetCacheConfig, (const void* function, cudaFuncCache), {
  return kernel_of_handle(function) ? cudaSuccess : cudaErrorInvalidDeviceFunction;
})

CUCO_API(cudaFuncGetAttributes, (cudaFuncAttributes* out, const void* function), {
  const Kernel* kernel = kernel_of_handle(function);
  if (!out) return cudaErrorInvalidValue;
  if (!kernel) return cudaErrorInvalidDeviceFunction;
  *out = {};
  out->sharedSizeBytes = kernel->code->static_shared;
  out->localSizeBytes = kernel->code->local_bytes;
  out->maxThreadsPerBlock = static_cast<int>(kernel->max_threads());
  out->numRegs = static_cast<int>(kernel->registers);
  out->ptxVersion = 90;
  out->binaryVersion = 90;
  out->maxDynamicSharedSizeBytes = static_cast<int>(kernel->max_dynamic_shared);
  out->preferredShmemCarveout = kernel->carveout;
  return cudaSuccess;
})

CUCO_API(cudaFuncGetName, (const char** name, const void* function), {
  const Kernel* kernel = kernel_of_handle(function);
  if (!name) return cudaErrorInvalidValue;
  if (!kernel) return cudaErrorInvalidDeviceFunction;
  *name = kernel->name.c_str();
  return cudaSuccess;
})

CUCO_API(cudaGetFuncBySymbol, (cudaFunction_t * out, const void* symbol), {
  Kernel* kernel = kernel_of_handle(symbol);
  if (!kernel) return cudaErrorInvalidDeviceFunction;
  *out = reinterpret_cast<cudaFunction_t>(kernel);
  return cudaSuccess;
})

CUCO_API(cudaGetKernel, (cudaKernel_t * out, const void* function), {
  Kernel* kernel = kernel_of_handle(function);
  if (!kernel) return cudaErrorInvalidDeviceFunction;
  *out = reinterpret_cast<cudaKernel_t>(kernel);
  return cudaSuccess;
})

// ------------------------------------------------------------------------------------------------ occupancy
CUCO_API(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
         (int* blocks, const void* function, int block, size_t shared, unsigned), {
           const Kernel* kernel = kernel_of_handle(function);
           if (!kernel) return cudaErrorInvalidDeviceFunction;
           if (!blocks || block <= 0) return cudaErrorInvalidValue;
           *blocks = static_cast<int>(blocks_per_sm(*kernel, block, shared));
           return cudaSuccess;
         })

CUCO_API(cudaOccupancyMaxActiveBlocksPerMultiprocessor, (int* blocks, const void* function, int block, size_t shared), {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block, shared, 0);
})

CUCO_API(cudaOccupancyAvailableDynamicSMemPerBlock, (size_t * bytes, const void* function, int blocks, int block), {
  const Kernel* kernel = kernel_of_handle(function);
  if (!kernel) return cudaErrorInvalidDeviceFunction;
  if (!bytes || blocks <= 0 || block <= 0) return cudaErrorInvalidValue;
  const emu::MachineLimits& machine = emu::settings().machine;
  // What CUDA answers: an even share of the SM, without what the system takes per block (tried on an H200).
  const uint32_t share = machine.shared_per_sm / static_cast<uint32_t>(blocks) / 128 * 128;
  const uint32_t left = share - std::min(share, kernel->code->static_shared);
  *bytes = std::min(left, kernel->max_dynamic_shared);
  return cudaSuccess;
})

CUCO_API(cudaOccupancyMaxActiveClusters, (int*, const void*, const cudaLaunchConfig_t*), { return cudaErrorNotSupported; })
CUCO_API(cudaOccupancyMaxPotentialClusterSize, (int*, const void*, const cudaLaunchConfig_t*), {
  return cudaErrorNotSupported;
})

// Kernel launches: the checks that CUDA makes when a kernel is launched, and the stream operation.
#pragma once

#include "image.h"
#include "stream.h"

#include <cuda_runtime_api.h>

#include <optional>

namespace cuco::cuda {

struct LaunchShape {
  dim3 grid, block;
  size_t dynamic_shared = 0;
  bool cooperative = false;
  std::optional<int> priority;  // of the launch; otherwise the stream's
};

// The error that CUDA gives for this launch, or cudaSuccess.
cudaError_t check_launch(const Kernel& kernel, const LaunchShape& shape);

// Checks, copies the arguments, and gives the launch to the stream. `stream` nullptr: not a stream.
cudaError_t launch(Kernel* kernel, const LaunchShape& shape, void** arguments, Stream* stream);

}  // namespace cuco::cuda

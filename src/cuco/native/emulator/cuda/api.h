// How API functions are written here.
#pragma once

#include "host.h"
#include "stream.h"

#include <cuda_runtime_api.h>

// Defines an API function and its twin, which code compiled with -default-stream per-thread calls: the body sees
// `default_stream`, what a null stream means.
#define CUCO_BOTH(name, suffix, parameters, ...)                                        \
  extern "C" cudaError_t name parameters {                                              \
    [[maybe_unused]] constexpr auto default_stream = cuco::cuda::Default::legacy;       \
    return cuco::cuda::done([&]() -> cudaError_t __VA_ARGS__());                        \
  }                                                                                     \
  extern "C" cudaError_t name##suffix parameters {                                      \
    [[maybe_unused]] constexpr auto default_stream = cuco::cuda::Default::per_thread;   \
    return cuco::cuda::done([&]() -> cudaError_t __VA_ARGS__());                        \
  }

// The same for functions without a twin.
#define CUCO_API(name, parameters, ...) \
  extern "C" cudaError_t name parameters { return cuco::cuda::done([&]() -> cudaError_t __VA_ARGS__()); }

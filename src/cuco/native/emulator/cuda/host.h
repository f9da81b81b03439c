// The host side of each rank: last error, launch configurations, what it must not call now, and waiting.
#pragma once

#include "core.h"
#include "stream.h"

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

namespace cuco::cuda {

struct Host {
  cudaError_t last_error = cudaSuccess;
  double nominal_us = 0;              // rough time of its own: see Moment
  std::string forbidden;              // "" or why calls that synchronise are not allowed now
  struct Configuration {              // between <<<...>>> and the stub that it calls
    dim3 grid, block;
    size_t shared = 0;
    cudaStream_t stream = nullptr;
  };
  std::vector<Configuration> configurations;
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
};
Host& host(int rank);
inline Host& host() { return host(current_rank()); }

// Remembers `code` as the calling rank's last error unless it is success or cudaErrorNotReady; returns it.
cudaError_t done(cudaError_t code);

// What the rank's host code has done so far, as a point that stream work begins after.
MomentPtr host_moment(int rank);

// Suspends the calling host fiber until all moments are reached, and learns what happened before them. `call` names the
// API function; it is refused with a finding while synchronisation is forbidden.
void wait_for(const std::vector<MomentPtr>& moments, const std::string& call);
// Ends the run with a finding if the rank must not synchronise now.
void check_may_synchronise(const std::string& call);

// A host call that costs time on the host, for the trace.
void trace_call(const char* name);

[[noreturn]] void unsupported(const std::string& what);

}  // namespace cuco::cuda

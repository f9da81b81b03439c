// What the driver and other rooms of the runner call, beside the CUDA runtime API itself.
//
// - use_kernels() once, before host libraries are loaded; each rank's copy is then loaded from a host fiber of its rank.
// - Work of their own kind in streams: enqueue_call() here, gates in stream.h, captured calls in capture.h.
#pragma once

#include "image.h"

#include <cuda_runtime_api.h>

#include <functional>
#include <string>

namespace cuco::cuda {

// Calls `body` on the scheduler's stack when `stream` gets there; it must not block. In a capture: at each launch.
cudaError_t enqueue_call(cudaStream_t stream, std::string name, std::function<void()> body);

// Number of the stream in the trace; -1: not a stream of the calling rank.
int stream_number(cudaStream_t stream);
// What has happened before the operation that `stream` is at.
const Clock& stream_clock(cudaStream_t stream);

// While `why` is not empty, calls of the current rank that synchronise the device end the run with "CALL why".
void forbid_synchronisation(std::string why);

// Suspends the calling host fiber until nothing is queued in any stream of its rank. Not a CUDA call: allowed always,
// and the host learns nothing by it that a program could rely on.
void drain_streams();

}  // namespace cuco::cuda

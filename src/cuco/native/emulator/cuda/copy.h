// Copies and fills as stream work.
#pragma once

#include "stream.h"

#include <cuda_runtime_api.h>

namespace cuco::cuda {

enum class Place { device, pinned, pageable };
Place place_of(const void* address);

// A rectangle of bytes: `rows` lines of `width` bytes; one line is a plain copy.
struct Rectangle {
  void* to = nullptr;
  size_t to_pitch = 0;
  const void* from = nullptr;
  size_t from_pitch = 0;
  size_t width = 0, rows = 1;
  size_t bytes() const { return width * rows; }
};

// In stream order. `call` is the API function, for messages. Pageable host memory is read at the call, and written
// before the call returns, as CUDA does; `blocking` calls return when host memory is no longer used.
cudaError_t copy(Stream* stream, const Rectangle& what, cudaMemcpyKind kind, bool blocking, const char* call);

struct Fill {
  void* to = nullptr;
  size_t pitch = 0, width = 0, rows = 1;
  uint32_t value = 0;
};
cudaError_t fill(Stream* stream, const Fill& what, const char* call);

}  // namespace cuco::cuda

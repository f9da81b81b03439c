#include "pinned.h"

#include <cuda_runtime.h>

#include <stdexcept>
#include <utility>

namespace cuco::driver {

Pinned::Pinned(size_t bytes) : bytes_(bytes) {
  void *memory = nullptr;
  if (cudaMallocHost(&memory, bytes ? bytes : 1) != cudaSuccess) throw std::runtime_error("no page-locked memory");
  data_ = static_cast<char *>(memory);
}

Pinned::~Pinned() {
  if (data_) cudaFreeHost(data_);
}

Pinned::Pinned(Pinned &&other) noexcept { *this = std::move(other); }

Pinned &Pinned::operator=(Pinned &&other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace cuco::driver

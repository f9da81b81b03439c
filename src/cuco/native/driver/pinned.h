// Page-locked host memory: what a stream copies from and to without blocking the host.
#pragma once

#include <cstddef>

namespace cuco::driver {

class Pinned {
 public:
  Pinned() = default;
  explicit Pinned(size_t bytes);   // throws std::runtime_error when there is none
  ~Pinned();
  Pinned(Pinned &&other) noexcept;
  Pinned &operator=(Pinned &&other) noexcept;

  char *data() const { return data_; }
  size_t size() const { return bytes_; }

 private:
  char *data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace cuco::driver

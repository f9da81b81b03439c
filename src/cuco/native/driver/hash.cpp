#include "hash.h"

#include <cstring>

namespace cuco::driver {

uint64_t keyed_hash(const void *data, size_t bytes, const uint64_t key[2]) {
  const char *at = static_cast<const char *>(data);
  uint64_t sum = mix(key[1] ^ bytes), position = key[0];
  for (size_t offset = 0; offset < bytes; offset += 8) {
    uint64_t word = 0;
    size_t left = bytes - offset;
    std::memcpy(&word, at + offset, left < 8 ? left : 8);
    position += 0x9e3779b97f4a7c15ull;
    sum += mix(word ^ mix(position));
  }
  return sum;
}

}  // namespace cuco::driver

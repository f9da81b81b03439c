// The keyed hash of an output. Position-dependent and order-free, so that it can be computed by any number of threads;
// cuco/testbed/hashing.py computes the same from a snapshot.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuco::driver {

inline uint64_t mix(uint64_t x) {   // the finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection that avalanches
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Of the 8-byte words of `data`, the last one padded with zeros.
uint64_t keyed_hash(const void *data, size_t bytes, const uint64_t key[2]);

}  // namespace cuco::driver

// NCCL data types: sizes, names and element-wise reduction with the rounding NCCL applies (the running value is
// rounded to the type after every step of a chain, as a ring does).
#pragma once

#include "headers.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cuco::nccl {

// Bytes per element, 0 for a value that is no NCCL data type.
size_t type_size(ncclDataType_t type);

// "float32", "bfloat16", ... as messages and traces print them; "type 99" never happens: unknown values give "unknown".
const char* type_name(ncclDataType_t type);

bool type_is_integer(ncclDataType_t type);

enum class Fold { sum, prod, max, min };

// What a reduction handle means once the communicator has resolved it.
struct Reduction {
  Fold fold = Fold::sum;
  bool premultiply = false;  // scale every rank's input by its own scalar first (ncclAvg of floats, PreMulSum)
  uint64_t scalar = 0;       // the scalar's bits, in the data type, when premultiply
  const void* scalar_in_device = nullptr;  // PreMulSum with ncclScalarDevice: read when the collective runs
  int divide = 0;            // integer ncclAvg: divide the sum by this, truncating towards zero
};

// One rank's contribution.
struct Source {
  const void* data;
  uint64_t scalar;  // used when the reduction premultiplies
};

// dst[i] = fold over sources in order. dst may be one of the sources (element i is written after it is read).
void reduce_elements(void* dst, const std::vector<Source>& sources, size_t count, ncclDataType_t type,
                     const Reduction& reduction);

// Bits of 1/n in a floating data type, as ncclAvg needs them.
uint64_t reciprocal_bits(int n, ncclDataType_t type);

}  // namespace cuco::nccl

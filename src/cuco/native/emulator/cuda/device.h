// Devices: a rank has one GPU, and sees those of its own NVLink domain, numbered from 0.
#pragma once

#include "core.h"

namespace cuco::cuda {

int device_count();            // of the calling rank's domain
int device_of_rank(int rank);  // its number there; -1 if it lies in another domain
int rank_of_device(int device);

constexpr int kLeastPriority = 0, kGreatestPriority = -5;  // as on Hopper

}  // namespace cuco::cuda

// A job's "set KEY VALUE" lines as the emulator's settings.
#pragma once

#include "job.h"

#include "../emulator/core/settings.h"

namespace cuco::driver {

// Throws std::runtime_error naming a key or value that is not understood.
emu::Settings settings_of(const Job &job);

// The ranks that the driver slows down during steps (holder.h).
struct SlowRanks {
  std::vector<int> ranks;   // set hold 0,2
  bool changing = false;    // set stutter 1: other ones each time; of all ranks if none is named
  uint64_t burst = 4;       // set burst N: rounds that all may run, at most, before ranks are frozen again
};
SlowRanks slow_ranks_of(const Job &job);

}  // namespace cuco::driver

// A job's "set KEY VALUE" lines as the emulator's settings.
#pragma once

#include "job.h"

#include "../emulator/core/settings.h"

namespace cuco::driver {

// Throws std::runtime_error naming a key or value that is not understood.
emu::Settings settings_of(const Job &job);

// The ranks that the driver slows down during steps, and how many rounds they run at most before they are slow again.
struct SlowRanks {
  std::vector<int> ranks;   // set hold 0,2
  uint64_t burst = 3;       // set burst N
};
SlowRanks slow_ranks_of(const Job &job);

}  // namespace cuco::driver

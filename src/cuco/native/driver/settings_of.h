// A job's "set KEY VALUE" lines as the emulator's settings.
#pragma once

#include "job.h"

#include "../emulator/core/settings.h"

namespace cuco::driver {

// Throws std::runtime_error naming a key or value that is not understood.
emu::Settings settings_of(const Job &job);

}  // namespace cuco::driver

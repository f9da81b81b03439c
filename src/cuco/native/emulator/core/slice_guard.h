// Validity of timing slices at launch (slice_guard.cpp).
#pragma once

#include "grid.h"

namespace cuco::emu {

// Ends the run with a finding (kind unsupported, rule slice) if this launch cannot be timed by its slice; remembers the
// allocations that it leaves unfilled. Does nothing for the other variants.
void check_slice(const GridLaunch& launch);

}  // namespace cuco::emu

// Timing slices: what their validity depends on beside the launches (slice.cpp).
#pragma once

#include <cstdint>

namespace cuco::emu {

// The allocation at this address holds data that the run was not given: a slice must not let it decide control.
void mark_unfilled(uint64_t address);

}  // namespace cuco::emu

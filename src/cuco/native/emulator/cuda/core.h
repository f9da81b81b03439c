// What this room uses of the core, under its own names, and a few words about the calling rank.
#pragma once

#include "../core/clock.h"
#include "../core/finding.h"
#include "../core/grid.h"
#include "../core/memory.h"
#include "../core/scheduler.h"
#include "../core/trace.h"

namespace cuco::cuda {

using emu::Actor;
using emu::Clock;
using emu::Record;

inline int current_rank() { return emu::scheduler().current_rank(); }
inline void made_progress() { emu::scheduler().made_progress(); }

}  // namespace cuco::cuda

// Which waits accepted what: evidence for a wrong result. Steps are those of the driver (contracts 2); an update that was
// made in an earlier step than the wait that accepts it may be meant (a credit) or stale (a flag that was never renewed),
// so it accuses nobody by itself.
#pragma once

#include "../isa/abi.h"
#include "clock.h"
#include "finding.h"

namespace cuco::emu {

// The step that a rank's stream is in; what it launches from now on belongs to it.
void set_step(int rank, int step);
int step_of(int rank);

// A strong load of another agent's update returned; called for every such load by sync words.
void note_wait(EmuThread* self, uint32_t site, uint64_t address, uint64_t value, AgentId writer);

// Waits of `rank` in `step` that accepted an update from an earlier step: a detail line each, and the first one's place as
// the finding's. Returns whether there were any. Where there were, the kind becomes stale-signal.
bool explain_stale_waits(Finding& finding, int rank, int step);

}  // namespace cuco::emu

// Asynchronous copies (internal to the core). They land as late as the program's waits allow, so that a missing wait
// reads old data and a source that is reused too early spoils the copy.
#pragma once

#include "block.h"

namespace cuco::emu {

void perform(Block& block, Copy& copy);                 // reads the source now unless it was taken before; writes
void take_source(Copy& copy);                           // reads the source; the write may come later

}  // namespace cuco::emu

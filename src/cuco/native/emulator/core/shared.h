// Strong operations on shared memory (internal to the core). No histories: the threads of a CTA see the newest value.
#pragma once

#include "block.h"

namespace cuco::emu {

void shared_load(Thread* t, uint64_t address, void* out, uint32_t size, uint32_t mode, uint32_t site);
void shared_store(Thread* t, uint64_t address, const void* value, uint32_t size, uint32_t mode, uint32_t site);
void shared_atomic(Thread* t, uint64_t address, void* old, const void* operand, const void* compare, EmuAtomOp op,
                   EmuType type, uint32_t mode, uint32_t site);
// Ends the run unless the bytes lie in the CTA's shared memory.
void check_shared(Thread* t, uint64_t address, uint32_t size, uint32_t site);

}  // namespace cuco::emu

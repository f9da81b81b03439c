// Sync words: the modification histories behind strong loads, stores and atomics on global memory.
//
// Memory always holds the newest value. Besides, every word that a strong store or atomic touches keeps its versions,
// each with the writer's event and release stamp. A strong load returns a legal version: never older than what
// happens-before or the thread's earlier reads force. In policy one_at_a_time the oldest legal one; a thread that spins
// (same site, same address, nothing else in between) advances one version per confirmed iteration and is suspended while
// there is no next version. Iterations of a spin are taken back from all counters, so edges, counts and modelled time do
// not depend on the schedule. Weak writes are noticed when a strong operation, or a stuck run, finds memory changed; they
// carry no ordering.
#pragma once

#include "../isa/abi.h"
#include "clock.h"

#include <cstdint>
#include <string>

namespace cuco::emu {

using WordId = uint32_t;   // of the trace; 0 is none

// ---- for the NIC, the host runtime and collectives. Addresses may be aliases; size 1, 2, 4 or 8, aligned.
// The stamp is what a waiter learns by acquiring (system scope). Both wake waiters. The new value is returned.
uint64_t agent_store(uint64_t address, uint64_t value, uint32_t size, const Stamp& stamp);
uint64_t agent_add(uint64_t address, uint64_t delta, uint32_t size, const Stamp& stamp);

// Everything that was released into [address, address + bytes) by strong stores and atomics: what a NIC that reads a
// descriptor there learns. `forget` drops the histories, as the reader now owns the range.
Clock released_into(uint64_t address, uint64_t bytes);
void forget(uint64_t address, uint64_t bytes);

// Words of NCCL's own protocols (proxy indices, descriptor slots, ...): every access counts as acquire and release of
// system scope, because NCCL relies on it even where the PTX says relaxed.
void mark_internal(uint64_t address, uint64_t bytes);

// Names for messages and the trace: "signal 3 of context 0", "LSA barrier 2 inbox from rank 1". Word i of `stride` bytes
// in the range gets name + " " + i if stride > 0.
void name_words(uint64_t address, uint64_t bytes, std::string name, uint32_t stride = 0);
std::string name_of_word(uint64_t address);       // falls back to Memory::describe

// The trace's id of the word at this address; writes the word's record on first use.
WordId word_id(uint64_t address);

}  // namespace cuco::emu

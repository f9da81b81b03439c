// Strong loads, stores, atomics and fences of translated code on global memory.
#include "../isa/atomics.h"
#include "memory.h"
#include "poll.h"
#include "runtime.h"
#include "shared.h"

#include <cstring>

namespace cuco::emu {
namespace {

char* pointer(uint64_t address) { return reinterpret_cast<char*>(address); }

// Memory that other threads cannot see, or only those of the CTA.
bool is_private(uint64_t address) { return Memory::in_stack(address) || Memory::in_params(address); }

// Checks the access and counts remote traffic; the canonical address.
uint64_t enter(Thread* t, uint64_t address, uint32_t size, bool write, uint32_t site) {
  const uint64_t canonical = memory().canonical(address);
  const int rank = memory().rank_of(canonical);
  if (!memory().valid(canonical, size))
    fail_at(t, site, "out-of-bounds", "strong-access",
            std::string(write ? "a strong store or atomic" : "a strong load") + " of " + std::to_string(size) +
                " bytes at " + memory().describe(address));
  if (address % size)
    fail_at(t, site, "out-of-bounds", "misaligned",
            "a misaligned access of " + std::to_string(size) + " bytes at " + memory().describe(address));
  if (rank != t->cta().grid->launch.rank || Memory::in_pinned(canonical))
    t->cta().phases.remote(t->cta(), Memory::in_pinned(canonical) ? -1 : rank, size, write);
  return canonical;
}

const Version& spin_read(Thread* t, uint64_t address, uint32_t size, uint16_t mask, uint32_t site) {
  for (;;) {
    Word& word = word_at(address, size);
    const Poll& poll = poll_again(t, address, site);
    const Version* next = next_version(word, poll.seen, mask);
    const bool wait_longer = settings().reads == ReadPolicy::oldest && !t->extra->released;
    const bool released = t->extra->released;
    if (next && !wait_longer) {
      t->extra->released = false;
      return settings().reads == ReadPolicy::one_at_a_time ? *next : word.newest();
    }
    if (released) {
      t->extra->released = false;
      return version_with(word, poll.seen);
    }
    wait_for_word(t, word, site);
  }
}

const Version& scan_read(Thread* t, uint64_t address, uint32_t size, uint16_t mask, uint32_t site) {
  const uint64_t seen = poll_again(t, address, site).seen;
  if (!next_version(word_at(address, size), seen, mask)) yield_thread(t, site);
  Word& word = word_at(address, size);
  const Version* next = next_version(word, seen, mask);
  if (!next) return version_with(word, seen);
  return settings().reads == ReadPolicy::one_at_a_time ? *next : word.newest();
}

void load(Thread* t, uint64_t given, void* out, uint32_t size, uint32_t mode, uint32_t site) {
  const uint64_t address = enter(t, given, size, false, site);
  const Visit visit = classify(t, poll_at(t, address, site));
  const uint16_t mask = word_at(address, size).bytes_mask(address, size);
  const Version* version;
  if (visit == Visit::spin) version = &spin_read(t, address, size, mask, site);
  else if (visit == Visit::scan) version = &scan_read(t, address, size, mask, site);
  else if (visit == Visit::free_turn) version = &version_with(word_at(address, size), poll_again(t, address, site).seen);
  else version = &first_read(t, word_at(address, size));
  Word& word = word_at(address, size);
  std::memcpy(out, version->value + (address - word.address), size);
  const uint64_t serial = version->serial;
  // The same answer as the last time at this place: everything that it tells is known.
  const bool known = visit != Visit::first && poll_again(t, address, site).seen == serial;
  if (!known) took(t, word, *version, EMU_MODE_ORDER(mode), EMU_MODE_SCOPE(mode), site, true);
  leave_poll(t, poll_again(t, address, site), serial);
}

void store(Thread* t, uint64_t given, const void* value, uint32_t size, uint32_t mode, uint32_t site) {
  const uint64_t address = enter(t, given, size, true, site);
  t->more().strong_calls++;
  Word& word = word_at(address, size);
  std::memcpy(pointer(address), value, size);
  const int rank = t->cta().grid->launch.rank;
  const int64_t number = ++word.stored;
  Version& version = append(word, word.bytes_mask(address, size), event_of(t), rank);
  version.number = number;
  publish(t, version, EMU_MODE_ORDER(mode), EMU_MODE_SCOPE(mode), is_internal(address));
  t->cta().phases.event(t, Sync::store, word.id, number);
}

struct Atomic { const void* operand; const void* compare; EmuAtomOp op; EmuType type; };

// What the operation would leave in the cell, which holds `before`.
void result_of(const Atomic& a, const void* before, void* after, uint32_t size) {
  std::memcpy(after, before, size);
  emu_atomic_apply(a.op, a.type, after, a.operand, a.compare, nullptr);
}

// By how much an integer addition changed the word; 0 if it is no addition.
int64_t delta_of(const Atomic& a, const void* before, const void* after, uint32_t size) {
  if (a.op == EMU_CAS || a.op == EMU_EXCH || size > 8) return 0;
  if (a.op != EMU_ADD && a.op != EMU_INC && a.op != EMU_DEC) return 0;
  uint64_t x = 0, y = 0;
  std::memcpy(&x, before, size);
  std::memcpy(&y, after, size);
  return size == 4 ? static_cast<int32_t>(static_cast<uint32_t>(y - x)) : static_cast<int64_t>(y - x);
}

bool is_real(EmuType type) { return type >= EMU_F16; }

// Atomics read the newest version. One that changes nothing, repeated, is a spin (a lock, a poll by atomicAdd of 0).
void wait_for_effect(Thread* t, const Atomic& a, uint64_t address, uint32_t size, uint32_t site) {
  if (classify(t, poll_at(t, address, site)) != Visit::spin) return;
  for (;;) {
    unsigned char after[16];
    Word& word = word_at(address, size);
    result_of(a, pointer(address), after, size);
    if (std::memcmp(after, pointer(address), size) || word.newest().serial != poll_again(t, address, site).seen) return;
    if (t->extra->released) break;
    wait_for_word(t, word, site);
  }
  t->extra->released = false;
}

void update(Thread* t, Word& word, uint64_t address, uint32_t size, uint32_t mode, int64_t delta) {
  const int rank = t->cta().grid->launch.rank;
  Version& version = append(word, word.bytes_mask(address, size), event_of(t), rank);
  version.rmw = true;
  version.add = delta != 0;
  version.number = delta ? word.added += delta : ++word.stored;
  publish(t, version, EMU_MODE_ORDER(mode), EMU_MODE_SCOPE(mode), is_internal(address));
  t->cta().phases.event(t, delta ? Sync::add : Sync::store, word.id, delta ? delta : version.number);
}

void atomic(Thread* t, uint64_t given, void* old, const Atomic& a, uint32_t size, uint32_t mode, uint32_t site) {
  const uint64_t address = enter(t, given, size, true, site);
  if (is_real(a.type) && !find_word(address)) {   // floating-point sums are data, unless somebody polls them
    emu_atomic_apply(a.op, a.type, pointer(address), a.operand, a.compare, old);
    return;
  }
  if (old) wait_for_effect(t, a, address, size, site);
  else t->more().strong_calls++;
  Word& word = word_at(address, size);
  unsigned char before[16];
  std::memcpy(before, pointer(address), size);
  if (old) {
    std::memcpy(old, before, size);
    const Version newest = word.newest();
    const EmuOrder order = EMU_MODE_ORDER(mode);
    took(t, word, newest, order, EMU_MODE_SCOPE(mode), site, order >= EMU_ACQUIRE && order != EMU_MMIO);
  }
  emu_atomic_apply(a.op, a.type, pointer(address), a.operand, a.compare, nullptr);
  if (std::memcmp(before, pointer(address), size))
    update(t, word, address, size, mode, delta_of(a, before, pointer(address), size));
  if (old) leave_poll(t, poll_again(t, address, site), word.newest().serial);
}

}  // namespace
}  // namespace cuco::emu

using namespace cuco::emu;

extern "C" void emu_ld(EmuThread* self, uint64_t address, void* out, uint32_t size, uint32_t mode, uint32_t site) {
  Thread* t = thread_of(self);
  if (Memory::in_shared(address)) shared_load(t, address, out, size, mode, site);
  else if (is_private(address)) std::memcpy(out, pointer(address), size);
  else load(t, address, out, size, mode, site);
}

extern "C" void emu_st(EmuThread* self, uint64_t address, const void* value, uint32_t size, uint32_t mode,
    uint32_t site) {
  Thread* t = thread_of(self);
  if (Memory::in_shared(address)) shared_store(t, address, value, size, mode, site);
  else if (is_private(address)) std::memcpy(pointer(address), value, size);
  else store(t, address, value, size, mode, site);
}

extern "C" void emu_atom(EmuThread* self, uint64_t address, void* old, const void* operand, const void* compare,
                         EmuAtomOp op, EmuType type, uint32_t mode, uint32_t site) {
  Thread* t = thread_of(self);
  const uint32_t size = isa::emu_type_bytes(type);
  if (is_private(address)) emu_atomic_apply(op, type, pointer(address), operand, compare, old);
  else if (Memory::in_shared(address)) shared_atomic(t, address, old, operand, compare, op, type, mode, site);
  else atomic(t, address, old, {operand, compare, op, type}, size, mode, site);
}

extern "C" void emu_fence(EmuThread* self, EmuOrder order, EmuScope scope, uint32_t) {
  Thread* t = thread_of(self);
  Extra& extra = t->more();
  if (order != EMU_RELEASE) {
    learn(t, extra.relaxed);
    extra.relaxed = Clock();
  }
  if (order == EMU_ACQUIRE) return;
  extra.fence = release_stamp(t);
  extra.fence_scope = scope;
}

extern "C" void emu_fence_proxy(EmuThread*, EmuProxy, uint32_t) {}

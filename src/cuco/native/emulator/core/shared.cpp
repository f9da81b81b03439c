#include "shared.h"

#include "../isa/atomics.h"
#include "finding.h"
#include "poll.h"
#include "runtime.h"

#include <cstring>

namespace cuco::emu {
namespace {

char* pointer(uint64_t address) { return reinterpret_cast<char*>(address); }

bool acquires(uint32_t mode) {
  const EmuOrder order = EMU_MODE_ORDER(mode);
  return order == EMU_ACQUIRE || order == EMU_ACQ_REL || order == EMU_SC;
}

bool releases(uint32_t mode) {
  const EmuOrder order = EMU_MODE_ORDER(mode);
  return order == EMU_RELEASE || order == EMU_ACQ_REL || order == EMU_SC;
}

void learn_from(Thread* t, uint64_t address, uint32_t mode) {
  Block& block = t->cta();
  if (block.shared_clocks.empty()) return;
  auto it = block.shared_clocks.find(address);
  if (it == block.shared_clocks.end()) return;
  if (acquires(mode)) learn(t, it->second);
  else t->more().relaxed.join(it->second);
}

void publish_to(Thread* t, uint64_t address, uint32_t mode) {
  if (releases(mode)) release_stamp(t).join_into(t->cta().shared_clocks[address]);
  else if (t->extra && t->extra->fence) t->extra->fence.join_into(t->cta().shared_clocks[address]);
}

// Suspends a spinning thread until the bytes have changed, or it is told to go on regardless.
void wait_for_change(Thread* t, uint64_t address, uint32_t size, uint32_t site) {
  SharedPoll poll{t, size, {}};
  std::memcpy(poll.value, pointer(address), size);
  t->wait_address = address;
  t->cta().shared_polls.push_back(poll);
  suspend(t, Wait::shared_word, site);
  t->extra->released = false;
}

uint64_t serial_of(uint64_t address, uint32_t size) {
  uint64_t value = 0;
  std::memcpy(&value, pointer(address), std::min(size, 8u));
  return value + 1;
}

}  // namespace

void check_shared(Thread* t, uint64_t address, uint32_t size, uint32_t site) {
  const uint64_t offset = address - reinterpret_cast<uint64_t>(t->cta().shared);
  if (offset < t->cta().shared_bytes && offset + size <= t->cta().shared_bytes) return;
  fail_at(t, site, "out-of-bounds", "shared-bounds",
          "an access of " + std::to_string(size) + " bytes at offset " + std::to_string(static_cast<int64_t>(offset)) +
              " of shared memory, which has " + std::to_string(t->cta().shared_bytes) + " bytes");
}

void shared_load(Thread* t, uint64_t address, void* out, uint32_t size, uint32_t mode, uint32_t site) {
  check_shared(t, address, size, site);
  const Visit visit = classify(t, poll_at(t, address, site));
  if (visit == Visit::spin) wait_for_change(t, address, size, site);
  else if (visit == Visit::scan) yield_thread(t, site);
  std::memcpy(out, pointer(address), size);
  learn_from(t, address, mode);
  leave_poll(t, poll_again(t, address, site), serial_of(address, size));
}

void shared_store(Thread* t, uint64_t address, const void* value, uint32_t size, uint32_t mode, uint32_t site) {
  check_shared(t, address, size, site);
  t->more().strong_calls++;
  std::memcpy(pointer(address), value, size);
  publish_to(t, address, mode);
  scheduler().made_progress();
}

void shared_atomic(Thread* t, uint64_t address, void* old, const void* operand, const void* compare, EmuAtomOp op,
                   EmuType type, uint32_t mode, uint32_t site) {
  const uint32_t size = isa::emu_type_bytes(type);
  check_shared(t, address, size, site);
  const bool lock = old && (op == EMU_CAS || op == EMU_EXCH);
  unsigned char before[16];
  std::memcpy(before, pointer(address), size);
  if (lock) {
    unsigned char after[16];
    std::memcpy(after, before, size);
    emu_atomic_apply(op, type, after, operand, compare, nullptr);
    const bool idle = std::memcmp(before, after, size) == 0;
    if (classify(t, poll_at(t, address, site)) == Visit::spin && idle) wait_for_change(t, address, size, site);
  }
  learn_from(t, address, mode);
  emu_atomic_apply(op, type, pointer(address), operand, compare, old);
  publish_to(t, address, mode);
  if (lock) leave_poll(t, poll_again(t, address, site), serial_of(address, size));
}

bool wake_shared_polls(Block& block) {
  return std::erase_if(block.shared_polls, [](const SharedPoll& poll) {
           if (!std::memcmp(poll.value, pointer(poll.thread->wait_address), poll.bytes)) return false;
           make_ready(poll.thread);
           return true;
         }) > 0;
}

void forget_shared(Block& block) {
  block.shared_clocks.clear();
  block.shared_polls.clear();
}

}  // namespace cuco::emu

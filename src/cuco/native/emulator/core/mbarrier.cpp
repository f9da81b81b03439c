// mbarrier objects in shared memory, and the asynchronous copies that complete on them.
#include "copies.h"
#include "finding.h"
#include "runtime.h"
#include "shared.h"

#include <cstring>

namespace cuco::emu {
namespace {

MBarrier& object(Thread* t, uint64_t address, uint32_t site) {
  check_shared(t, address, 8, site);
  auto& all = t->cta().mbarriers;
  auto it = all.find(address);
  if (it == all.end())
    fail_at(t, site, "uninitialised", "mbarrier-init",
            "an mbarrier at offset " + std::to_string(address - reinterpret_cast<uint64_t>(t->cta().shared)) +
                " of shared memory is used but was not initialised");
  return it->second;
}

// The word itself shows phase and pending count, so that a copy or overwrite of it is visible to a debugger.
void show(uint64_t address, const MBarrier& bar) {
  const uint64_t word = static_cast<uint64_t>(bar.phase) << 32 | bar.pending;
  std::memcpy(reinterpret_cast<char*>(address), &word, sizeof word);
}

void wake(MBarrier& bar) {
  std::vector<Thread*> woken;
  woken.swap(bar.waiting);
  for (Thread* t : woken) make_ready(t);
}

void maybe_complete(uint64_t address, MBarrier& bar) {
  if (bar.pending == 0 && bar.tx == 0) {
    bar.phase++;
    bar.pending = bar.expected;
    scheduler().made_progress();
    wake(bar);
  }
  show(address, bar);
}

void count_down(Thread* t, uint64_t address, MBarrier& bar, uint32_t count, uint32_t site) {
  if (count > bar.pending)
    fail_at(t, site, "crash", "mbarrier-count",
            "more arrivals at an mbarrier than the " + std::to_string(bar.expected) + " it expects in a phase");
  bar.pending -= count;
  maybe_complete(address, bar);
}

bool passed(const MBarrier& bar, uint64_t value, bool by_parity) {
  const uint32_t phase = static_cast<uint32_t>(value >> 32);
  return by_parity ? (bar.phase & 1) != (value & 1) : bar.phase != phase;
}

}  // namespace

// Lets the copies land that complete on this object; true if there were any.
bool settle_mbarrier(Block& block, uint64_t address) {
  auto it = block.mbarriers.find(address);
  if (it == block.mbarriers.end()) return false;
  MBarrier& bar = it->second;
  if (bar.copies.empty() && bar.arrivals.empty()) return false;
  std::vector<Copy> copies;
  copies.swap(bar.copies);
  for (Copy& copy : copies) {
    perform(block, copy);
    bar.tx -= copy.bytes;
  }
  std::vector<CopyGroup> arrivals;
  arrivals.swap(bar.arrivals);
  for (CopyGroup& group : arrivals)
    for (Copy& copy : group) perform(block, copy);
  bar.pending -= std::min<uint32_t>(bar.pending, static_cast<uint32_t>(arrivals.size()));
  maybe_complete(address, bar);
  return true;
}

}  // namespace cuco::emu

using namespace cuco::emu;

extern "C" void emu_mbar_init(EmuThread* self, uint64_t address, uint32_t count, uint32_t site) {
  Thread* t = thread_of(self);
  check_shared(t, address, 8, site);
  if (address % 8) fail_at(t, site, "out-of-bounds", "misaligned", "a misaligned mbarrier");
  if (!count || count >= 1u << 20) fail_at(t, site, "crash", "mbarrier-count", "an mbarrier with an invalid count");
  MBarrier& bar = t->cta().mbarriers[address];
  bar = MBarrier();
  bar.expected = bar.pending = count;
  show(address, bar);
}

extern "C" void emu_mbar_inval(EmuThread* self, uint64_t address, uint32_t site) {
  Thread* t = thread_of(self);
  if (!object(t, address, site).waiting.empty())
    fail_at(t, site, "crash", "mbarrier-inval", "an mbarrier is invalidated while threads wait on it");
  t->cta().mbarriers.erase(address);
}

extern "C" uint64_t emu_mbar_arrive(EmuThread* self, uint64_t address, uint32_t count, uint32_t expect_tx, uint32_t drop,
                                    uint32_t mode, uint32_t site) {
  Thread* t = thread_of(self);
  MBarrier& bar = object(t, address, site);
  const uint64_t token = static_cast<uint64_t>(bar.phase) << 32 | bar.pending;
  if (EMU_MODE_ORDER(mode) != EMU_RELAXED) release_stamp(t).join_into(bar.learnt);
  bar.tx += expect_tx;
  if (drop) bar.expected -= std::min(drop, bar.expected);
  count_down(t, address, bar, count, site);
  return token;
}

extern "C" void emu_mbar_tx(EmuThread* self, uint64_t address, int64_t delta, uint32_t, uint32_t site) {
  Thread* t = thread_of(self);
  MBarrier& bar = object(t, address, site);
  bar.tx += delta;
  maybe_complete(address, bar);
}

extern "C" uint32_t emu_mbar_test(EmuThread* self, uint64_t address, uint64_t value, uint32_t by_parity,
    uint32_t may_block,
                                  uint32_t mode, uint32_t site) {
  Thread* t = thread_of(self);
  object(t, address, site);
  Block& block = t->cta();
  // Copies land as late as somebody would wait for them. A phase can end before they do only in error.
  if (!passed(object(t, address, site), value, by_parity)) settle_mbarrier(block, address);
  if (!passed(object(t, address, site), value, by_parity)) {
    if (may_block) {
      object(t, address, site).waiting.push_back(t);
      t->wait_address = address;
      suspend(t, Wait::mbarrier, site);
    } else {
      yield_thread(t, site);
    }
    if (!passed(object(t, address, site), value, by_parity)) settle_mbarrier(block, address);
  }
  MBarrier& bar = object(t, address, site);
  if (!passed(bar, value, by_parity)) return 0;
  if (EMU_MODE_ORDER(mode) != EMU_RELAXED) learn(t, bar.learnt);
  return 1;
}

extern "C" void emu_cp_async_mbar(EmuThread* self, uint64_t address, uint32_t noinc, uint32_t site) {
  Thread* t = thread_of(self);
  MBarrier& bar = object(t, address, site);
  CopyQueue& queue = t->more().copies;
  CopyGroup all;
  for (CopyGroup& group : queue.committed) std::move(group.begin(), group.end(), std::back_inserter(all));
  queue.committed.clear();
  std::move(queue.open.begin(), queue.open.end(), std::back_inserter(all));
  queue.open.clear();
  if (!noinc) bar.pending++;
  release_stamp(t).join_into(bar.learnt);
  bar.arrivals.push_back(std::move(all));
  if (settings().eager_copies) settle_mbarrier(t->cta(), address);
  for (Thread* waiting : bar.waiting) make_ready(waiting);
  bar.waiting.clear();
}

#include "copies.h"

#include "../isa/atomics.h"
#include "finding.h"
#include "memory.h"
#include "runtime.h"
#include "shared.h"

#include <cstring>

namespace cuco::emu {
namespace {

char* pointer(uint64_t address) { return reinterpret_cast<char*>(address); }

void check(Thread* t, uint64_t address, uint32_t bytes, bool write, uint32_t site) {
  if (!bytes || Memory::in_stack(address) || Memory::in_params(address)) return;
  if (Memory::in_shared(address)) return check_shared(t, address, bytes, site);
  const uint64_t canonical = memory().canonical(address);
  if (!memory().valid(canonical, bytes))
    fail_at(t, site, "out-of-bounds", "async-copy",
            "an asynchronous copy of " + std::to_string(bytes) + " bytes " + (write ? "to " : "from ") +
                memory().describe(address));
  Block& block = t->cta();
  const int rank = memory().rank_of(canonical);
  if (rank != block.grid->launch.rank) block.phases.remote(block, rank, bytes, write);
  if (AccessObserver* observer = access_observer(); observer && block.grid->launch.module->module->variant == EMU_HOOKS)
    observer->global_access(t, canonical, bytes, write ? EMU_WRITE : EMU_READ, site);
}

void check_copy(Thread* t, const Copy& copy) {
  check(t, copy.src, copy.source_bytes, false, copy.site);
  check(t, copy.dst, copy.bytes, true, copy.site);
}

void perform_all(Block& block, CopyGroup& group) {
  for (Copy& copy : group) perform(block, copy);
  if (!group.empty()) scheduler().made_progress();
}

// Performs committed groups until `left` remain.
void drain(Block& block, CopyQueue& queue, size_t left) {
  while (queue.committed.size() > left) {
    CopyGroup group = std::move(queue.committed.front());
    queue.committed.pop_front();
    perform_all(block, group);
  }
}

// A bulk copy whose completion is announced on an mbarrier, or by its thread's bulk groups.
void start_bulk(Thread* t, Copy copy, uint64_t mbar, uint32_t site) {
  check_copy(t, copy);
  Block& block = t->cta();
  if (!mbar) {
    t->more().bulk.open.push_back(std::move(copy));
    if (settings().eager_copies) perform(block, t->extra->bulk.open.back());
    return;
  }
  auto it = block.mbarriers.find(mbar);
  if (it == block.mbarriers.end())
    fail_at(t, site, "uninitialised", "mbarrier-init", "a bulk copy completes on an mbarrier that was not initialised");
  it->second.copies.push_back(std::move(copy));
  for (Thread* waiting : it->second.waiting) make_ready(waiting);
  it->second.waiting.clear();
  if (settings().eager_copies) settle_mbarrier(block, mbar);
}

}  // namespace

void take_source(Copy& copy) {
  if (copy.done || copy.source_taken) return;
  copy.taken.assign(pointer(copy.src), pointer(copy.src) + copy.source_bytes);
  copy.source_taken = true;
}

void perform(Block&, Copy& copy) {
  if (copy.done) return;
  if (copy.reduces) take_source(copy);
  copy.done = true;
  if (!copy.reduces) {
    std::memcpy(pointer(copy.dst), copy.source_taken ? static_cast<const void*>(copy.taken.data()) : pointer(copy.src),
        copy.source_bytes);
    std::memset(pointer(copy.dst) + copy.source_bytes, 0, copy.bytes - copy.source_bytes);
    return;
  }
  const uint32_t size = isa::emu_type_bytes(copy.type);
  for (uint32_t at = 0; at + size <= copy.bytes; at += size)
    emu_atomic_apply(copy.op, copy.type, pointer(copy.dst + at), copy.taken.data() + at, nullptr, nullptr);
}

void finish_copies(Block& block, Thread* t) {
  Extra& extra = *t->extra;
  drain(block, extra.copies, 0);
  perform_all(block, extra.copies.open);
  for (CopyGroup& group : extra.bulk.committed) block.late_writes.committed.push_back(std::move(group));
  if (!extra.bulk.open.empty()) block.late_writes.committed.push_back(std::move(extra.bulk.open));
}

void finish_late_writes(Block& block) {
  drain(block, block.late_writes, 0);
  for (auto& [address, bar] : block.mbarriers) settle_mbarrier(block, address);
}

}  // namespace cuco::emu

using namespace cuco::emu;

extern "C" void emu_cp_async(EmuThread* self, uint64_t dst, uint64_t src, uint32_t size, uint32_t src_size,
    uint32_t site) {
  Thread* t = thread_of(self);
  Copy copy{.dst = dst, .src = src, .bytes = size, .source_bytes = std::min(src_size, size), .site = site};
  check_copy(t, copy);
  if (settings().eager_copies) perform(t->cta(), copy);
  t->more().copies.open.push_back(std::move(copy));
}

extern "C" void emu_cp_async_commit(EmuThread* self, uint32_t) {
  CopyQueue& queue = thread_of(self)->more().copies;
  queue.committed.push_back(std::move(queue.open));
  queue.open.clear();
}

extern "C" void emu_cp_async_wait(EmuThread* self, uint32_t groups_left, uint32_t) {
  Thread* t = thread_of(self);
  if (!t->extra) return;
  if (groups_left == ~0u) {
    drain(t->cta(), t->extra->copies, 0);
    perform_all(t->cta(), t->extra->copies.open);
    t->extra->copies.open.clear();
  } else {
    drain(t->cta(), t->extra->copies, groups_left);
  }
}

extern "C" void emu_cp_bulk(EmuThread* self, uint64_t dst, uint64_t src, uint32_t size, uint64_t mbar, uint32_t site) {
  start_bulk(thread_of(self), {.dst = dst, .src = src, .bytes = size, .source_bytes = size, .site = site}, mbar, site);
}

extern "C" void emu_cp_reduce_bulk(EmuThread* self, uint64_t dst, uint64_t src, uint32_t size, uint64_t mbar,
    EmuAtomOp op,
                                   EmuType type, uint32_t site) {
  Copy copy{.dst = dst, .src = src, .bytes = size, .source_bytes = size, .site = site};
  copy.reduces = true;
  copy.op = op;
  copy.type = type;
  start_bulk(thread_of(self), std::move(copy), mbar, site);
}

extern "C" void emu_cp_bulk_commit(EmuThread* self, uint32_t) {
  CopyQueue& queue = thread_of(self)->more().bulk;
  queue.committed.push_back(std::move(queue.open));
  queue.open.clear();
}

// .read: the sources may be reused, the writes may still come.
extern "C" void emu_cp_bulk_wait(EmuThread* self, uint32_t groups_left, uint32_t read_only, uint32_t) {
  Thread* t = thread_of(self);
  if (!t->extra) return;
  CopyQueue& queue = t->extra->bulk;
  if (!read_only) return drain(t->cta(), queue, groups_left);
  const size_t ready = queue.committed.size() > groups_left ? queue.committed.size() - groups_left : 0;
  for (size_t i = 0; i < ready; i++)
    for (Copy& copy : queue.committed[i]) take_source(copy);
}

#include "fiber.h"

#include "memory.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <sys/mman.h>

#if !defined(__x86_64__) || !defined(__linux__)
#error "CUCo's emulator switches fibers by hand and knows x86-64 Linux only; see core/fiber.cpp for what to add."
#endif

// rdi: where to save the stack pointer, rsi: the one to load. jmp instead of ret: the return predictor would be wrong.
asm(R"(
.text
.globl cuco_emu_switch
.type cuco_emu_switch, @function
cuco_emu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rdx
  jmp *%rdx
.size cuco_emu_switch, .-cuco_emu_switch
)");

namespace cuco::emu {
namespace {

constexpr size_t kSlabStacks = 64;
constexpr size_t kGuardedStacks = 12288;   // a guard page costs two mappings of the process's 65,530
size_t guarded = 0;
uint64_t next_slab = kStackZone;

[[noreturn]] void no_memory(const char* what, size_t bytes) {
  std::fprintf(stderr, "cuco: the emulator cannot map %zu bytes for %s\n", bytes, what);
  std::exit(70);
}

char* map_at(uint64_t address, size_t bytes) {
  void* p = mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (p == MAP_FAILED) no_memory("stacks", bytes);
  madvise(p, bytes, MADV_NOHUGEPAGE);   // else one touched page would cost 2 MiB
  return static_cast<char*>(p);
}

}  // namespace

void* prepare_context(char* top, FiberEntry entry) {
  auto* slot = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t{63});
  *--slot = nullptr;                            // the entry's return address: none, and it aligns the stack for a call
  *--slot = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; i++) *--slot = nullptr;   // rbp rbx r12 r13 r14 r15
  return slot;
}

char* map_stack(size_t bytes) {
  char* base = map_at(next_slab, bytes + kPage);
  next_slab += bytes + kPage;
  mprotect(base, kPage, PROT_NONE);
  return base + kPage + bytes;
}

void unmap_stack(char* top, size_t bytes) { munmap(top - bytes - kPage, bytes + kPage); }

void StackPool::map_slab() {
  char* slab = map_at(next_slab, kSlabStacks * bytes_);
  next_slab += kSlabStacks * bytes_;
  for (size_t i = kSlabStacks; i-- > 0;) {
    char* base = slab + i * bytes_;
    if (guarded < kGuardedStacks) {
      guarded++;
      mprotect(base, kPage, PROT_NONE);
    }
    free_.push_back(base);
  }
}

char* StackPool::get() {
  if (free_.empty()) map_slab();
  char* base = free_.back();
  free_.pop_back();
  return base;
}

StackPool& stack_pool(size_t local_bytes) {
  static std::map<size_t, std::unique_ptr<StackPool>> pools;
  size_t bytes = 32768;
  while (bytes < local_bytes + 24576) bytes *= 2;
  auto& pool = pools[bytes];
  if (!pool) pool = std::make_unique<StackPool>(bytes);
  return *pool;
}

}  // namespace cuco::emu

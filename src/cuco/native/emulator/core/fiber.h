// Fibers: a hand-written context switch, and pools of stacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cuco::emu {

// Saves the callee-saved registers and the stack pointer of the running context in *save and continues `load`.
extern "C" void cuco_emu_switch(void** save, void* load);

using FiberEntry = void (*)();
// A context that starts `entry` (which never returns) on a stack with the given top.
void* prepare_context(char* top, FiberEntry entry);

// A stack of its own for one fiber, with a guard page. For host fibers and the scheduler.
char* map_stack(size_t bytes);   // returns the top
void unmap_stack(char* top, size_t bytes);

// Stacks of GPU threads, of one size. Recently used ones first, because their pages are there and warm. A stack's first
// frame is offset by a colour, so that the tops of stacks that are switched in turn do not share cache sets.
class StackPool {
 public:
  explicit StackPool(size_t bytes) : bytes_(bytes) {}
  char* get();                     // base (lowest address)
  void put(char* base) { free_.push_back(base); }
  void* prepare(char* base, FiberEntry entry) {
    colour_ = (colour_ + 128) & 2047;
    return prepare_context(base + bytes_ - colour_, entry);
  }
  size_t bytes() const { return bytes_; }

 private:
  void map_slab();
  size_t bytes_;
  size_t colour_ = 0;
  std::vector<char*> free_;
};

// The pool whose stacks have at least this many bytes beside room for the runtime's own frames.
StackPool& stack_pool(size_t local_bytes);

}  // namespace cuco::emu

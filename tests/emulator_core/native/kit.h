// Kernels written by hand in C++ against isa/abi.h, and what is needed to launch and judge them.
#pragma once

#include "core/finding.h"
#include "core/grid.h"
#include "core/memory.h"
#include "core/scheduler.h"
#include "core/trace.h"
#include "core/words.h"

#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace kit {

using namespace cuco::emu;

// ---- device side
constexpr uint32_t kBlocks = 8;   // basic blocks of the hand-made module; block i costs i + 1 of class 0 and of progress
inline void spend(EmuThread* t, uint32_t basic_block, uint64_t times = 1) {
  t->progress += times * (basic_block + 1);
  t->block->counters[basic_block] += times;
}
template <class T>
T ld(EmuThread* t, const T* p, EmuOrder order = EMU_ACQUIRE, uint32_t site = 1, EmuScope scope = EMU_SYS) {
  T value;
  emu_ld(t, reinterpret_cast<uint64_t>(p), &value, sizeof value, EMU_MODE(order, scope, EMU_GLOBAL), site);
  return value;
}
template <class T>
void st(EmuThread* t, T* p, T value, EmuOrder order = EMU_RELEASE, uint32_t site = 2, EmuScope scope = EMU_SYS) {
  emu_st(t, reinterpret_cast<uint64_t>(p), &value, sizeof value, EMU_MODE(order, scope, EMU_GLOBAL), site);
}
inline uint32_t add(EmuThread* t, uint32_t* p, uint32_t value, EmuOrder order = EMU_ACQ_REL, bool returns = false) {
  uint32_t old = 0;
  emu_atom(t, reinterpret_cast<uint64_t>(p), returns ? &old : nullptr, &value, nullptr, EMU_ADD, EMU_U32,
           EMU_MODE(order, EMU_SYS, EMU_GLOBAL), 3);
  return old;
}
inline uint32_t cas(EmuThread* t, uint32_t* p, uint32_t expected, uint32_t value, EmuOrder order = EMU_ACQ_REL) {
  uint32_t old = 0;
  emu_atom(t, reinterpret_cast<uint64_t>(p), &old, &value, &expected, EMU_CAS, EMU_B32, EMU_MODE(order, EMU_SYS, EMU_GLOBAL), 4);
  return old;
}
inline void sync(EmuThread* t) { emu_bar_sync(t, 0, 0, 5); }
// Spins until *p >= least, as translated PTX would: the loop body is a basic block.
inline uint32_t wait_at_least(EmuThread* t, const uint32_t* p, uint32_t least, uint32_t site = 1) {
  for (;;) {
    const uint32_t value = ld(t, p, EMU_ACQUIRE, site);
    spend(t, 0);
    if (value >= least) return value;
  }
}
template <class T>
const T& args(const char* params) { return *reinterpret_cast<const T*>(params); }

// ---- the module
const EmuModule* module_with(std::vector<EmuKernel> kernels);
EmuKernel kernel(const char* name, EmuEntry entry, uint32_t static_shared = 0);

// ---- host side
struct Launch {
  const char* name;
  uint32_t grid = 1, block = 32;
  uint32_t registers = 32, shared = 0;
  bool cooperative = false;
};
// From a host fiber: launches on the rank's one stream and does not wait.
template <class P>
void launch(const Launch& what, const P& params);
void launch_bytes(const Launch& what, std::vector<unsigned char> params);
void synchronize();                                 // the calling rank's launches are complete
template <class T>
T* device(size_t count, T fill = T{}, const char* name = "", int rank = -1) {
  if (rank < 0) rank = scheduler().current_rank();
  T* p = reinterpret_cast<T*>(memory().allocate(rank, count * sizeof(T), 256, MemoryKind::device, name));
  for (size_t i = 0; i < count; i++) p[i] = fill;
  return p;
}
template <class P>
void launch(const Launch& what, const P& params) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&params);
  launch_bytes(what, {bytes, bytes + sizeof params});
}

// Starts the runtime, runs one host fiber per rank, and returns whether the run ended well.
bool run(const Settings& settings, const EmuModule* module, void (*host)(int rank));

// ---- judging
extern int failures;
void check(bool ok, const char* what, int line);
#define CHECK(x) kit::check((x), #x, __LINE__)
const Finding* only_finding();

// ---- tests
struct Options {
  uint64_t seed = 0;
  ReadPolicy reads = ReadPolicy::one_at_a_time;
  std::string trace;
};
extern Options options;
Settings settings_for(int ranks);                   // from the options
using Test = void (*)();
struct Register { Register(const char* name, Test test); };
std::map<std::string, Test>& tests();

}  // namespace kit

// What every translated module includes: operations, and the macros its statements are made of. The macros use the
// locals that each translated function declares (EMU_BEGIN).
#pragma once
#include "abi.h"
#include "integer.h"
#include "matrix.h"
#include "narrow.h"
#include "real.h"
#include "warp.h"

using isa::bits;
using isa::u128;
typedef __int128 s128;

#define EMU_BEGIN                                                        \
  EmuBlock* const B_ = T_->block;                                        \
  char* const S_ = B_->shared;                                           \
  uint64_t* const C_ = B_->counters;                                     \
  const uint64_t lo_ = B_->arena_lo, span_ = B_->arena_hi - B_->arena_lo; \
  uint32_t cc_ = 0;                                                      \
  (void)S_, (void)C_, (void)lo_, (void)span_, (void)cc_;

// Entry of basic block k with progress weight w, once or n times (closed loops of the slice).
#define BB(k, w) (C_[k]++, T_->progress += (w))
#define BBN(k, w, n) (C_[k] += (n), T_->progress += (w) * (n))
#define BACK_EDGE(site) \
  if (__builtin_expect(T_->progress > T_->fuel, 0)) emu_out_of_fuel(T_, site)

#define SHARED(offset) (uint64_t(S_) + uint32_t(offset))
#define REMOTE(a, n, kind, site) \
  if (__builtin_expect(uint64_t(a) - lo_ >= span_, 0)) emu_remote(T_, a, n, kind, site)
#ifdef EMU_HOOKED
#define HOOK_G(a, n, kind, site) emu_hook_global(T_, a, n, kind, site)
#define HOOK_S(a, n, kind, site) emu_hook_shared(T_, a, n, kind, site)
#else
#define HOOK_G(a, n, kind, site) (void)0
#define HOOK_S(a, n, kind, site) (void)0
#endif

template <class V> inline __attribute__((always_inline)) V emu_read(uint64_t a) {
  V v;
  memcpy(&v, reinterpret_cast<const void*>(a), sizeof v);
  return v;
}
template <class V> inline __attribute__((always_inline)) void emu_write(uint64_t a, V v) {
  memcpy(reinterpret_cast<void*>(a), &v, sizeof v);
}

// Matrix instructions need the whole warp; PTX leaves anything else undefined, so it is a definite stop here. The first
// words of a lane's argument are its thread and the site.
inline void isa_full_warp(void* const args[32], uint32_t lanes) {
  if (__builtin_expect(lanes == ~0u, 1)) return;
  const int lane = __builtin_ctz(lanes);
  auto* words = static_cast<uint32_t*>(args[lane]);
  emu_trap(emu_read<EmuThread*>(uint64_t(words)), words[2], "matrix instruction executed by a part of the warp");
}

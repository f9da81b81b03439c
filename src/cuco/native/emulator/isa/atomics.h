// The arithmetic of atom/red: what one read-modify-write makes of a memory cell. Used by the core, which owns the order.
#pragma once
#include "abi.h"
#include "narrow.h"

namespace isa {

inline uint32_t emu_type_bytes(EmuType type) {
  switch (type) {
    case EMU_B16: case EMU_F16: case EMU_BF16: return 2;
    case EMU_B64: case EMU_U64: case EMU_S64: case EMU_F64: return 8;
    case EMU_B128: return 16;
    default: return 4;
  }
}

template <class T> inline T atomic_integer(EmuAtomOp op, T old, T v) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
    case EMU_ADD: return T(U(old) + U(v));
    case EMU_MIN: return v < old ? v : old;
    case EMU_MAX: return old < v ? v : old;
    case EMU_INC: return U(old) >= U(v) ? T(0) : T(old + 1);
    case EMU_DEC: return old == 0 || U(old) > U(v) ? v : T(old - 1);
    case EMU_AND: return old & v;
    case EMU_OR: return old | v;
    case EMU_XOR: return old ^ v;
    default: return v;
  }
}
template <class F> inline uint16_t atomic_half(EmuAtomOp op, uint16_t old, uint16_t v) {
  switch (op) {
    case EMU_ADD: return nadd<F, false, false>(old, v);
    case EMU_MIN: return nminmax<F, false, false, false, false>(old, v);
    case EMU_MAX: return nminmax<F, true, false, false, false>(old, v);
    default: return v;
  }
}
template <class T> inline T atomic_real(EmuAtomOp op, T old, T v) {
  switch (op) {
    case EMU_ADD: return old + v;
    case EMU_MIN: return fmin<false, false>(old, v);
    case EMU_MAX: return fmax<false, false>(old, v);
    default: return v;
  }
}

template <class T, class Fn> inline void atomic_cell(void* cell, const void* operand, void* old, Fn f) {
  T before, value;
  memcpy(&before, cell, sizeof(T));
  memcpy(&value, operand, sizeof(T));
  T after = f(before, value);
  if (old) memcpy(old, &before, sizeof(T));
  memcpy(cell, &after, sizeof(T));
}
template <class T> inline void atomic_cas(void* cell, const void* operand, const void* compare, void* old) {
  T before, expected;
  memcpy(&before, cell, sizeof(T));
  memcpy(&expected, compare, sizeof(T));
  if (before == expected) memcpy(cell, operand, sizeof(T));
  if (old) memcpy(old, &before, sizeof(T));
}

}  // namespace isa

// Apply one atomic to `cell` (naturally aligned, plain memory). old may be null; compare is read for EMU_CAS only.
inline void emu_atomic_apply(EmuAtomOp op, EmuType type, void* cell, const void* operand, const void* compare, void* old) {
  using namespace isa;
  const uint32_t size = emu_type_bytes(type);
  if (op == EMU_CAS) {
    if (size == 2) return atomic_cas<uint16_t>(cell, operand, compare, old);
    if (size == 4) return atomic_cas<uint32_t>(cell, operand, compare, old);
    if (size == 8) return atomic_cas<uint64_t>(cell, operand, compare, old);
    return atomic_cas<u128>(cell, operand, compare, old);
  }
  switch (type) {
    case EMU_B16: return atomic_cell<uint16_t>(cell, operand, old, [=](uint16_t a, uint16_t b) { return atomic_integer(op, a, b); });
    case EMU_B32: case EMU_U32: return atomic_cell<uint32_t>(cell, operand, old, [=](uint32_t a, uint32_t b) { return atomic_integer(op, a, b); });
    case EMU_S32: return atomic_cell<int32_t>(cell, operand, old, [=](int32_t a, int32_t b) { return atomic_integer(op, a, b); });
    case EMU_B64: case EMU_U64: return atomic_cell<uint64_t>(cell, operand, old, [=](uint64_t a, uint64_t b) { return atomic_integer(op, a, b); });
    case EMU_S64: return atomic_cell<int64_t>(cell, operand, old, [=](int64_t a, int64_t b) { return atomic_integer(op, a, b); });
    case EMU_B128: return atomic_cell<u128>(cell, operand, old, [](u128, u128 b) { return b; });
    case EMU_F16: return atomic_cell<uint16_t>(cell, operand, old, [=](uint16_t a, uint16_t b) { return atomic_half<F16>(op, a, b); });
    case EMU_BF16: return atomic_cell<uint16_t>(cell, operand, old, [=](uint16_t a, uint16_t b) { return atomic_half<BF16>(op, a, b); });
    case EMU_F16X2: return atomic_cell<uint32_t>(cell, operand, old, [=](uint32_t a, uint32_t b) { return pair2(a, b, [=](uint16_t x, uint16_t y) { return atomic_half<F16>(op, x, y); }); });
    case EMU_BF16X2: return atomic_cell<uint32_t>(cell, operand, old, [=](uint32_t a, uint32_t b) { return pair2(a, b, [=](uint16_t x, uint16_t y) { return atomic_half<BF16>(op, x, y); }); });
    case EMU_F32: return atomic_cell<float>(cell, operand, old, [=](float a, float b) { return atomic_real(op, a, b); });
    case EMU_F64: return atomic_cell<double>(cell, operand, old, [=](double a, double b) { return atomic_real(op, a, b); });
  }
}

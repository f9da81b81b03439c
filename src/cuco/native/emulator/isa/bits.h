// Bit casts, wide integers and directed rounding: what every other operation header stands on.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <xmmintrin.h>

namespace isa {

typedef unsigned __int128 u128;
typedef __int128 s128;

template <class To, class From>
inline __attribute__((always_inline)) To bits(From value) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, value);
}

// PTX rounding modes, in the order of MXCSR's field where it has them.
enum Round { RN = 0, RM = 1, RP = 2, RZ = 3, RNA = 4 };

// Sets the host's rounding for the life of the object. Values must pass through pin() so that the compiler cannot
// move the arithmetic out of its scope.
template <Round R>
struct Rounding {
  static_assert(R != RNA);
  unsigned saved;
  Rounding() : saved(_mm_getcsr()) { _mm_setcsr((saved & ~0x6000u) | (unsigned)R << 13); }
  ~Rounding() { _mm_setcsr(saved); }
};

template <class T>
inline __attribute__((always_inline)) T pin(T value) {
  asm volatile("" : "+x"(value) : : "memory");
  return value;
}

template <class T> inline bool is_nan(T x) { return x != x; }

inline float flush(float x) {  // .ftz: subnormals become zero of the same sign
  uint32_t b = bits<uint32_t>(x);
  return (b & 0x7f800000u) ? x : bits<float>(b & 0x80000000u);
}
inline double flush(double x) { return x; }

template <bool FTZ, class T> inline T maybe_flush(T x) {
  if constexpr (FTZ) return flush(x);
  else return x;
}

template <class T> inline T saturate(T x) { return x > T(0) ? (x < T(1) ? x : T(1)) : T(0); }  // NaN -> +0
template <bool SAT, class T> inline T maybe_saturate(T x) {
  if constexpr (SAT) return saturate(x);
  else return x;
}

template <class T> inline T canonical_nan() {
  if constexpr (sizeof(T) == 4) return bits<float>(0x7fffffffu);
  else return bits<double>(uint64_t(0x7fffffffffffffffull));
}

}  // namespace isa

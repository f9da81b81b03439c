// Integer operations whose PTX meaning differs from C++: shifts that clamp, bit fields, permutes, carries, dot products.
#pragma once
#include "bits.h"

namespace isa {

template <class T> inline T shl(T a, uint32_t n) { return n >= sizeof(T) * 8 ? T(0) : T(a << n); }
template <class T> inline T shr(T a, uint32_t n) {
  if (n >= sizeof(T) * 8) n = sizeof(T) * 8 - 1, a = std::is_signed_v<T> ? a : T(0);
  return T(a >> n);
}
template <class T> inline T min(T a, T b) { return b < a ? b : a; }
template <class T> inline T max(T a, T b) { return a < b ? b : a; }
template <class T> inline T abs(T a) { return a < 0 ? T(0 - std::make_unsigned_t<T>(a)) : a; }

// Division by zero gives all ones, its remainder the dividend (what NVIDIA's code sequences return); the one signed
// quotient that does not fit wraps.
template <class T> inline T div(T a, T b) {
  if (b == 0) return T(-1);
  if constexpr (std::is_signed_v<T>) if (b == T(-1)) return T(0 - std::make_unsigned_t<T>(a));
  return T(a / b);
}
template <class T> inline T rem(T a, T b) {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>) if (b == T(-1)) return T(0);
  return T(a % b);
}

template <class T> struct Wider;
template <> struct Wider<uint16_t> { typedef uint32_t type; };
template <> struct Wider<int16_t> { typedef int32_t type; };
template <> struct Wider<uint32_t> { typedef uint64_t type; };
template <> struct Wider<int32_t> { typedef int64_t type; };
template <> struct Wider<uint64_t> { typedef u128 type; };
template <> struct Wider<int64_t> { typedef s128 type; };
template <class T> using wider_t = typename Wider<T>::type;

template <class T> inline wider_t<T> mul_wide(T a, T b) { return wider_t<T>(a) * wider_t<T>(b); }
template <class T> inline T mul_hi(T a, T b) { return T(mul_wide(a, b) >> (sizeof(T) * 8)); }
template <class T> inline T mul_lo(T a, T b) { return T(mul_wide(a, b)); }

// mul24/mad24 take the low 24 bits of each operand, sign- or zero-extended; .hi is bits 47..16.
inline int64_t low24(int32_t a) { return int32_t(uint32_t(a) << 8) >> 8; }
inline int64_t low24(uint32_t a) { return int64_t(a & 0xffffffu); }
template <class T> inline T mul24_lo(T a, T b) { return T(low24(a) * low24(b)); }
template <class T> inline T mul24_hi(T a, T b) { return T((low24(a) * low24(b)) >> 16); }

// cvt.sat between integers.
template <class To, class From> inline To clamp_int(From v) {
  const s128 least = std::is_signed_v<To> ? -(s128(1) << (sizeof(To) * 8 - 1)) : s128(0);
  const s128 most = (s128(1) << (sizeof(To) * 8 - std::is_signed_v<To>)) - 1;
  return s128(v) < least ? To(least) : s128(v) > most ? To(most) : To(v);
}
inline int32_t clamp32(s128 v) { return v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : int32_t(v); }
inline int32_t add_sat(int32_t a, int32_t b) { return clamp32(s128(a) + b); }
inline int32_t sub_sat(int32_t a, int32_t b) { return clamp32(s128(a) - b); }
inline int32_t mad_hi_sat(int32_t a, int32_t b, int32_t c) { return clamp32(s128(mul_hi(a, b)) + c); }

template <class T> inline T sad(T a, T b, T c) {
  using U = std::make_unsigned_t<T>;
  return T(U(c) + (a < b ? U(b) - U(a) : U(a) - U(b)));
}

// Carry chains: cc is the condition-code register, one bit of carry (or borrow).
template <class U> inline U add_cc(U a, U b, uint32_t carry_in, uint32_t* cc) {
  u128 sum = u128(a) + b + carry_in;
  if (cc) *cc = uint32_t(sum >> (sizeof(U) * 8)) & 1;
  return U(sum);
}
template <class U> inline U sub_cc(U a, U b, uint32_t borrow_in, uint32_t* cc) {
  if (cc) *cc = u128(a) < u128(b) + borrow_in;
  return U(a - b - borrow_in);
}

inline uint32_t clz(uint32_t x) { return x ? uint32_t(__builtin_clz(x)) : 32u; }
inline uint32_t clz(uint64_t x) { return x ? uint32_t(__builtin_clzll(x)) : 64u; }
template <class U> inline U brev(U x) {
  U r = 0;
  for (unsigned i = 0; i < sizeof(U) * 8; i++) r = U(r << 1) | (x >> i & 1);
  return r;
}
template <class T> inline uint32_t bfind(T x, bool shift_amount) {
  using U = std::make_unsigned_t<T>;
  U u = std::is_signed_v<T> && x < 0 ? U(~x) : U(x);
  if (!u) return ~0u;
  uint32_t top = 63u - uint32_t(__builtin_clzll(u));
  return shift_amount ? uint32_t(sizeof(T) * 8 - 1) - top : top;
}
template <class U> inline U bfi(U a, U b, uint32_t position, uint32_t length) {
  position &= 255, length &= 255;
  const uint32_t width = sizeof(U) * 8;
  if (position >= width || !length) return b;
  U mask = (length >= width ? ~U(0) : U((U(1) << length) - 1)) << position;
  return (b & ~mask) | (U(a << position) & mask);
}
template <class T> inline T bfe(T a, uint32_t position, uint32_t length) {
  position &= 255, length &= 255;
  using U = std::make_unsigned_t<T>;
  const uint32_t width = sizeof(T) * 8;
  if (!length) return 0;
  U sign = std::is_signed_v<T> && (a >> ((position + length < width ? position + length : width) - 1) & 1) ? ~U(0) : U(0);
  if (position >= width) return T(std::is_signed_v<T> && a < 0 ? ~U(0) : U(0));
  U field = U(a) >> position;
  uint32_t valid = length < width - position ? length : width - position;
  U keep = valid >= width ? ~U(0) : U((U(1) << valid) - 1);
  return T((field & keep) | (sign & ~keep));
}
inline uint32_t bmsk(uint32_t a, uint32_t b, bool clamp) {
  if (!clamp) a &= 31, b &= 31;
  if (a >= 32 || !b) return 0;
  uint32_t ones = b >= 32 ? ~0u : (1u << b) - 1;
  return ones << a;
}
template <class T> inline T szext(T a, uint32_t n, bool clamp) {
  const uint32_t width = 32;
  if (!clamp) n &= 31;
  if (n >= width) return a;
  if (!n) return 0;
  uint32_t keep = (1u << n) - 1, low = uint32_t(a) & keep;
  return T(std::is_signed_v<T> && (low >> (n - 1) & 1) ? low | ~keep : low);
}
// Find the n-th set bit from base: upwards for n > 0, downwards for n < 0; 0 asks for the bit at base itself.
inline uint32_t fns(uint32_t mask, uint32_t base, int32_t n) {
  if (base > 31) return ~0u;
  if (n == 0) return mask >> base & 1 ? base : ~0u;
  int32_t step = n > 0 ? 1 : -1, left = n > 0 ? n : -n;
  for (int32_t i = int32_t(base); i >= 0 && i < 32; i += step)
    if ((mask >> i & 1) && --left == 0) return uint32_t(i);
  return ~0u;
}

inline uint32_t prmt(uint32_t a, uint32_t b, uint32_t selector) {
  uint64_t pool = uint64_t(b) << 32 | a;
  uint32_t r = 0;
  for (int i = 0; i < 4; i++) {
    uint32_t s = selector >> (4 * i) & 15, byte = uint32_t(pool >> (8 * (s & 7))) & 255;
    if (s & 8) byte = byte & 128 ? 255 : 0;
    r |= byte << (8 * i);
  }
  return r;
}
enum PermuteMode { F4E, B4E, RC8, ECL, ECR, RC16 };
template <PermuteMode M> inline uint32_t prmt_mode(uint32_t a, uint32_t b, uint32_t c) {
  static const uint16_t table[6][4] = {{0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123},
                                       {0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333},
                                       {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
  return prmt(a, b, table[M][c & 3]);
}
inline uint32_t shf(bool left, bool wrap, uint32_t low, uint32_t high, uint32_t n) {
  n = wrap ? n & 31 : n > 32 ? 32 : n;
  uint64_t pool = uint64_t(high) << 32 | low;
  return left ? uint32_t((n == 32 ? pool << 31 << 1 : pool << n) >> 32) : uint32_t(n == 32 ? pool >> 32 : pool >> n);
}
inline uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t r = 0;
  for (int i = 0; i < 8; i++)
    if (table >> i & 1) r |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return r;
}

template <class T> inline int64_t byte_of(uint32_t word, int i) {
  uint32_t b = word >> (8 * i) & 255;
  return std::is_signed_v<T> ? int64_t(int8_t(b)) : int64_t(b);
}
template <class A, class B> inline uint32_t dp4a(uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 4; i++) c += uint32_t(byte_of<A>(a, i) * byte_of<B>(b, i));
  return c;
}
template <class A, class B> inline uint32_t dp2a(bool high, uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 2; i++) {
    uint32_t half = a >> (16 * i) & 0xffff;
    int64_t wide = std::is_signed_v<A> ? int64_t(int16_t(half)) : int64_t(half);
    c += uint32_t(wide * byte_of<B>(b, i + (high ? 2 : 0)));
  }
  return c;
}

// Packed 16-bit integers (add/min/max .u16x2, .s16x2).
template <class T, class F> inline uint32_t each16(uint32_t a, uint32_t b, F f) {
  return uint32_t(uint16_t(f(T(a), T(b)))) | uint32_t(uint16_t(f(T(a >> 16), T(b >> 16)))) << 16;
}

}  // namespace isa

// Formats narrower than single precision: half, bfloat16, tf32, fp8. One exact encoder serves all of them; arithmetic is
// done wide and rounded once (innocuous double rounding where 24 >= 2p+2, round-to-odd for fma).
#pragma once
#include <cmath>
#include "bits.h"
#include "real.h"
#ifdef __F16C__
#include <immintrin.h>
#endif

namespace isa {

template <int E, int M, bool INF> struct Format {
  static constexpr int exponent = E, mantissa = M;
  static constexpr bool has_inf = INF;
  static constexpr uint32_t sign_bit = 1u << (E + M);
  static constexpr uint32_t inf_code = INF ? ((1u << E) - 1) << M : sign_bit - 1;
  static constexpr uint32_t max_code = inf_code - 1;
  static constexpr uint32_t nan_code = sign_bit - 1;
};
typedef Format<5, 10, true> F16;
typedef Format<8, 7, true> BF16;
typedef Format<8, 10, true> TF32;  // stored in the upper 19 bits of 32
typedef Format<4, 3, false> E4M3;  // no infinity: S.1111.111 is NaN
typedef Format<5, 2, true> E5M2;

// |x| scaled so that one unit is the target's quantum, rounded to an integer.
inline uint32_t round_scaled(double scaled, bool negative, Round mode) {
  double whole = std::floor(scaled), rest = scaled - whole;
  uint32_t n = uint32_t(whole);
  switch (mode) {
    case RN: return n + (rest > 0.5 || (rest == 0.5 && (n & 1)));
    case RNA: return n + (rest >= 0.5);
    case RM: return n + (negative && rest > 0);
    case RP: return n + (!negative && rest > 0);
    default: return n;
  }
}

template <class F> inline uint32_t encode(double x, Round mode, bool satfinite) {
  const bool negative = std::signbit(x);
  const uint32_t sign = negative ? F::sign_bit : 0;
  if (is_nan(x)) return F::nan_code;
  double a = std::fabs(x);
  if (std::isinf(a)) return sign | (satfinite ? F::max_code : F::inf_code);
  if (a == 0) return sign;
  const int bias = (1 << (F::exponent - 1)) - 1, least = 1 - bias;
  int e = std::ilogb(a);
  if (e < least) e = least;
  if (e > bias + 1) return sign | (satfinite || (mode == RZ) || (mode == RM && !negative) || (mode == RP && negative) ? F::max_code : F::inf_code);
  uint32_t n = round_scaled(std::ldexp(a, F::mantissa - e), negative, mode);
  uint32_t code = (uint32_t(e + bias) << F::mantissa) + n - (1u << F::mantissa);
  if (code > F::max_code) {
    bool down = satfinite || mode == RZ || (mode == RM && !negative) || (mode == RP && negative);
    code = down ? F::max_code : F::inf_code;
  }
  return sign | code;
}

template <class F> inline float decode(uint32_t code) {
  const int bias = (1 << (F::exponent - 1)) - 1;
  bool negative = code & F::sign_bit;
  uint32_t body = code & (F::sign_bit - 1), e = body >> F::mantissa, m = body & ((1u << F::mantissa) - 1);
  float r;
  if (F::has_inf && e == (1u << F::exponent) - 1) r = m ? canonical_nan<float>() : bits<float>(0x7f800000u);
  else if (!F::has_inf && body == F::nan_code) r = canonical_nan<float>();
  else if (e == 0) r = std::ldexp(float(m), 1 - bias - F::mantissa);
  else r = std::ldexp(float(m | 1u << F::mantissa), int(e) - bias - F::mantissa);
  return negative && !is_nan(r) ? -r : r;
}

// ------------------------------------------------------------------------------------------------ fast paths
template <class F> inline float widen(uint16_t h);
template <> inline float widen<BF16>(uint16_t h) { return bits<float>(uint32_t(h) << 16); }
template <> inline float widen<F16>(uint16_t h) {
#ifdef __F16C__
  return _cvtsh_ss(h);
#else
  uint32_t sign = (h & 0x8000u) << 16, e = h >> 10 & 31, m = h & 1023;
  if (e == 0) return bits<float>(bits<uint32_t>(float(m) * 0x1p-24f) | sign);
  if (e == 31) return bits<float>(sign | 0x7f800000u | m << 13 | (m ? 0x400000u : 0u));
  return bits<float>(sign | (e + 112) << 23 | m << 13);
#endif
}
template <class F> inline uint16_t round_to(float x);
template <> inline uint16_t round_to<BF16>(float x) {
  uint32_t b = bits<uint32_t>(x);
  return is_nan(x) ? 0x7fff : uint16_t((b + 0x7fff + (b >> 16 & 1)) >> 16);
}
template <> inline uint16_t round_to<F16>(float x) {
  if (is_nan(x)) return 0x7fff;
#ifdef __F16C__
  return uint16_t(_cvtss_sh(x, 0));
#else
  return uint16_t(encode<F16>(x, RN, false));
#endif
}

template <class F> inline uint16_t flush16(uint16_t h) { return h & F::inf_code ? h : h & 0x8000; }

// ------------------------------------------------------------------------------------------------ arithmetic
// a + b rounded to odd in double: a second rounding to a narrow format is then a correct single one.
inline double add_odd(double a, double b) {
  double s = a + b;
  if (!std::isfinite(s)) return s;
  double bb = s - a, error = (a - (s - bb)) + (b - bb);
  if (error == 0) return s;
  uint64_t u = bits<uint64_t>(s);
  if (u & 1) return s;
  return bits<double>((error > 0) == (s > 0) ? u + 1 : u - 1);
}

template <class F, bool FTZ, bool SAT, bool RELU> inline uint16_t finish(uint16_t r) {
  if (FTZ) r = flush16<F>(r);
  bool nan = (r & 0x7fff) > F::inf_code;
  if (SAT) {
    const uint16_t one = F::exponent == 5 ? 0x3c00 : 0x3f80;
    if (nan || r & 0x8000) return 0;
    if (r > one) return one;
  }
  if (RELU && !nan && r & 0x8000) return 0;
  return r;
}
#define ISA_NARROW(name, expression)                                                            \
  template <class F, bool FTZ, bool SAT> inline uint16_t name(uint16_t x, uint16_t y) {         \
    if (FTZ) x = flush16<F>(x), y = flush16<F>(y);                                              \
    float a = widen<F>(x), b = widen<F>(y);                                                     \
    return finish<F, FTZ, SAT, false>(round_to<F>(expression));                                 \
  }
ISA_NARROW(nadd, a + b)
ISA_NARROW(nsub, a - b)
ISA_NARROW(nmul, a* b)
#undef ISA_NARROW

template <class F, bool FTZ, bool SAT, bool RELU> inline uint16_t nfma(uint16_t x, uint16_t y, uint16_t z) {
  if (FTZ) x = flush16<F>(x), y = flush16<F>(y), z = flush16<F>(z);
  double product = double(widen<F>(x)) * double(widen<F>(y));
  double sum = add_odd(product, double(widen<F>(z)));
  return finish<F, FTZ, SAT, RELU>(uint16_t(encode<F>(sum, RN, false)));
}

template <class F, bool MAX, bool FTZ, bool NANS, bool XORSIGN> inline uint16_t nminmax(uint16_t x, uint16_t y) {
  uint16_t sign = XORSIGN ? (x ^ y) & 0x8000 : 0;
  if (XORSIGN) x &= 0x7fff, y &= 0x7fff;
  if (FTZ) x = flush16<F>(x), y = flush16<F>(y);
  bool xn = (x & 0x7fff) > F::inf_code, yn = (y & 0x7fff) > F::inf_code;
  if (xn || yn) return (NANS || (xn && yn)) ? 0x7fff : uint16_t((xn ? y : x) | sign);
  float a = widen<F>(x), b = widen<F>(y);
  bool first = MAX ? !below(a, b) : !below(b, a);
  return uint16_t((first ? x : y) | sign);
}
template <bool FTZ, class F> inline uint16_t nneg(uint16_t x) { return (FTZ ? flush16<F>(x) : x) ^ 0x8000; }
template <bool FTZ, class F> inline uint16_t nabs(uint16_t x) { return (FTZ ? flush16<F>(x) : x) & 0x7fff; }
template <class F> inline uint16_t ntanh(uint16_t x) { return round_to<F>(tanhf(widen<F>(x))); }
template <class F, bool FTZ> inline uint16_t nex2(uint16_t x) {
  return finish<F, FTZ, false, false>(round_to<F>(exp2f(widen<F>(FTZ ? flush16<F>(x) : x))));
}

// The two halves of a packed register.
template <class Fn> inline uint32_t pair1(uint32_t a, Fn f) { return uint32_t(f(uint16_t(a))) | uint32_t(f(uint16_t(a >> 16))) << 16; }
template <class Fn> inline uint32_t pair2(uint32_t a, uint32_t b, Fn f) {
  return uint32_t(f(uint16_t(a), uint16_t(b))) | uint32_t(f(uint16_t(a >> 16), uint16_t(b >> 16))) << 16;
}
template <class Fn> inline uint32_t pair3(uint32_t a, uint32_t b, uint32_t c, Fn f) {
  return uint32_t(f(uint16_t(a), uint16_t(b), uint16_t(c))) | uint32_t(f(uint16_t(a >> 16), uint16_t(b >> 16), uint16_t(c >> 16))) << 16;
}

// ------------------------------------------------------------------------------------------------ conversions
// From any wider value (float and double are exact as double). RELU clamps negatives to +0 and keeps NaN.
template <class F, Round R, bool SATFINITE, bool RELU> inline uint32_t narrow(double x) {
  if (RELU && x < 0) x = 0;
  if (RELU && x == 0) x = 0.0;
  if constexpr (R == RN && !SATFINITE && F::mantissa >= 7 && F::mantissa + F::exponent == 15)
    if (double(float(x)) == x || is_nan(x)) return round_to<F>(float(x));
  return encode<F>(x, R, SATFINITE);
}

// Integers: those beyond 2^53 keep 53 bits with a sticky last one (bit 12), which is enough to round correctly later.
inline double wide_int(uint64_t x) {
  if (x <= uint64_t(1) << 53) return double(x);
  return double((x >> 12 << 12) | ((x & 4095) ? 4096 : 0));
}
inline double wide_int(int64_t x) { return x < 0 ? -wide_int(0 - uint64_t(x)) : wide_int(uint64_t(x)); }
template <class I> inline double wide_int(I x) { return double(x); }

template <Round R, bool SATFINITE, bool RELU> inline uint32_t to_tf32(float x) {
  return is_nan(x) ? 0x7fffffffu : narrow<TF32, R, SATFINITE, RELU>(x) << 13;
}
template <class F, bool RELU> inline uint16_t fp8_pair(double high, double low) {
  return uint16_t(narrow<F, RN, true, RELU>(high) << 8 | narrow<F, RN, true, RELU>(low));
}
template <class F, bool RELU> inline uint32_t fp8_to_half2(uint16_t pair) {
  uint32_t low = narrow<F16, RN, false, RELU>(decode<F>(pair & 255)), high = narrow<F16, RN, false, RELU>(decode<F>(pair >> 8));
  return high << 16 | low;
}

}  // namespace isa

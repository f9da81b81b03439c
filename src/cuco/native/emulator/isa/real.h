// Single and double precision: directed rounding, .ftz, .sat, comparisons, conversions to integers, approximations.
#pragma once
#include <cmath>
#include <limits>
#include "bits.h"

namespace isa {

#define ISA_BINARY(name, expression)                                                         \
  template <Round R, bool FTZ, bool SAT, class T> inline T name(T a, T b) {                  \
    a = maybe_flush<FTZ>(a), b = maybe_flush<FTZ>(b);                                        \
    T r;                                                                                     \
    if constexpr (R == RN) {                                                                 \
      r = expression;                                                                        \
    } else {                                                                                 \
      Rounding<R> guard;                                                                     \
      a = pin(a), b = pin(b);                                                                \
      r = pin(expression);                                                                   \
    }                                                                                        \
    return maybe_saturate<SAT>(maybe_flush<FTZ>(r));                                         \
  }
ISA_BINARY(fadd, a + b)
ISA_BINARY(fsub, a - b)
ISA_BINARY(fmul, a* b)
ISA_BINARY(fdiv, a / b)
#undef ISA_BINARY

inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

template <Round R, bool FTZ, bool SAT, class T> inline T ffma(T a, T b, T c) {
  a = maybe_flush<FTZ>(a), b = maybe_flush<FTZ>(b), c = maybe_flush<FTZ>(c);
  T r;
  if constexpr (R == RN) {
    r = fused(a, b, c);
  } else {
    Rounding<R> guard;
    a = pin(a), b = pin(b), c = pin(c);
    r = pin(fused(a, b, c));
  }
  return maybe_saturate<SAT>(maybe_flush<FTZ>(r));
}

template <Round R, bool FTZ, class T> inline T fsqrt(T a) {
  a = maybe_flush<FTZ>(a);
  T r;
  if constexpr (R == RN) {
    r = std::sqrt(a);
  } else {
    Rounding<R> guard;
    a = pin(a);
    r = pin(std::sqrt(a));
  }
  return maybe_flush<FTZ>(r);
}
template <Round R, bool FTZ, class T> inline T frcp(T a) { return fdiv<R, FTZ, false>(T(1), a); }

// min/max: -0 < +0; one NaN gives the other operand unless .NaN; .xorsign.abs works on magnitudes.
template <class T> inline bool below(T a, T b) { return a < b || (a == b && std::signbit(a) && !std::signbit(b)); }
template <bool FTZ, bool NANS, class T> inline T fmin(T a, T b) {
  a = maybe_flush<FTZ>(a), b = maybe_flush<FTZ>(b);
  if (is_nan(a) || is_nan(b)) {
    if (NANS || (is_nan(a) && is_nan(b))) return canonical_nan<T>();
    return is_nan(a) ? b : a;
  }
  return below(b, a) ? b : a;
}
template <bool FTZ, bool NANS, class T> inline T fmax(T a, T b) {
  a = maybe_flush<FTZ>(a), b = maybe_flush<FTZ>(b);
  if (is_nan(a) || is_nan(b)) {
    if (NANS || (is_nan(a) && is_nan(b))) return canonical_nan<T>();
    return is_nan(a) ? b : a;
  }
  return below(a, b) ? b : a;
}
template <bool MAX, bool FTZ, bool NANS> inline float fminmax_xorsign(float a, float b) {
  uint32_t sign = (bits<uint32_t>(a) ^ bits<uint32_t>(b)) & 0x80000000u;
  float x = __builtin_fabsf(a), y = __builtin_fabsf(b), r = MAX ? fmax<FTZ, NANS>(x, y) : fmin<FTZ, NANS>(x, y);
  return is_nan(r) ? r : bits<float>(bits<uint32_t>(r) | sign);
}

template <bool FTZ> inline float fabs(float a) { return bits<float>(bits<uint32_t>(maybe_flush<FTZ>(a)) & 0x7fffffffu); }
template <bool FTZ> inline double fabs(double a) { return bits<double>(bits<uint64_t>(a) & 0x7fffffffffffffffull); }
template <bool FTZ> inline float fneg(float a) { return bits<float>(bits<uint32_t>(maybe_flush<FTZ>(a)) ^ 0x80000000u); }
template <bool FTZ> inline double fneg(double a) { return bits<double>(bits<uint64_t>(a) ^ 0x8000000000000000ull); }
inline float fcopysign(float sign, float magnitude) { return __builtin_copysignf(magnitude, sign); }
inline double fcopysign(double sign, double magnitude) { return __builtin_copysign(magnitude, sign); }

// testp
template <class T> inline bool is_subnormal(T a) { return a != 0 && __builtin_fabs(double(a)) < double(std::numeric_limits<T>::min()); }
template <class T> inline bool is_finite(T a) { return __builtin_isfinite(a); }
template <class T> inline bool is_infinite(T a) { return __builtin_isinf(a); }
template <class T> inline bool is_normal(T a) { return __builtin_isnormal(a); }

// Round to an integral value (cvt.rni/rzi/rmi/rpi), without depending on the host's rounding mode.
template <Round R, class T> inline T integral(T x) {
  if constexpr (R == RN) {
    T r = std::nearbyint(x);
    return r;
  }
  if constexpr (R == RZ) return std::trunc(x);
  if constexpr (R == RM) return std::floor(x);
  return std::ceil(x);
}

// Float to integer always clamps. NaN gives 0 when neither side has 64 bits, else the target's top bit alone.
template <class I, Round R, bool FTZ, class T> inline I to_int(T x) {
  x = maybe_flush<FTZ>(x);
  if (is_nan(x)) return sizeof(I) == 8 || sizeof(T) == 8 ? I(uint64_t(1) << (sizeof(I) * 8 - 1)) : I(0);
  T r = integral<R>(x);
  T low = T(std::numeric_limits<I>::min()), high = std::ldexp(T(1), std::numeric_limits<I>::digits);
  if (r < low) return std::numeric_limits<I>::min();
  if (r >= high) return std::numeric_limits<I>::max();
  return I(r);
}

template <class T, Round R, class I> inline T from_int(I x) {
  if constexpr (R == RN) {
    return T(x);
  } else {
    Rounding<R> guard;
    asm volatile("" : "+r"(x) : : "memory");
    return pin(T(x));
  }
}

template <Round R, bool FTZ, bool SAT> inline float to_f32(double x) {
  float r;
  if constexpr (R == RN) {
    r = float(x);
  } else {
    Rounding<R> guard;
    x = pin(x);
    r = pin(float(x));
  }
  return maybe_saturate<SAT>(maybe_flush<FTZ>(r));
}

// Approximate functions: PTX states error bounds; the host's functions lie within all of them.
#define ISA_APPROX(name, expression)                          \
  template <bool FTZ> inline float name(float x) {            \
    x = maybe_flush<FTZ>(x);                                  \
    return maybe_flush<FTZ>(float(expression));               \
  }
ISA_APPROX(approx_rcp, 1.0f / x)
ISA_APPROX(approx_sqrt, std::sqrt(x))
ISA_APPROX(approx_rsqrt, float(1.0 / std::sqrt(double(x))))
ISA_APPROX(approx_ex2, exp2f(x))
ISA_APPROX(approx_lg2, log2f(x))
ISA_APPROX(approx_sin, sinf(x))
ISA_APPROX(approx_cos, cosf(x))
ISA_APPROX(approx_tanh, tanhf(x))
#undef ISA_APPROX
// rcp.approx.ftz.f64 and rsqrt.approx.f64 work on the upper 32 bits only; the lower half of the result is zero.
inline double upper(double x) { return bits<double>(bits<uint64_t>(x) & 0xffffffff00000000ull); }
inline double flush_f64(double x) { return __builtin_fabs(x) < 0x1p-1022 ? __builtin_copysign(0.0, x) : x; }
inline double approx_rcp_f64(double x) { return is_nan(x) ? canonical_nan<double>() : upper(flush_f64(1.0 / flush_f64(upper(x)))); }
inline double approx_rsqrt_f64(double x) { return x < 0 || is_nan(x) ? canonical_nan<double>() : upper(1.0 / std::sqrt(flush_f64(x))); }

}  // namespace isa

#include "datatype.h"

#include <cmath>
#include <cstring>
#include <type_traits>

namespace cuco::nccl {
namespace {

struct TypeInfo {
  size_t bytes;
  const char* name;
  bool integer;
};

constexpr TypeInfo kTypes[ncclNumTypes] = {
    {1, "int8", true},     {1, "uint8", true},    {4, "int32", true},     {4, "uint32", true},
    {8, "int64", true},    {8, "uint64", true},   {2, "float16", false},  {4, "float32", false},
    {8, "float64", false}, {2, "bfloat16", false}, {1, "float8e4m3", false}, {1, "float8e5m2", false},
};

bool known(ncclDataType_t type) { return type >= 0 && type < ncclNumTypes; }

// Small floats are computed in float32 and rounded back after every step, as NCCL's device functions do.
struct Half {
  using Bits = uint16_t;
  static float widen(Bits b) {
    __half_raw raw;
    raw.x = b;
    return __half2float(__half(raw));
  }
  static Bits narrow(float f) { return static_cast<__half_raw>(__float2half(f)).x; }
};

struct Bfloat {
  using Bits = uint16_t;
  static float widen(Bits b) {
    uint32_t wide = static_cast<uint32_t>(b) << 16;
    float f;
    std::memcpy(&f, &wide, sizeof f);
    return f;
  }
  static Bits narrow(float f) { return static_cast<__nv_bfloat16_raw>(__float2bfloat16(f)).x; }
};

template <__nv_fp8_interpretation_t Kind>
struct Eighth {
  using Bits = uint8_t;
  static float widen(Bits b) {
    return __half2float(__half(__nv_cvt_fp8_to_halfraw(b, Kind)));
  }
  static Bits narrow(float f) { return __nv_cvt_float_to_fp8(f, __NV_SATFINITE, Kind); }
};

// Native types compute in themselves.
template <class T>
struct Native {
  using Bits = T;
  static T widen(T v) { return v; }
  static T narrow(T v) { return v; }
};

template <class Value>
Value combine(Fold fold, Value a, Value b) {
  if constexpr (std::is_integral_v<Value>) {
    using Wrap = std::make_unsigned_t<Value>;  // wrap around instead of undefined overflow
    switch (fold) {
      case Fold::sum: return static_cast<Value>(static_cast<Wrap>(a) + static_cast<Wrap>(b));
      case Fold::prod: return static_cast<Value>(static_cast<Wrap>(a) * static_cast<Wrap>(b));
      case Fold::max: return a < b ? b : a;
      case Fold::min: return b < a ? b : a;
    }
  } else {
    switch (fold) {
      case Fold::sum: return a + b;
      case Fold::prod: return a * b;
      case Fold::max: return std::fmax(a, b);
      case Fold::min: return std::fmin(a, b);
    }
  }
  return a;
}

template <class Bits>
Bits load(const void* base, size_t i) {
  Bits bits;
  std::memcpy(&bits, static_cast<const char*>(base) + i * sizeof(Bits), sizeof bits);
  return bits;
}

template <class Codec>
void reduce_typed(void* dst, const std::vector<Source>& sources, size_t count, const Reduction& reduction) {
  using Bits = typename Codec::Bits;
  using Value = decltype(Codec::widen(Bits{}));
  std::vector<Value> scale(sources.size());
  for (size_t s = 0; s < sources.size(); s++) {
    Bits bits;
    std::memcpy(&bits, &sources[s].scalar, sizeof bits);
    scale[s] = Codec::widen(bits);
  }
  for (size_t i = 0; i < count; i++) {
    Bits total{};
    for (size_t s = 0; s < sources.size(); s++) {
      Bits element = load<Bits>(sources[s].data, i);
      if (reduction.premultiply)
        element = Codec::narrow(combine<Value>(Fold::prod, Codec::widen(element), scale[s]));
      total = s == 0 ? element
                     : Codec::narrow(combine<Value>(reduction.fold, Codec::widen(total), Codec::widen(element)));
    }
    if constexpr (std::is_integral_v<Value>)
      if (reduction.divide > 1) total = static_cast<Bits>(total / static_cast<Value>(reduction.divide));
    std::memcpy(static_cast<char*>(dst) + i * sizeof(Bits), &total, sizeof total);
  }
}

}  // namespace

size_t type_size(ncclDataType_t type) { return known(type) ? kTypes[type].bytes : 0; }

const char* type_name(ncclDataType_t type) { return known(type) ? kTypes[type].name : "unknown"; }

bool type_is_integer(ncclDataType_t type) { return known(type) && kTypes[type].integer; }

void reduce_elements(void* dst, const std::vector<Source>& sources, size_t count, ncclDataType_t type,
                     const Reduction& reduction) {
  switch (type) {
    case ncclInt8: return reduce_typed<Native<int8_t>>(dst, sources, count, reduction);
    case ncclUint8: return reduce_typed<Native<uint8_t>>(dst, sources, count, reduction);
    case ncclInt32: return reduce_typed<Native<int32_t>>(dst, sources, count, reduction);
    case ncclUint32: return reduce_typed<Native<uint32_t>>(dst, sources, count, reduction);
    case ncclInt64: return reduce_typed<Native<int64_t>>(dst, sources, count, reduction);
    case ncclUint64: return reduce_typed<Native<uint64_t>>(dst, sources, count, reduction);
    case ncclFloat32: return reduce_typed<Native<float>>(dst, sources, count, reduction);
    case ncclFloat64: return reduce_typed<Native<double>>(dst, sources, count, reduction);
    case ncclFloat16: return reduce_typed<Half>(dst, sources, count, reduction);
    case ncclBfloat16: return reduce_typed<Bfloat>(dst, sources, count, reduction);
    case ncclFloat8e4m3: return reduce_typed<Eighth<__NV_E4M3>>(dst, sources, count, reduction);
    case ncclFloat8e5m2: return reduce_typed<Eighth<__NV_E5M2>>(dst, sources, count, reduction);
    case ncclNumTypes: break;
  }
}

uint64_t reciprocal_bits(int n, ncclDataType_t type) {
  uint64_t bits = 0;
  const float f = static_cast<float>(1.0 / n);
  const double d = 1.0 / n;
  switch (type) {
    case ncclFloat32: std::memcpy(&bits, &f, sizeof f); break;
    case ncclFloat64: std::memcpy(&bits, &d, sizeof d); break;
    case ncclFloat16: bits = Half::narrow(f); break;
    case ncclBfloat16: bits = Bfloat::narrow(f); break;
    case ncclFloat8e4m3: bits = Eighth<__NV_E4M3>::narrow(f); break;
    case ncclFloat8e5m2: bits = Eighth<__NV_E5M2>::narrow(f); break;
    default: break;
  }
  return bits;
}

}  // namespace cuco::nccl

// Warp-level matrix operations (see matrix.h). Fragment layouts are those of the PTX ISA manual, section "Matrix
// Fragments": lane = 4 * group + quad; a register of A or B packs 32 / bits(element) neighbours along k.
#include "matrix.h"

#include <cstring>

#include "narrow.h"

namespace {

using namespace isa;
#define INLINE inline __attribute__((always_inline))
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))

typedef float Vec8 __attribute__((vector_size(32)));

INLINE const uint32_t* words(void* const args[32], int lane) { return static_cast<const uint32_t*>(args[lane]); }
INLINE uint32_t* words_of(void* const args[32], int lane) { return static_cast<uint32_t*>(args[lane]); }

// ------------------------------------------------------------------------------------------------ element decoding
INLINE float half_to_float(uint32_t h) {  // exact, without branches or F16C
  float scaled = bits<float>((h & 0x7fff) << 13) * 0x1p112f;
  uint32_t b = (h & 0x7c00) == 0x7c00 ? 0x7f800000u | (h & 0x3ff) << 13 : bits<uint32_t>(scaled);
  return bits<float>(b | (h & 0x8000) << 16);
}
struct Half { static constexpr int packed = 2; typedef float value; static INLINE float get(uint32_t w, int i) { return half_to_float(w >> (16 * i) & 0xffff); } };
struct Brain { static constexpr int packed = 2; typedef float value; static INLINE float get(uint32_t w, int i) { return bits<float>(i ? w & 0xffff0000u : w << 16); } };
struct Tf32 { static constexpr int packed = 1; typedef float value; static INLINE float get(uint32_t w, int) { return bits<float>(w & 0xffffe000u); } };
struct S8 { static constexpr int packed = 4; typedef int32_t value; static INLINE int32_t get(uint32_t w, int i) { return int8_t(w >> (8 * i)); } };
struct U8 { static constexpr int packed = 4; typedef int32_t value; static INLINE int32_t get(uint32_t w, int i) { return uint8_t(w >> (8 * i)); } };
template <class F> struct Fp8 { static constexpr int packed = 4; typedef float value; static INLINE float get(uint32_t w, int i) { return decode<F>(w >> (8 * i) & 255); } };

// ------------------------------------------------------------------------------------------------ gather, multiply
// A[M][K]: register r of a lane covers row group + 8 * (r % row_halves), columns from packed * quad + step * (r / row_halves).
template <class T, int M, int K>
INLINE void gather_a(void* const args[32], const uint16_t* index, typename T::value (&a)[M][K]) {
  constexpr int halves = M / 8, step = 4 * T::packed;
  for (int lane = 0; lane < 32; lane++)
    for (int r = 0; r < halves * K / step; r++) {
      uint32_t w = words(args, lane)[index[r]];
      for (int i = 0; i < T::packed; i++) a[lane / 4 + 8 * (r % halves)][T::packed * (lane % 4) + i + step * (r / halves)] = T::get(w, i);
    }
}
template <class T, int K>
INLINE void gather_b(void* const args[32], const uint16_t* index, typename T::value (&b)[K][8]) {
  constexpr int step = 4 * T::packed;
  for (int lane = 0; lane < 32; lane++)
    for (int r = 0; r < K / step; r++) {
      uint32_t w = words(args, lane)[index[r]];
      for (int i = 0; i < T::packed; i++) b[T::packed * (lane % 4) + i + step * r][lane / 4] = T::get(w, i);
    }
}

template <int M, int K> INLINE void multiply(const float (&a)[M][K], const float (&b)[K][8], float (&c)[M][8]) {
  for (int i = 0; i < M; i++) {
    Vec8 sum;
    memcpy(&sum, c[i], sizeof sum);
    for (int k = 0; k < K; k++) {
      Vec8 row;
      memcpy(&row, b[k], sizeof row);
      sum += a[i][k] * row;
    }
    memcpy(c[i], &sum, sizeof sum);
  }
}

// Accumulators: register pair (2h, 2h+1) holds row group + 8h, columns 2 * quad and the next.
template <class V, int M> INLINE void load_c(void* const args[32], const uint16_t* index, V (&c)[M][8]) {
  for (int lane = 0; lane < 32; lane++)
    for (int r = 0; r < M / 4; r++) c[lane / 4 + 8 * (r / 2)][2 * (lane % 4) + r % 2] = bits<V>(words(args, lane)[index[r]]);
}
template <class V, int M> INLINE void store_d(void* const args[32], const uint16_t* index, const V (&c)[M][8]) {
  for (int lane = 0; lane < 32; lane++)
    for (int r = 0; r < M / 4; r++) words_of(args, lane)[index[r]] = bits<uint32_t>(c[lane / 4 + 8 * (r / 2)][2 * (lane % 4) + r % 2]);
}

template <class TA, class TB, int M, int K> INLINE void mma_f32(void* const args[32], const uint16_t* index) {
  constexpr int na = M / 8 * K / (4 * TA::packed), nb = K / (4 * TB::packed), nc = M / 4;
  alignas(32) float a[M][K], b[K][8], c[M][8];
  gather_a<TA>(args, index, a);
  gather_b<TB>(args, index + na, b);
  load_c(args, index + na + nb, c);
  multiply(a, b, c);
  store_d(args, index + na + nb + nc, c);
}

template <int M, int K> INLINE void mma_f16_acc(void* const args[32], const uint16_t* index) {
  constexpr int na = M / 8 * K / 8, nb = K / 8, nc = M / 8;
  alignas(32) float a[M][K], b[K][8], c[M][8];
  gather_a<Half>(args, index, a);
  gather_b<Half>(args, index + na, b);
  const uint16_t *ic = index + na + nb, *id = ic + nc;
  for (int lane = 0; lane < 32; lane++)
    for (int r = 0; r < nc; r++)
      for (int i = 0; i < 2; i++) c[lane / 4 + 8 * r][2 * (lane % 4) + i] = Half::get(words(args, lane)[ic[r]], i);
  multiply(a, b, c);
  for (int lane = 0; lane < 32; lane++)
    for (int r = 0; r < nc; r++) {
      const float* two = &c[lane / 4 + 8 * r][2 * (lane % 4)];
      words_of(args, lane)[id[r]] = uint32_t(encode<F16>(two[0], RN, false) | encode<F16>(two[1], RN, false) << 16);
    }
}

template <class TA, class TB, bool SAT, int M, int K> INLINE void mma_int(void* const args[32], const uint16_t* index) {
  constexpr int na = M / 8 * K / 16, nb = K / 16, nc = M / 4;
  alignas(32) int32_t a[M][K], b[K][8], c[M][8];
  gather_a<TA>(args, index, a);
  gather_b<TB>(args, index + na, b);
  load_c(args, index + na + nb, c);
  for (int i = 0; i < M; i++)
    for (int j = 0; j < 8; j++) {
      int64_t sum = c[i][j];
      for (int k = 0; k < K; k++) sum += int64_t(a[i][k]) * b[k][j];
      c[i][j] = SAT ? (sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : int32_t(sum)) : int32_t(uint32_t(uint64_t(sum)));
    }
  store_d(args, index + na + nb + nc, c);
}

INLINE double& real64(void* const args[32], int lane, uint16_t word) { return *reinterpret_cast<double*>(words_of(args, lane) + word); }
template <int M, int K> INLINE void mma_f64(void* const args[32], const uint16_t* index) {
  constexpr int halves = M / 8, na = halves * K / 4, nb = K / 4, nc = M / 4;
  double a[M][K], b[K][8], c[M][8];
  const uint16_t *ib = index + na, *ic = ib + nb, *id = ic + nc;
  for (int lane = 0; lane < 32; lane++) {
    for (int r = 0; r < na; r++) a[lane / 4 + 8 * (r % halves)][lane % 4 + 4 * (r / halves)] = real64(args, lane, index[r]);
    for (int r = 0; r < nb; r++) b[lane % 4 + 4 * r][lane / 4] = real64(args, lane, ib[r]);
    for (int r = 0; r < nc; r++) c[lane / 4 + 8 * (r / 2)][2 * (lane % 4) + r % 2] = real64(args, lane, ic[r]);
  }
  for (int i = 0; i < M; i++)
    for (int j = 0; j < 8; j++)
      for (int k = 0; k < K; k++) c[i][j] = __builtin_fma(a[i][k], b[k][j], c[i][j]);
  for (int lane = 0; lane < 32; lane++)
    for (int r = 0; r < nc; r++) real64(args, lane, id[r]) = c[lane / 4 + 8 * (r / 2)][2 * (lane % 4) + r % 2];
}

}  // namespace

#define MMA(name, ...) \
  CLONES void name(void* const args[32], const uint16_t* index) { __VA_ARGS__(args, index); }
extern "C" {
MMA(isa_mma_m16n8k16_f16_f32, mma_f32<Half, Half, 16, 16>)
MMA(isa_mma_m16n8k16_bf16_f32, mma_f32<Brain, Brain, 16, 16>)
MMA(isa_mma_m16n8k8_f16_f32, mma_f32<Half, Half, 16, 8>)
MMA(isa_mma_m16n8k8_bf16_f32, mma_f32<Brain, Brain, 16, 8>)
MMA(isa_mma_m16n8k8_tf32_f32, mma_f32<Tf32, Tf32, 16, 8>)
MMA(isa_mma_m16n8k4_tf32_f32, mma_f32<Tf32, Tf32, 16, 4>)
MMA(isa_mma_m16n8k16_f16_f16, mma_f16_acc<16, 16>)
MMA(isa_mma_m16n8k8_f16_f16, mma_f16_acc<16, 8>)
MMA(isa_mma_m16n8k32_e4m3e4m3_f32, mma_f32<Fp8<E4M3>, Fp8<E4M3>, 16, 32>)
MMA(isa_mma_m16n8k32_e4m3e5m2_f32, mma_f32<Fp8<E4M3>, Fp8<E5M2>, 16, 32>)
MMA(isa_mma_m16n8k32_e5m2e4m3_f32, mma_f32<Fp8<E5M2>, Fp8<E4M3>, 16, 32>)
MMA(isa_mma_m16n8k32_e5m2e5m2_f32, mma_f32<Fp8<E5M2>, Fp8<E5M2>, 16, 32>)
#define INT8(k, suffix, sat)                                                  \
  MMA(isa_mma_m16n8k##k##_s8s8##suffix, mma_int<S8, S8, sat, 16, k>)          \
  MMA(isa_mma_m16n8k##k##_s8u8##suffix, mma_int<S8, U8, sat, 16, k>)          \
  MMA(isa_mma_m16n8k##k##_u8s8##suffix, mma_int<U8, S8, sat, 16, k>)          \
  MMA(isa_mma_m16n8k##k##_u8u8##suffix, mma_int<U8, U8, sat, 16, k>)
INT8(32, , false)
INT8(32, _sat, true)
INT8(16, , false)
INT8(16, _sat, true)
// A fused multiply-add is the same number with or without the instruction; no clones needed.
void isa_mma_m8n8k4_f64_f64(void* const args[32], const uint16_t* index) { mma_f64<8, 4>(args, index); }
void isa_mma_m16n8k4_f64_f64(void* const args[32], const uint16_t* index) { mma_f64<16, 4>(args, index); }
void isa_mma_m16n8k8_f64_f64(void* const args[32], const uint16_t* index) { mma_f64<16, 8>(args, index); }
void isa_mma_m16n8k16_f64_f64(void* const args[32], const uint16_t* index) { mma_f64<16, 16>(args, index); }
}

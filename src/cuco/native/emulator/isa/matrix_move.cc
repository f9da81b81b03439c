// ldmatrix, stmatrix, movmatrix and the wmma multiply (see matrix.h for the calling convention).
#include <cstring>

#include "matrix.h"
#include "narrow.h"

namespace {

using namespace isa;

uint32_t* words(void* const args[32], int lane) { return static_cast<uint32_t*>(args[lane]); }
uint16_t* row_address(void* const args[32], const uint16_t* index, int lane) {
  const uint32_t* w = words(args, lane);
  return reinterpret_cast<uint16_t*>(uint64_t(w[index[1]]) << 32 | w[index[0]]);
}

// Row r of matrix m is 16 bytes at lane 8m + r's address; lane l takes row l / 4, elements 2 * (l % 4) and the next
// (transposed: column instead of row).
template <int N, bool TRANS> void load(void* const args[32], const uint16_t* index) {
  uint32_t out[32][N];
  for (int m = 0; m < N; m++)
    for (int lane = 0; lane < 32; lane++) {
      uint16_t two[2];
      for (int i = 0; i < 2; i++) {
        int outer = lane / 4, inner = 2 * (lane % 4) + i;
        two[i] = row_address(args, index, 8 * m + (TRANS ? inner : outer))[TRANS ? outer : inner];
      }
      out[lane][m] = uint32_t(two[1]) << 16 | two[0];
    }
  for (int lane = 0; lane < 32; lane++)
    for (int m = 0; m < N; m++) words(args, lane)[index[2 + m]] = out[lane][m];
}
template <int N, bool TRANS> void store(void* const args[32], const uint16_t* index) {
  for (int m = 0; m < N; m++)
    for (int lane = 0; lane < 32; lane++)
      for (int i = 0; i < 2; i++) {
        int outer = lane / 4, inner = 2 * (lane % 4) + i;
        row_address(args, index, 8 * m + (TRANS ? inner : outer))[TRANS ? outer : inner] = uint16_t(words(args, lane)[index[2 + m]] >> (16 * i));
      }
}

struct Half { static constexpr int packed = 2; static float get(uint32_t w, int i) { return widen<F16>(uint16_t(w >> (16 * i))); } };
struct Brain { static constexpr int packed = 2; static float get(uint32_t w, int i) { return widen<BF16>(uint16_t(w >> (16 * i))); } };
struct Tf32 { static constexpr int packed = 1; static float get(uint32_t w, int) { return bits<float>(w & 0xffffe000u); } };

// A fragment of `total` elements, row-major within A, B or C; see wmma_element.
template <class T> void unpack(void* const args[32], const uint16_t* index, int total, float* out) {
  int per_lane = total / 32;
  for (int lane = 0; lane < 32; lane++)
    for (int i = 0; i < per_lane; i++) out[lane * per_lane + i] = T::get(words(args, lane)[index[i / T::packed]], i % T::packed);
}

// DT/CT: accumulators as f32 or f16 (packed in pairs).
template <class T, int M, int N, int K, int NA, int NB, bool D16, bool C16>
void wmma(void* const args[32], const uint16_t* index) {
  float a[M * K], b[K * N], c[M * N];
  const int nc = C16 ? M * N / 64 : M * N / 32;
  const uint16_t *ic = index + NA + NB, *id = ic + nc;
  unpack<T>(args, index, M * K, a);
  unpack<T>(args, index + NA, K * N, b);
  for (int lane = 0; lane < 32; lane++)
    for (int i = 0; i < M * N / 32; i++) {
      const uint32_t* w = words(args, lane);
      c[lane * (M * N / 32) + i] = C16 ? Half::get(w[ic[i / 2]], i % 2) : bits<float>(w[ic[i]]);
    }
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++)
      for (int k = 0; k < K; k++) c[i * N + j] += a[i * K + k] * b[k * N + j];
  for (int lane = 0; lane < 32; lane++)
    for (int i = 0; i < M * N / 32; i++) {
      uint32_t* w = words(args, lane);
      float v = c[lane * (M * N / 32) + i];
      if (!D16) w[id[i]] = bits<uint32_t>(v);
      else if (i % 2 == 0) w[id[i / 2]] = encode<F16>(v, RN, false);
      else w[id[i / 2]] |= encode<F16>(v, RN, false) << 16;
    }
}

}  // namespace

#define OP(name, ...) \
  void name(void* const args[32], const uint16_t* index) { __VA_ARGS__(args, index); }
extern "C" {
OP(isa_ldmatrix_x1, load<1, false>) OP(isa_ldmatrix_x2, load<2, false>) OP(isa_ldmatrix_x4, load<4, false>)
OP(isa_ldmatrix_x1_trans, load<1, true>) OP(isa_ldmatrix_x2_trans, load<2, true>) OP(isa_ldmatrix_x4_trans, load<4, true>)
OP(isa_stmatrix_x1, store<1, false>) OP(isa_stmatrix_x2, store<2, false>) OP(isa_stmatrix_x4, store<4, false>)
OP(isa_stmatrix_x1_trans, store<1, true>) OP(isa_stmatrix_x2_trans, store<2, true>) OP(isa_stmatrix_x4_trans, store<4, true>)
// index: source word, destination word.
void isa_movmatrix_trans(void* const args[32], const uint16_t* index) {
  uint16_t matrix[8][8];
  for (int lane = 0; lane < 32; lane++)
    for (int i = 0; i < 2; i++) matrix[lane / 4][2 * (lane % 4) + i] = uint16_t(words(args, lane)[index[0]] >> (16 * i));
  for (int lane = 0; lane < 32; lane++)
    words(args, lane)[index[1]] = uint32_t(matrix[2 * (lane % 4) + 1][lane / 4]) << 16 | matrix[2 * (lane % 4)][lane / 4];
}
OP(isa_wmma_m16n16k16_f16_f32_f32, wmma<Half, 16, 16, 16, 8, 8, false, false>)
OP(isa_wmma_m32n8k16_f16_f32_f32, wmma<Half, 32, 8, 16, 8, 8, false, false>)
OP(isa_wmma_m8n32k16_f16_f32_f32, wmma<Half, 8, 32, 16, 8, 8, false, false>)
OP(isa_wmma_m16n16k16_f16_f16_f16, wmma<Half, 16, 16, 16, 8, 8, true, true>)
OP(isa_wmma_m32n8k16_f16_f16_f16, wmma<Half, 32, 8, 16, 8, 8, true, true>)
OP(isa_wmma_m8n32k16_f16_f16_f16, wmma<Half, 8, 32, 16, 8, 8, true, true>)
OP(isa_wmma_m16n16k16_f16_f32_f16, wmma<Half, 16, 16, 16, 8, 8, false, true>)
OP(isa_wmma_m16n16k16_f16_f16_f32, wmma<Half, 16, 16, 16, 8, 8, true, false>)
OP(isa_wmma_m16n16k16_bf16_f32_f32, wmma<Brain, 16, 16, 16, 4, 4, false, false>)
OP(isa_wmma_m32n8k16_bf16_f32_f32, wmma<Brain, 32, 8, 16, 8, 2, false, false>)
OP(isa_wmma_m8n32k16_bf16_f32_f32, wmma<Brain, 8, 32, 16, 2, 8, false, false>)
OP(isa_wmma_m16n16k8_tf32_f32_f32, wmma<Tf32, 16, 16, 8, 4, 4, false, false>)
}

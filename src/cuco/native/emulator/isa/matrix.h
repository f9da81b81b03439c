// Warp-level matrix operations. They are compiled once, into the runner (matrix.cc, -O2 with clones for wider vectors),
// and give the same bits on every host: products are exact in the accumulator's precision, sums go in order of k.
//
// Calling convention: args[lane] points to that lane's registers as 32-bit words; `index` says which word holds which
// register: first all of A, then B, C and D (ldmatrix: address low, address high, then destinations). 64-bit registers
// take two consecutive words, and index names the first.
#pragma once
#include <cstdint>

extern "C" {
typedef void EmuMatrixOp(void* const args[32], const uint16_t* index);

EmuMatrixOp isa_mma_m16n8k16_f16_f32, isa_mma_m16n8k16_bf16_f32, isa_mma_m16n8k16_f16_f16;
EmuMatrixOp isa_mma_m16n8k8_f16_f32, isa_mma_m16n8k8_bf16_f32, isa_mma_m16n8k8_f16_f16;
EmuMatrixOp isa_mma_m16n8k8_tf32_f32, isa_mma_m16n8k4_tf32_f32;
EmuMatrixOp isa_mma_m8n8k4_f64_f64, isa_mma_m16n8k4_f64_f64, isa_mma_m16n8k8_f64_f64, isa_mma_m16n8k16_f64_f64;
// int8: the suffix names the signs of A and B; _sat is .satfinite.
EmuMatrixOp isa_mma_m16n8k32_s8s8, isa_mma_m16n8k32_s8u8, isa_mma_m16n8k32_u8s8, isa_mma_m16n8k32_u8u8;
EmuMatrixOp isa_mma_m16n8k32_s8s8_sat, isa_mma_m16n8k32_s8u8_sat, isa_mma_m16n8k32_u8s8_sat, isa_mma_m16n8k32_u8u8_sat;
EmuMatrixOp isa_mma_m16n8k16_s8s8, isa_mma_m16n8k16_s8u8, isa_mma_m16n8k16_u8s8, isa_mma_m16n8k16_u8u8;
EmuMatrixOp isa_mma_m16n8k16_s8s8_sat, isa_mma_m16n8k16_s8u8_sat, isa_mma_m16n8k16_u8s8_sat, isa_mma_m16n8k16_u8u8_sat;
EmuMatrixOp isa_mma_m16n8k32_e4m3e4m3_f32, isa_mma_m16n8k32_e4m3e5m2_f32, isa_mma_m16n8k32_e5m2e4m3_f32, isa_mma_m16n8k32_e5m2e5m2_f32;

EmuMatrixOp isa_ldmatrix_x1, isa_ldmatrix_x2, isa_ldmatrix_x4, isa_ldmatrix_x1_trans, isa_ldmatrix_x2_trans, isa_ldmatrix_x4_trans;
EmuMatrixOp isa_stmatrix_x1, isa_stmatrix_x2, isa_stmatrix_x4, isa_stmatrix_x1_trans, isa_stmatrix_x2_trans, isa_stmatrix_x4_trans;
EmuMatrixOp isa_movmatrix_trans;

// wmma: fragments have a layout of our own (wmma_element); f16 fragments repeat their elements to fill the registers.
EmuMatrixOp isa_wmma_m16n16k16_f16_f32_f32, isa_wmma_m32n8k16_f16_f32_f32, isa_wmma_m8n32k16_f16_f32_f32;
EmuMatrixOp isa_wmma_m16n16k16_f16_f16_f16, isa_wmma_m32n8k16_f16_f16_f16, isa_wmma_m8n32k16_f16_f16_f16;
EmuMatrixOp isa_wmma_m16n16k16_f16_f32_f16, isa_wmma_m16n16k16_f16_f16_f32;
EmuMatrixOp isa_wmma_m16n16k16_bf16_f32_f32, isa_wmma_m32n8k16_bf16_f32_f32, isa_wmma_m8n32k16_bf16_f32_f32;
EmuMatrixOp isa_wmma_m16n16k8_tf32_f32_f32;
}

namespace isa {
// The i-th of a lane's elements of a rows x cols fragment: its place in memory, in elements, for a leading dimension.
inline uint64_t wmma_element(uint32_t lane, uint32_t i, uint32_t rows, uint32_t cols, bool row_major, uint32_t stride) {
  uint32_t per_lane = rows * cols / 32, e = lane * per_lane + i % per_lane;
  uint64_t r = e / cols, c = e % cols;
  return row_major ? r * stride + c : c * stride + r;
}
}  // namespace isa

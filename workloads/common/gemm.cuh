// A bf16 tensor-core GEMM tile: C[m, n] = A[m, k] * B[n, k]^T, all row-major, float32 accumulation.
//
// One CTA of 256 threads makes a 128 x 128 tile of C: 8 warps as 2 x 4, each 64 x 32, by mma.sync m16n8k16. A and B
// tiles of depth 32 travel through a 4-stage cp.async pipeline; 16-byte units are XOR-swizzled so that ldmatrix and the
// copies are free of bank conflicts. The result is staged in shared memory and leaves in 16-byte stores.
//
// m is arbitrary (rows past the end are zero-filled and not stored); n is a multiple of 128 and k of 32. Two CTAs fit
// on an SM (64 KB of shared memory and at most 128 registers each).
//
// The tile's place is an argument, never blockIdx: whoever calls gemm_tile decides which CTA makes which tile.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace gemm {

using bf16 = __nv_bfloat16;

constexpr int kTileM = 128, kTileN = 128, kTileK = 32;
constexpr int kThreads = 256;
constexpr int kStages = 4;
constexpr int kWarpsM = 2;                                   // warps down a tile; 4 across
constexpr int kWarpM = kTileM / kWarpsM, kWarpN = 32;
constexpr int kFragsM = kWarpM / 16, kFragsN = kWarpN / 8;   // mma fragments of a warp
constexpr int kStageElements = (kTileM + kTileN) * kTileK;
constexpr int kStagingPitch = kTileN + 8;                    // elements; +8 spreads the rows over the banks
constexpr int kSharedBytes = kStages * kStageElements * (int)sizeof(bf16);

static_assert(kTileM * kStagingPitch * (int)sizeof(bf16) <= kSharedBytes, "the staged tile reuses the pipeline");
static_assert(kTileM * kTileK / 8 == 2 * kThreads, "two 16-byte units of A and of B per thread and stage");

namespace ptx {

__device__ __forceinline__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

// Copies 16 bytes, or zero-fills them when `bytes` is 0.
__device__ __forceinline__ void copy_async(bf16 *to, const bf16 *from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               ::"r"(shared_address(to)), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
__device__ __forceinline__ void wait_group() { asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory"); }

__device__ __forceinline__ void load_matrices(unsigned (&r)[4], const bf16 *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(row)) : "memory");
}
__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
               "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace ptx

// Element offset of (row, column) in a tile of depth 32: the 16-byte unit is permuted by the row.
__device__ __forceinline__ int swizzled(int row, int column) {
  return row * kTileK + (((column >> 3) ^ ((row >> 1) & 3)) << 3) + (column & 7);
}

struct Operands {
  const bf16 *__restrict__ a;
  const bf16 *__restrict__ b;
  int m, k, row0, column0;
};

// Starts the copy of one stage; rows of A past m are zero-filled.
__device__ __forceinline__ void load_stage(bf16 *stage, const Operands &in, int k0) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    int unit = threadIdx.x + i * kThreads, row = unit >> 2, column = (unit & 3) * 8;
    int from = in.row0 + row, inside = from < in.m;
    const bf16 *a = in.a + (size_t)(inside ? from : 0) * in.k + k0 + column;
    const bf16 *b = in.b + (size_t)(in.column0 + row) * in.k + k0 + column;
    ptx::copy_async(stage + swizzled(row, column), a, inside ? 16 : 0);
    ptx::copy_async(stage + kTileM * kTileK + swizzled(row, column), b, 16);
  }
}

// One stage's products for this warp.
__device__ __forceinline__ void multiply_stage(float (&acc)[kFragsM][kFragsN][4], const bf16 *stage, int warp_row,
                                               int warp_column) {
  const bf16 *a_tile = stage, *b_tile = stage + kTileM * kTileK;
  int lane = threadIdx.x & 31;
#pragma unroll
  for (int k = 0; k < kTileK; k += 16) {
    unsigned a[kFragsM][4], b[kFragsN / 2][4];
#pragma unroll
    for (int i = 0; i < kFragsM; i++)
      ptx::load_matrices(a[i], a_tile + swizzled(warp_row + i * 16 + (lane & 15), k + (lane >> 4) * 8));
#pragma unroll
    for (int j = 0; j < kFragsN / 2; j++) {
      int row = warp_column + j * 16 + (lane & 7) + ((lane >> 4) << 3);
      ptx::load_matrices(b[j], b_tile + swizzled(row, k + ((lane >> 3) & 1) * 8));
    }
#pragma unroll
    for (int i = 0; i < kFragsM; i++)
#pragma unroll
      for (int j = 0; j < kFragsN; j++)
        ptx::mma(acc[i][j], a[i], b[j >> 1][(j & 1) * 2], b[j >> 1][(j & 1) * 2 + 1]);
  }
}

// Rounds the accumulators to bf16 and stores the tile through shared memory.
__device__ __forceinline__ void store_tile(bf16 *c, const float (&acc)[kFragsM][kFragsN][4], bf16 *staging,
                                           const Operands &in, int n, int warp_row, int warp_column) {
  int lane = threadIdx.x & 31;
#pragma unroll
  for (int i = 0; i < kFragsM; i++)
#pragma unroll
    for (int j = 0; j < kFragsN; j++) {
      bf16 *at = staging + (warp_row + i * 16 + (lane >> 2)) * kStagingPitch + warp_column + j * 8 + (lane & 3) * 2;
      *(__nv_bfloat162 *)at = __floats2bfloat162_rn(acc[i][j][0], acc[i][j][1]);
      *(__nv_bfloat162 *)(at + 8 * kStagingPitch) = __floats2bfloat162_rn(acc[i][j][2], acc[i][j][3]);
    }
  __syncthreads();   // the rows of a tile are written by several warps
#pragma unroll
  for (int i = 0; i < kTileM * kTileN / 8 / kThreads; i++) {
    int unit = threadIdx.x + i * kThreads, row = unit / (kTileN / 8), column = unit % (kTileN / 8) * 8;
    bf16 *to = c + (size_t)(in.row0 + row) * n + in.column0 + column;
    if (in.row0 + row < in.m) *(uint4 *)to = *(const uint4 *)(staging + row * kStagingPitch + column);
  }
}

// Makes the tile of C whose first element is (row0, column0). `shared` is kSharedBytes of 16-byte aligned shared memory.
__device__ __forceinline__ void gemm_tile(const bf16 *__restrict__ a, const bf16 *__restrict__ b,
                                          bf16 *__restrict__ c, int m, int n, int k, int row0, int column0,
                                          bf16 *shared) {
  Operands in = {a, b, m, k, row0, column0};
  int warp = threadIdx.x >> 5, warp_row = (warp % kWarpsM) * kWarpM, warp_column = (warp / kWarpsM) * kWarpN;
  float acc[kFragsM][kFragsN][4] = {};
  int steps = k / kTileK;
#pragma unroll
  for (int s = 0; s < kStages - 1; s++) {
    if (s < steps) load_stage(shared + s * kStageElements, in, s * kTileK);
    ptx::commit_group();   // an empty group too: the waits count groups
  }
  for (int step = 0; step < steps; step++) {
    ptx::wait_group<kStages - 2>();   // this step's stage has landed for this thread...
    __syncthreads();                  // ...and for all; and everybody has left the stage that is refilled next
    int next = step + kStages - 1;
    if (next < steps) load_stage(shared + next % kStages * kStageElements, in, next * kTileK);
    ptx::commit_group();
    multiply_stage(acc, shared + step % kStages * kStageElements, warp_row, warp_column);
  }
  ptx::wait_group<0>();
  __syncthreads();   // the pipeline's space becomes the staging space
  store_tile(c, acc, shared, in, n, warp_row, warp_column);
}

}  // namespace gemm

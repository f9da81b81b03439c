// GEMM, then all-gather, host-driven: rank r makes its block of rows of `c` in place and gathers the others'.
#include <cstring>

#include "cuco.h"
#include "gemm.cuh"

using gemm::bf16;

static const cuco_buffer *find_buffer(const cuco_ctx *ctx, const char *name) {
  for (int i = 0; i < ctx->nbuffers; i++)
    if (strcmp(ctx->buffers[i].name, name) == 0) return &ctx->buffers[i];
  return nullptr;
}

// One CTA per tile; tiles of a row block are neighbours in the grid, so row blocks are finished in order.
__global__ void __launch_bounds__(gemm::kThreads, 2)
gemm_kernel(const bf16 *a, const bf16 *b, bf16 *c, int m, int n, int k) {
  extern __shared__ __align__(128) unsigned char shared[];
  gemm::gemm_tile(a, b, c, m, n, k, blockIdx.y * gemm::kTileM, blockIdx.x * gemm::kTileN, (bf16 *)shared);
}

extern "C" int cuco_prepare(const cuco_ctx *, void **) {
  return cudaFuncSetAttribute(gemm_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, gemm::kSharedBytes);
}

extern "C" int cuco_launch(const cuco_ctx *ctx, void *, cudaStream_t stream) {
  const cuco_buffer *a = find_buffer(ctx, "a"), *b = find_buffer(ctx, "b"), *c = find_buffer(ctx, "c");
  int rows = (int)a->shape[0], k = (int)a->shape[1], n = (int)b->shape[0];
  size_t count = (size_t)rows * n;
  bf16 *mine = (bf16 *)c->ptr + ctx->rank * count;
  // EVOLVE-BLOCK-START
  dim3 grid(n / gemm::kTileN, (rows + gemm::kTileM - 1) / gemm::kTileM);
  gemm_kernel<<<grid, gemm::kThreads, gemm::kSharedBytes, stream>>>((const bf16 *)a->ptr, (const bf16 *)b->ptr, mine,
                                                                    rows, n, k);
  cudaError_t launched = cudaGetLastError();
  if (launched != cudaSuccess) return launched;
  ncclResult_t rc = ncclAllGather(mine, c->ptr, count, ncclBfloat16, ctx->comm, stream);
  // EVOLVE-BLOCK-END
  return rc == ncclSuccess ? 0 : rc + 1000;
}

extern "C" int cuco_finish(const cuco_ctx *, void *) { return 0; }

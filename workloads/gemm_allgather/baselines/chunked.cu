// GEMM and all-gather in `chunks` row chunks on two streams: while chunk i travels, chunk i + 1 is computed.
//
// A chunk's place in `c` is not contiguous over the ranks, so it is gathered by grouped sends and receives.
#include <cstring>

#include "cuco.h"
#include "gemm.cuh"

using gemm::bf16;

constexpr int kMaxChunks = 64;

struct State {
  cudaStream_t communication;
  cudaEvent_t computed[kMaxChunks], sent;
  int chunks;
};

static const cuco_buffer *find_buffer(const cuco_ctx *ctx, const char *name) {
  for (int i = 0; i < ctx->nbuffers; i++)
    if (strcmp(ctx->buffers[i].name, name) == 0) return &ctx->buffers[i];
  return nullptr;
}

static int64_t find_param(const cuco_ctx *ctx, const char *name, int64_t fallback) {
  for (int i = 0; i < ctx->nparams; i++)
    if (strcmp(ctx->params[i].name, name) == 0) return ctx->params[i].i;
  return fallback;
}

__global__ void __launch_bounds__(gemm::kThreads, 2)
gemm_kernel(const bf16 *a, const bf16 *b, bf16 *c, int m, int n, int k) {
  extern __shared__ __align__(128) unsigned char shared[];
  gemm::gemm_tile(a, b, c, m, n, k, blockIdx.y * gemm::kTileM, blockIdx.x * gemm::kTileN, (bf16 *)shared);
}

// Sends my rows [first, first + rows) to everybody and receives theirs.
static ncclResult_t exchange_chunk(const cuco_ctx *ctx, bf16 *c, size_t block, size_t first, size_t count,
                                   cudaStream_t stream) {
  ncclResult_t rc = ncclGroupStart();
  for (int step = 1; step < ctx->nranks && rc == ncclSuccess; step++) {
    int to = (ctx->rank + step) % ctx->nranks, from = (ctx->rank + ctx->nranks - step) % ctx->nranks;
    rc = ncclSend(c + ctx->rank * block + first, count, ncclBfloat16, to, ctx->comm, stream);
    if (rc == ncclSuccess) rc = ncclRecv(c + from * block + first, count, ncclBfloat16, from, ctx->comm, stream);
  }
  ncclResult_t end = ncclGroupEnd();
  return rc == ncclSuccess ? end : rc;
}

extern "C" int cuco_prepare(const cuco_ctx *ctx, void **state) {
  State *s = new State();
  *state = s;
  s->chunks = (int)find_param(ctx, "chunks", 4);
  if (s->chunks < 1 || s->chunks > kMaxChunks) {
    ctx->error(ctx, "chunks must be between 1 and 64");
    return cudaErrorInvalidValue;
  }
  int low, high;
  cudaError_t rc = cudaDeviceGetStreamPriorityRange(&low, &high);
  if (rc == cudaSuccess) rc = cudaStreamCreateWithPriority(&s->communication, cudaStreamNonBlocking, high);
  for (int i = 0; i < s->chunks && rc == cudaSuccess; i++)
    rc = cudaEventCreateWithFlags(&s->computed[i], cudaEventDisableTiming);
  if (rc == cudaSuccess) rc = cudaEventCreateWithFlags(&s->sent, cudaEventDisableTiming);
  if (rc == cudaSuccess)
    rc = cudaFuncSetAttribute(gemm_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, gemm::kSharedBytes);
  return rc;
}

extern "C" int cuco_launch(const cuco_ctx *ctx, void *state, cudaStream_t stream) {
  State *s = (State *)state;
  const cuco_buffer *a = find_buffer(ctx, "a"), *b = find_buffer(ctx, "b"), *c = find_buffer(ctx, "c");
  int rows = (int)a->shape[0], k = (int)a->shape[1], n = (int)b->shape[0];
  size_t block = (size_t)rows * n;
  int tiles = (rows + gemm::kTileM - 1) / gemm::kTileM;
  for (int i = 0; i < s->chunks; i++) {   // chunks are whole row tiles; the last rows may be fewer
    int first = tiles * i / s->chunks * gemm::kTileM, last = min(tiles * (i + 1) / s->chunks * gemm::kTileM, rows);
    if (first >= last) continue;
    bf16 *mine = (bf16 *)c->ptr + ctx->rank * block + (size_t)first * n;
    dim3 grid(n / gemm::kTileN, (last - first + gemm::kTileM - 1) / gemm::kTileM);
    gemm_kernel<<<grid, gemm::kThreads, gemm::kSharedBytes, stream>>>((const bf16 *)a->ptr + (size_t)first * k,
                                                                      (const bf16 *)b->ptr, mine, last - first, n, k);
    cudaError_t rc = cudaGetLastError();
    if (rc == cudaSuccess) rc = cudaEventRecord(s->computed[i], stream);
    if (rc == cudaSuccess) rc = cudaStreamWaitEvent(s->communication, s->computed[i], 0);
    if (rc != cudaSuccess) return rc;
    ncclResult_t sent =
        exchange_chunk(ctx, (bf16 *)c->ptr, block, (size_t)first * n, (size_t)(last - first) * n, s->communication);
    if (sent != ncclSuccess) return sent + 1000;
  }
  cudaError_t rc = cudaEventRecord(s->sent, s->communication);
  return rc == cudaSuccess ? cudaStreamWaitEvent(stream, s->sent, 0) : rc;
}

extern "C" int cuco_finish(const cuco_ctx *, void *state) {
  State *s = (State *)state;
  for (int i = 0; i < s->chunks; i++) cudaEventDestroy(s->computed[i]);
  cudaEventDestroy(s->sent);
  cudaStreamDestroy(s->communication);
  delete s;
  return 0;
}

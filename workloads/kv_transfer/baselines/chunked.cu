// Key-value transfer on two streams: K and V are each made and sent in `chunks` row chunks, so that a chunk travels
// while the next one is computed. One chunk is the coarse overlap: K travels while V is computed.
#include <cstring>

#include "cuco.h"
#include "gemm.cuh"

using gemm::bf16;

constexpr int kMaxChunks = 64;

struct State {
  cudaStream_t communication;
  cudaEvent_t computed[2 * kMaxChunks], sent;
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

struct Chunk { int first, last; };

// Chunks are whole row tiles; the last rows may be fewer, and a chunk may be empty.
static Chunk chunk_rows(int rows, int chunks, int index) {
  int tiles = (rows + gemm::kTileM - 1) / gemm::kTileM;
  return {tiles * index / chunks * gemm::kTileM, min(tiles * (index + 1) / chunks * gemm::kTileM, rows)};
}

// Rank 0: makes one chunk on `stream` and sends it on the communication stream.
static int make_and_send(const cuco_ctx *ctx, State *s, const cuco_buffer *x, const cuco_buffer *w,
                         const cuco_buffer *out, Chunk rows, cudaEvent_t computed, cudaStream_t stream) {
  int k = (int)x->shape[1], n = (int)w->shape[0], m = rows.last - rows.first;
  bf16 *at = (bf16 *)out->ptr + (size_t)rows.first * n;
  dim3 grid(n / gemm::kTileN, (m + gemm::kTileM - 1) / gemm::kTileM);
  gemm_kernel<<<grid, gemm::kThreads, gemm::kSharedBytes, stream>>>((const bf16 *)x->ptr + (size_t)rows.first * k,
                                                                    (const bf16 *)w->ptr, at, m, n, k);
  cudaError_t rc = cudaGetLastError();
  if (rc == cudaSuccess) rc = cudaEventRecord(computed, stream);
  if (rc == cudaSuccess) rc = cudaStreamWaitEvent(s->communication, computed, 0);
  if (rc != cudaSuccess) return rc;
  ncclResult_t sent = ncclSend(at, (size_t)m * n, ncclBfloat16, 1, ctx->comm, s->communication);
  return sent == ncclSuccess ? 0 : sent + 1000;
}

extern "C" int cuco_prepare(const cuco_ctx *ctx, void **state) {
  State *s = new State();
  *state = s;
  s->chunks = (int)find_param(ctx, "chunks", 1);
  if (s->chunks < 1 || s->chunks > kMaxChunks) {
    ctx->error(ctx, "chunks must be between 1 and 64");
    return cudaErrorInvalidValue;
  }
  int low, high;
  cudaError_t rc = cudaDeviceGetStreamPriorityRange(&low, &high);
  if (rc == cudaSuccess) rc = cudaStreamCreateWithPriority(&s->communication, cudaStreamNonBlocking, high);
  for (int i = 0; i < 2 * s->chunks && rc == cudaSuccess; i++)
    rc = cudaEventCreateWithFlags(&s->computed[i], cudaEventDisableTiming);
  if (rc == cudaSuccess) rc = cudaEventCreateWithFlags(&s->sent, cudaEventDisableTiming);
  if (rc == cudaSuccess)
    rc = cudaFuncSetAttribute(gemm_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, gemm::kSharedBytes);
  return rc;
}

extern "C" int cuco_launch(const cuco_ctx *ctx, void *state, cudaStream_t stream) {
  State *s = (State *)state;
  const cuco_buffer *x = find_buffer(ctx, "x");
  const cuco_buffer *weights[2] = {find_buffer(ctx, "wk"), find_buffer(ctx, "wv")};
  const cuco_buffer *outputs[2] = {find_buffer(ctx, "key"), find_buffer(ctx, "value")};
  for (int i = 0; i < 2 * s->chunks; i++) {
    const cuco_buffer *out = outputs[i / s->chunks];
    Chunk rows = chunk_rows((int)out->shape[0], s->chunks, i % s->chunks);
    if (rows.first >= rows.last) continue;
    if (ctx->rank == 0) {
      int rc = make_and_send(ctx, s, x, weights[i / s->chunks], out, rows, s->computed[i], stream);
      if (rc != 0) return rc;
    } else {
      size_t width = out->shape[1], first = rows.first * width, count = (rows.last - rows.first) * width;
      ncclResult_t rc = ncclRecv((bf16 *)out->ptr + first, count, ncclBfloat16, 0, ctx->comm, stream);
      if (rc != ncclSuccess) return rc + 1000;
    }
  }
  if (ctx->rank != 0) return 0;
  cudaError_t rc = cudaEventRecord(s->sent, s->communication);
  return rc == cudaSuccess ? cudaStreamWaitEvent(stream, s->sent, 0) : rc;
}

extern "C" int cuco_finish(const cuco_ctx *, void *state) {
  State *s = (State *)state;
  for (int i = 0; i < 2 * s->chunks; i++) cudaEventDestroy(s->computed[i]);
  cudaEventDestroy(s->sent);
  cudaStreamDestroy(s->communication);
  delete s;
  return 0;
}

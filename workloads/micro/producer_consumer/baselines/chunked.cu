// Producer and consumer in `chunks` chunks on two streams: a chunk travels while its neighbours are made and consumed.
#include <cstring>

#include "cuco.h"

static const cuco_buffer *find_buffer(const cuco_ctx *ctx, const char *name) {
  for (int i = 0; i < ctx->nbuffers; i++)
    if (strcmp(ctx->buffers[i].name, name) == 0) return &ctx->buffers[i];
  return nullptr;
}

constexpr int kThreads = 256, kMaxCtas = 264, kMaxChunks = 64;

struct State {
  float *staging;   // what travels: made on the even rank, received on the odd one
  cudaStream_t communication;
  cudaEvent_t entered, ready[kMaxChunks], done;
  int chunks;
};

static int64_t find_param(const cuco_ctx *ctx, const char *name, int64_t fallback) {
  for (int i = 0; i < ctx->nparams; i++)
    if (strcmp(ctx->params[i].name, name) == 0) return ctx->params[i].i;
  return fallback;
}

__global__ void __launch_bounds__(kThreads) produce(const float *send, float *staging, size_t n) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
    staging[i] = 2.0f * send[i] + 1.0f;
}

__global__ void __launch_bounds__(kThreads) consume(const float *staging, const float *send, float *recv, size_t n) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
    recv[i] = staging[i] + send[i];
}

static int ctas(size_t n) {
  size_t needed = (n + kThreads - 1) / kThreads;
  return needed < kMaxCtas ? (int)needed : kMaxCtas;
}

// Makes `after` wait for everything that `before` has been given so far.
static cudaError_t join(cudaStream_t before, cudaStream_t after, cudaEvent_t event) {
  cudaError_t rc = cudaEventRecord(event, before);
  return rc == cudaSuccess ? cudaStreamWaitEvent(after, event, 0) : rc;
}

extern "C" int cuco_prepare(const cuco_ctx *ctx, void **state) {
  State *s = new State();
  *state = s;
  s->chunks = (int)find_param(ctx, "chunks", 4);
  if (s->chunks < 1 || s->chunks > kMaxChunks) {
    ctx->error(ctx, "chunks must be between 1 and 64");
    return cudaErrorInvalidValue;
  }
  s->staging = (float *)ctx->alloc(ctx, find_buffer(ctx, "send")->bytes, 4096);
  if (!s->staging) return cudaErrorMemoryAllocation;
  cudaError_t rc = cudaStreamCreateWithFlags(&s->communication, cudaStreamNonBlocking);
  if (rc == cudaSuccess) rc = cudaEventCreateWithFlags(&s->entered, cudaEventDisableTiming);
  if (rc == cudaSuccess) rc = cudaEventCreateWithFlags(&s->done, cudaEventDisableTiming);
  for (int i = 0; i < s->chunks && rc == cudaSuccess; i++)
    rc = cudaEventCreateWithFlags(&s->ready[i], cudaEventDisableTiming);
  return rc;
}

extern "C" int cuco_launch(const cuco_ctx *ctx, void *state, cudaStream_t stream) {
  State *s = (State *)state;
  const cuco_buffer *send = find_buffer(ctx, "send"), *recv = find_buffer(ctx, "recv");
  const float *mine = (const float *)send->ptr;
  size_t n = (size_t)send->shape[0];
  cudaError_t rc = join(stream, s->communication, s->entered);
  for (int i = 0; i < s->chunks && rc == cudaSuccess; i++) {
    size_t first = n * i / s->chunks, count = n * (i + 1) / s->chunks - first;
    if (count == 0) continue;
    ncclResult_t moved;
    if (ctx->rank % 2 == 0) {
      produce<<<ctas(count), kThreads, 0, stream>>>(mine + first, s->staging + first, count);
      rc = join(stream, s->communication, s->ready[i]);
      moved = ncclSend(s->staging + first, count, ncclFloat, ctx->rank + 1, ctx->comm, s->communication);
    } else {
      moved = ncclRecv(s->staging + first, count, ncclFloat, ctx->rank - 1, ctx->comm, s->communication);
      rc = join(s->communication, stream, s->ready[i]);
      consume<<<ctas(count), kThreads, 0, stream>>>(s->staging + first, mine + first, (float *)recv->ptr + first, count);
    }
    if (moved != ncclSuccess) return moved + 1000;
  }
  if (rc == cudaSuccess) rc = join(s->communication, stream, s->done);
  return rc == cudaSuccess ? cudaGetLastError() : rc;
}

extern "C" int cuco_finish(const cuco_ctx *, void *state) {
  State *s = (State *)state;
  for (int i = 0; i < s->chunks; i++) cudaEventDestroy(s->ready[i]);
  cudaEventDestroy(s->entered);
  cudaEventDestroy(s->done);
  cudaStreamDestroy(s->communication);
  delete s;
  return 0;
}

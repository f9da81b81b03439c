// Producer and consumer, host-driven: rank 2k makes 2 x + 1 and sends it; rank 2k + 1 adds its own data.
#include <cstring>

#include "cuco.h"

static const cuco_buffer *find_buffer(const cuco_ctx *ctx, const char *name) {
  for (int i = 0; i < ctx->nbuffers; i++)
    if (strcmp(ctx->buffers[i].name, name) == 0) return &ctx->buffers[i];
  return nullptr;
}

constexpr int kThreads = 256, kMaxCtas = 264;

struct State {
  float *staging;   // what travels: made on the even rank, received on the odd one
};

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

extern "C" int cuco_prepare(const cuco_ctx *ctx, void **state) {
  State *s = new State();
  *state = s;
  s->staging = (float *)ctx->alloc(ctx, find_buffer(ctx, "send")->bytes, 4096);
  return s->staging ? 0 : cudaErrorMemoryAllocation;
}

extern "C" int cuco_launch(const cuco_ctx *ctx, void *state, cudaStream_t stream) {
  float *staging = ((State *)state)->staging;
  const cuco_buffer *send = find_buffer(ctx, "send"), *recv = find_buffer(ctx, "recv");
  size_t n = (size_t)send->shape[0];
  ncclResult_t rc;
  // EVOLVE-BLOCK-START
  if (ctx->rank % 2 == 0) {
    produce<<<ctas(n), kThreads, 0, stream>>>((const float *)send->ptr, staging, n);
    rc = ncclSend(staging, n, ncclFloat, ctx->rank + 1, ctx->comm, stream);
  } else {
    rc = ncclRecv(staging, n, ncclFloat, ctx->rank - 1, ctx->comm, stream);
    consume<<<ctas(n), kThreads, 0, stream>>>(staging, (const float *)send->ptr, (float *)recv->ptr, n);
  }
  // EVOLVE-BLOCK-END
  cudaError_t launched = cudaGetLastError();
  if (launched != cudaSuccess) return launched;
  return rc == ncclSuccess ? 0 : rc + 1000;
}

extern "C" int cuco_finish(const cuco_ctx *, void *state) {
  delete (State *)state;
  return 0;
}

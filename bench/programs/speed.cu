// What the emulator's speed is measured with: threads that never block, threads at barriers, and threads that all wait.
// Which of them a step runs is the parameter `what`: 0 independent threads, 1 barriers, 2 blocked threads.
#include <cstring>

#include "cuco.h"

constexpr int kThreads = 1024;
constexpr int kBarriers = 64;

static int64_t find_param(const cuco_ctx *ctx, const char *name) {
  for (int i = 0; i < ctx->nparams; i++)
    if (strcmp(ctx->params[i].name, name) == 0) return ctx->params[i].i;
  return 0;
}

__global__ void independent(float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i & 1023] = i * 0.5f;
}

__global__ void barriers(float *out) {
  for (int i = 0; i < kBarriers; i++) __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x & 1023] = 1;
}

// All CTAs are resident, and every thread waits for a flag that the last CTA to come raises, once.
__global__ void blocked(unsigned *words, unsigned ctas) {
  if (threadIdx.x == 0 && atomicAdd(&words[0], 1) == ctas - 1) *(volatile unsigned *)&words[64] = 1;
  while (*(volatile unsigned *)&words[64] == 0) {
  }
}

extern "C" int cuco_prepare(const cuco_ctx *ctx, void **state) {
  *state = ctx->alloc(ctx, 4096, 256);
  return *state ? cudaMemset(*state, 0, 4096) : cudaErrorMemoryAllocation;
}

extern "C" int cuco_launch(const cuco_ctx *ctx, void *state, cudaStream_t stream) {
  int ctas = (int)find_param(ctx, "ctas");
  float *out = (float *)ctx->buffers[1].ptr;
  switch (find_param(ctx, "what")) {
    case 0: independent<<<ctas, kThreads, 0, stream>>>(out); break;
    case 1: barriers<<<ctas, kThreads, 0, stream>>>(out); break;
    default: blocked<<<ctas, kThreads, 0, stream>>>((unsigned *)state, ctas); break;
  }
  return cudaGetLastError();
}

extern "C" int cuco_finish(const cuco_ctx *, void *) { return 0; }

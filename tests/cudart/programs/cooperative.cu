// A cooperative launch: every block sees what all blocks wrote before the grid's barrier; shared memory by opt-in.
#include "check.h"

#include <cooperative_groups.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

__global__ void total(const int* in, int* partial, int* out) {
  extern __shared__ int warps[];
  int sum = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = 0;
    for (int w = 0; w < blockDim.x / 32; w++) partial[blockIdx.x] += warps[w];
  }
  cg::this_grid().sync();
  if (threadIdx.x == 0) {
    int all = 0;
    for (int b = 0; b < gridDim.x; b++) all += partial[b];
    out[blockIdx.x] = all;
  }
}

extern "C" int run(int rank, int) {
  failures = 0;
  const int blocks = 16, threads = 128, n = blocks * threads;
  int host[n], *in, *partial, *out, expected = 0;
  for (int i = 0; i < n; i++) expected += host[i] = i % 97 + rank;
  OK(cudaMalloc(&in, sizeof host));
  OK(cudaMalloc(&partial, blocks * 4));
  OK(cudaMalloc(&out, blocks * 4));
  OK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  OK(cudaFuncSetAttribute(total, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
  void* arguments[] = {&in, &partial, &out};
  OK(cudaLaunchCooperativeKernel(total, blocks, threads, arguments, 100000, cudaStreamPerThread));
  int answer[blocks];
  OK(cudaMemcpy(answer, out, sizeof answer, cudaMemcpyDeviceToHost));
  for (int b = 0; b < blocks; b++) CHECK(answer[b] == expected);
  int per_sm = 0, size = 0, grid = 0;
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, total, threads, 100000));
  CHECK(per_sm == 2);
  OK(cudaOccupancyMaxPotentialBlockSize(&grid, &size, total));
  CHECK(size == 1024 && grid == 2 * 132);
  return failures;
}

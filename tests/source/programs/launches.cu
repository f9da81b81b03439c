// Every way to launch a kernel, with grids as expressions, dim3 variables and attributes.
#include <cuda_runtime.h>
#include <nccl.h>

namespace math {
template <class T, bool Fast, int N = 3> __global__ void __launch_bounds__(256, 2) apply(T *p, const __grid_constant__ int q) { p[q] = T{}; }
template <class T> struct pair { T first; };
}  // namespace math

__global__ void __cluster_dims__(2, 1, 1) plain(int *p) {
  asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
  p[0] = 1;
}
extern "C" __global__ void two(const float *in, float *out, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] += in[i];
}
template <class F> __global__ void call(F f, int n) { f(threadIdx.x + n); }
template <int A> int shifted() { return 1 << A; }
struct Table { void (*kernels[2])(int *); };

void program(int *p, float *f, float *g, Table table, ncclComm_t comm, cudaStream_t s, int i) {
  math::apply<math::pair<int>, (1 > 0)><<<dim3(i << 1, 2), dim3(32, (i > 3) ? 4 : 8), i >> 1, s>>>((math::pair<int> *)p, 7);
  math::apply<float, true, (4 >> 1)> <<< 1 , 32 >>> (f, 3);
  plain<<<1, 64>>>(p);
  table.kernels[i & 1]<<<1, 1>>>(p);
  void (*pointer)(int *) = plain;
  pointer<<<shifted<2>(), 32>>>(p);
  call<<<1, 32, 0, s>>>([=] __device__(int j) { p[j] = j < 3 ? j << 2 : j >> 1; }, 2);
  if (ncclAllReduce(p, p, 1, ncclInt, ncclSum, comm, s) == ncclSuccess && i < 3 && i > 1) plain<<<i, i>>>(p);

  dim3 grid((i + 15) / 16, 2), block(16, 16);
  int count = 100;
  void *arguments[] = {&f, &g, &count};
  cudaLaunchKernel((const void *)two, grid, block, arguments, 1024, s);
  cudaLaunchCooperativeKernel((void *)two, grid, block, arguments, 0, s);

  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(128);
  config.stream = s;
  cudaLaunchKernelEx(&config, two, (const float *)f, g, count);
  cudaLaunchKernelExC(&config, (const void *)two, arguments);
}

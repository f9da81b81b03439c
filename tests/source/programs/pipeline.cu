// A whole program: two communicators, two streams, a struct of buffers, helpers that allocate, aliases, timing.
#include <cuda_runtime.h>
#include <mpi.h>
#include <nccl.h>
#include <cstdlib>

struct Buffers { float *input, *partial; float *gathered; };

template <class T> T *device_array(size_t count) {
  T *memory;
  cudaMalloc(&memory, count * sizeof(T));
  return memory;
}

__device__ float squared(float v) { return v * v; }
__device__ void put(float *where, int i, float v) { where[i] = v; }
__global__ void produce(const float *__restrict__ in, float *__restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float *cursor = out + i;
  if (i < n) put(cursor, 0, squared(in[i]));
}
__global__ void consume(const float *all, float *result, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&result[i % 32], all[i]);
}

int main(int argc, char **argv) {
  const size_t n = argc > 1 ? atoi(argv[1]) : 1 << 20;
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  ncclComm_t world, half;
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  ncclCommInitRank(&world, ranks, id, rank);
  ncclCommSplit(world, rank % 2, rank, &half, nullptr);
  cudaStream_t compute, communicate;
  cudaStreamCreate(&compute);
  cudaStreamCreate(&communicate);
  Buffers b;
  b.input = device_array<float>(n);
  b.partial = device_array<float>(n);
  ncclMemAlloc((void **)&b.gathered, n * ranks * sizeof(float));
  float *result, *host = (float *)malloc(n * sizeof(float));
  cudaMalloc((void **)&result, 32 * sizeof(float));
  cudaMemcpy(b.input, host, n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemset(result, 0, 32 * sizeof(float));
  cudaEvent_t start, stop, ready;
  cudaEventCreate(&start); cudaEventCreate(&stop); cudaEventCreate(&ready);

  produce<<<1, 32, 0, compute>>>(b.input, b.partial, 32);  // warm-up

  cudaEventRecord(start, compute);
  for (int step = 0; step < 10; step++) {
    produce<<<(n + 255) / 256, 256, 0, compute>>>(b.input, b.partial, (int)n);
    cudaEventRecord(ready, compute);
    cudaStreamWaitEvent(communicate, ready, 0);
    ncclAllGather(b.partial, b.gathered, n, ncclFloat, world, communicate);
    ncclBcast(b.gathered, n, ncclFloat, 0, half, communicate);
    consume<<<(n * ranks + 255) / 256, 256, 0, communicate>>>(b.gathered, result, (int)(n * ranks));
  }
  cudaEventRecord(stop, compute);
  cudaEventSynchronize(stop);
  float ms;
  cudaEventElapsedTime(&ms, start, stop);
  cudaMemcpy(host, result, 32 * sizeof(float), cudaMemcpyDeviceToHost);
  MPI_Finalize();
  return 0;
}

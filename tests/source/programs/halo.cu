// A step with a kernel before a grouped exchange in a loop, on two streams; helpers and locals that sizes depend on.
#include <cuda_runtime.h>
#include <nccl.h>

constexpr int kThreads = 256;
inline int blocks_for(size_t count) { return (int)((count + kThreads - 1) / kThreads); }

__global__ void scale(const float *in, float *out, size_t count, float by) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < count) out[i] = by * in[i];
}

static void exchange(float *out, float *in, size_t count, int ranks, ncclComm_t comm, cudaStream_t stream) {
  ncclGroupStart();
  for (int peer = 0; peer < ranks; peer++) {
    ncclSend(out + peer * count, count, ncclFloat, peer, comm, stream);
    ncclRecv(in + peer * count, count, ncclFloat, peer, comm, stream);
  }
  ncclGroupEnd();
}

int main() {
  int rank = 0, ranks = 4;
  const size_t count = 4096;
  ncclComm_t comm;
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  ncclCommInitRank(&comm, ranks, id, rank);
  ncclCommCount(comm, &ranks);
  size_t total = count * ranks;
  float *input, *scaled, *received;
  cudaMalloc(&input, total * sizeof(float));
  cudaMalloc(&scaled, total * sizeof(float));
  cudaMalloc(&received, total * sizeof(float));
  cudaStream_t compute, move;
  cudaStreamCreate(&compute);
  cudaStreamCreate(&move);
  scale<<<blocks_for(total), kThreads, 0, compute>>>(input, scaled, total, 2.0f);
  cudaStreamSynchronize(compute);
  exchange(scaled, received, count, ranks, comm, move);
  cudaDeviceSynchronize();
  return 0;
}

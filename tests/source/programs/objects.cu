// Buffers in classes: members, vectors of pointers, objects on the heap, methods calling methods, range loops.
#include <cuda_runtime.h>
#include <nccl.h>
#include <memory>
#include <vector>

__global__ void fill(float *x, float value) { x[blockIdx.x] = value; }

struct Trainer {
  float *grads = nullptr, *weights = nullptr;
  std::vector<float *> shards;
  ncclComm_t comm;
  cudaStream_t compute, reduce;
  size_t count;

  Trainer(size_t n, ncclComm_t shared) : comm(shared), count(n) {
    cudaMalloc(&grads, n * sizeof(float));
    cudaMalloc((void **)&weights, n * sizeof(float));
    shards.resize(4);
    for (int i = 0; i < 4; i++) cudaMalloc(&shards[i], n);
  }
  void backward() { fill<<<128, 1, 0, compute>>>(grads, 1.f); }
  void combine() {
    ncclAllReduce(grads, grads, count, ncclFloat, ncclSum, comm, reduce);
    this->scatter();
  }
  void scatter() {
    for (auto *shard : shards) ncclReduceScatter(grads, shard, count / 4, ncclFloat, ncclSum, comm, reduce);
  }
  void step() {
    backward();
    combine();
    cudaMemcpyAsync(weights, grads, count * 4, cudaMemcpyDeviceToDevice, reduce);
    ncclBroadcast(weights, weights, count, ncclFloat, 0, comm, reduce);
  }
};

template <void (*Kernel)(float *, float)> void run(float *x, dim3 grid, cudaStream_t s) { Kernel<<<grid, 2, 0, s>>>(x, 3.f); }

int main() {
  ncclComm_t world;
  auto heap = std::make_unique<Trainer>(1024, world);
  Trainer local(2048, world);
  for (int epoch = 0; epoch < 10; ++epoch) {
    heap->step();
    local.step();
  }
  run<fill>(local.weights, dim3(4, 2), local.compute);
}

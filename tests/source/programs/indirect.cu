// Helpers of a header, a group as an object, std::function, threads, a symbol looked up by name, a macro that chooses.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <functional>
#include <thread>
#include <vector>

#include "shared_header.cuh"

typedef ncclResult_t (*AllReduce)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t);
static AllReduce find() { return (AllReduce)dlsym(RTLD_DEFAULT, "ncclAllReduce"); }
#ifdef SCATTERED
#define COMBINE(...) ncclReduceScatter(__VA_ARGS__)
#else
#define COMBINE(...) ncclAllReduce(__VA_ARGS__)
#endif

void worker(int rank, int ranks, float *x, ncclComm_t *comms, cudaStream_t *streams) {
  shared::swap_halos(x, x, 8, (rank + 1) % ranks, comms[rank], streams[rank]);
  {
    shared::Grouped group;
    for (int p = 0; p < ranks; p++)
      if (p != rank)
        ncclSend(x, 1, ncclFloat, p, comms[rank], streams[rank]), ncclRecv(x, 1, ncclFloat, p, comms[rank], streams[rank]);
  }
  std::function<ncclResult_t(int)> later = [=](int root) {
    return ncclReduce(x, x, 4, ncclFloat, ncclMax, root, comms[rank], streams[rank]);
  };
  later(0);
  if (auto found = find()) found(x, x, 2, ncclFloat, ncclSum, comms[rank], streams[rank]);
  COMBINE(x, x, 16, ncclFloat, ncclSum, comms[rank], streams[rank]);
}

int main() {
  const int ranks = 4;
  std::vector<ncclComm_t> comms(ranks);
  std::vector<cudaStream_t> streams(ranks);
  ncclCommInitAll(comms.data(), ranks, nullptr);
  std::vector<std::thread> threads;
  for (int i = 0; i < ranks; i++) threads.emplace_back(worker, i, ranks, nullptr, comms.data(), streams.data());
  for (auto &thread : threads) thread.join();
}

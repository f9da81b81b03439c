// Captured graphs: replays, forks and joins, a graph inside a chain of launches, parameters frozen at capture.
#include "check.h"

#include <cuda_runtime.h>

#include <vector>

__global__ void append(int* list, int value) { list[atomicAdd(list, 1) + 1] = value; }
__global__ void add(int* p, int value) { atomicAdd(p, value); }

static int calls;
static void count(void*) { calls++; }

static std::vector<int> fetch(int* device) {
  int host[64];
  OK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
  return std::vector<int>(host + 1, host + 1 + host[0]);
}

extern "C" int run(int, int) {
  failures = 0, calls = 0;
  cudaStream_t s, side;
  cudaEvent_t fork, join;
  OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  OK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  OK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  OK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  int *list, *sum;
  OK(cudaMalloc(&list, 256));
  OK(cudaMalloc(&sum, 4));
  OK(cudaMemset(list, 0, 256));
  OK(cudaMemset(sum, 0, 4));
  OK(cudaDeviceSynchronize());

  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  int value = 1;
  append<<<1, 1, 0, s>>>(list, value);
  value = 99;  // arguments were taken at the launch
  OK(cudaEventRecord(fork, s));
  OK(cudaStreamWaitEvent(side, fork, 0));
  add<<<4, 32, 0, side>>>(sum, 1);
  OK(cudaMemsetAsync(sum, 0, 0, side));
  OK(cudaEventRecord(join, side));
  append<<<1, 1, 0, s>>>(list, 2);
  OK(cudaLaunchHostFunc(s, count, nullptr));
  OK(cudaStreamWaitEvent(s, join, 0));
  append<<<1, 1, 0, s>>>(list, 3);
  cudaGraph_t graph;
  OK(cudaStreamEndCapture(s, &graph));
  CHECK(fetch(list).empty());  // nothing has run yet
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphDestroy(graph));

  OK(cudaGraphLaunch(exec, s));
  append<<<1, 1, 0, s>>>(list, 50);
  OK(cudaGraphLaunch(exec, s));
  OK(cudaStreamSynchronize(s));
  CHECK((fetch(list) == std::vector<int>{1, 2, 3, 50, 1, 2, 3}));
  int total = 0;
  OK(cudaMemcpy(&total, sum, 4, cudaMemcpyDeviceToHost));
  CHECK(total == 2 * 128 && calls == 2);
  OK(cudaGraphExecDestroy(exec));
  CHECK(cudaGetLastError() == cudaSuccess);
  return failures;
}

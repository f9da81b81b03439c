// Order: within a stream, across streams by events, through the default streams, of copies and host functions.
#include "check.h"

#include <cuda_runtime.h>

#include <cstring>
#include <vector>

__device__ int mine;        // of the rank's own image
__constant__ int offset[2];

__global__ void append(int* list, int value) { list[atomicAdd(list, 1) + 1] = value; }
__global__ void twice(int* p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = 2 * p[i] + offset[1];
}
__global__ void read_mine(int* out) { *out = mine + offset[0]; }

struct Lists {
  int *device, host[64];
  Lists() {
    OK(cudaMalloc(&device, sizeof host));
    OK(cudaMemset(device, 0, sizeof host));
    OK(cudaDeviceSynchronize());
  }
  void fetch() { OK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost)); }
  bool is(std::vector<int> expected) {
    fetch();
    if (host[0] != (int)expected.size()) return false;
    for (size_t i = 0; i < expected.size(); i++)
      if (host[i + 1] != expected[i]) return false;
    return true;
  }
};

static void within_a_stream() {
  cudaStream_t s;
  OK(cudaStreamCreate(&s));
  Lists list;
  for (int i = 0; i < 5; i++) append<<<1, 1, 0, s>>>(list.device, i);
  OK(cudaStreamSynchronize(s));
  CHECK(list.is({0, 1, 2, 3, 4}));
  OK(cudaStreamDestroy(s));
}

static void across_streams() {
  cudaStream_t a, b;
  cudaEvent_t e, f;
  OK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  OK(cudaStreamCreateWithPriority(&b, cudaStreamNonBlocking, -2));
  OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  OK(cudaEventCreate(&f));
  Lists list;
  append<<<1, 1, 0, a>>>(list.device, 1);
  OK(cudaEventRecord(e, a));
  OK(cudaStreamWaitEvent(b, e, 0));
  append<<<1, 1, 0, b>>>(list.device, 2);
  OK(cudaEventRecord(f, b));
  OK(cudaStreamWaitEvent(a, f, 0));
  append<<<1, 1, 0, a>>>(list.device, 3);
  OK(cudaEventRecord(e, a));  // waits see the record at the time of their call
  while (cudaEventQuery(e) == cudaErrorNotReady) {}
  CHECK(list.is({1, 2, 3}));
  CHECK(cudaStreamQuery(a) == cudaSuccess);
  OK(cudaEventDestroy(e));
  OK(cudaEventDestroy(f));
}

static void default_streams() {
  cudaStream_t blocking;
  OK(cudaStreamCreate(&blocking));
  Lists list;
  append<<<1, 1, 0, blocking>>>(list.device, 1);
  append<<<1, 1, 0, cudaStreamLegacy>>>(list.device, 2);
  append<<<1, 1, 0, blocking>>>(list.device, 3);
  append<<<1, 1, 0, cudaStreamLegacy>>>(list.device, 4);
  append<<<1, 1>>>(list.device, 5);  // per thread: this program is compiled so; blocking, too
  append<<<1, 1, 0, cudaStreamLegacy>>>(list.device, 6);
  append<<<1, 1, 0, cudaStreamPerThread>>>(list.device, 7);
  OK(cudaDeviceSynchronize());
  CHECK(list.is({1, 2, 3, 4, 5, 6, 7}));
}

static void copies() {
  cudaStream_t s;
  OK(cudaStreamCreate(&s));
  int *device, *pinned, host[256], back[256];
  OK(cudaMalloc(&device, sizeof host));
  OK(cudaMallocHost(&pinned, sizeof host));
  for (int i = 0; i < 256; i++) host[i] = pinned[i] = i;
  OK(cudaMemcpyAsync(device, host, sizeof host, cudaMemcpyHostToDevice, s));
  std::memset(host, 0x55, sizeof host);  // pageable memory was read at the call
  twice<<<4, 64, 0, s>>>(device, 256);
  OK(cudaMemcpyAsync(back, device, sizeof back, cudaMemcpyDeviceToHost, s));  // pageable: written at return
  for (int i = 0; i < 256; i++) CHECK(back[i] == 2 * i + 7);
  OK(cudaMemcpyAsync(device, pinned, sizeof host, cudaMemcpyDefault, s));
  OK(cudaMemsetAsync(device + 4, 0, 8, s));
  OK(cudaMemset2DAsync(device + 8, 32, 0xff, 4, 3, s));
  OK(cudaMemcpy2DAsync(pinned + 100, 8, device + 8, 32, 4, 3, cudaMemcpyDeviceToHost, s));
  OK(cudaStreamSynchronize(s));
  CHECK(pinned[100] == -1 && pinned[102] == -1 && pinned[104] == -1 && pinned[101] == 101);
  OK(cudaMemcpy(back, device, sizeof back, cudaMemcpyDeviceToHost));
  CHECK(back[3] == 3 && back[4] == 0 && back[5] == 0 && back[6] == 6 && back[16] == -1 && back[17] == 17);
  void* pooled;
  OK(cudaMallocAsync(&pooled, 1 << 20, s));
  OK(cudaMemsetAsync(pooled, 1, 1 << 20, s));
  OK(cudaFreeAsync(pooled, s));
  OK(cudaStreamSynchronize(s));
  OK(cudaFree(device));
  OK(cudaFreeHost(pinned));
}

static void symbols(int rank) {
  int two[2] = {100, 7}, *out, answer = 0;
  OK(cudaMalloc(&out, 4));
  OK(cudaMemcpyToSymbol(mine, &rank, sizeof rank));
  OK(cudaMemcpyToSymbol(offset, two, sizeof two));
  read_mine<<<1, 1>>>(out);
  OK(cudaMemcpy(&answer, out, 4, cudaMemcpyDeviceToHost));
  CHECK(answer == 100 + rank);
  int* address;
  OK(cudaGetSymbolAddress((void**)&address, mine));
  OK(cudaMemset(address, 0, 4));
  OK(cudaMemcpyFromSymbol(&answer, mine, 4));
  CHECK(answer == 0);
}

static std::vector<int> seen;
static void note(void* value) { seen.push_back((int)(size_t)value); }

static void host_functions() {
  cudaStream_t s;
  OK(cudaStreamCreate(&s));
  Lists list;
  seen.clear();
  OK(cudaLaunchHostFunc(s, note, (void*)1));
  append<<<1, 1, 0, s>>>(list.device, 1);
  OK(cudaStreamAddCallback(s, [](cudaStream_t, cudaError_t status, void* data) {
    note((void*)((size_t)data + status));
  }, (void*)2, 0));
  OK(cudaLaunchHostFunc(s, note, (void*)3));
  OK(cudaStreamSynchronize(s));
  CHECK((seen == std::vector<int>{1, 2, 3}));
}

extern "C" int run(int rank, int ranks) {
  failures = 0;
  int count = 0, device = -1;
  OK(cudaGetDeviceCount(&count));
  OK(cudaGetDevice(&device));
  CHECK(count == ranks && device == rank);
  OK(cudaSetDevice(device));
  symbols(rank);
  within_a_stream();
  across_streams();
  default_streams();
  copies();
  host_functions();
  CHECK(cudaGetLastError() == cudaSuccess);
  return failures;
}

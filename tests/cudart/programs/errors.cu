// What the runtime answers to wrong and unusual calls. Prints one line a case; errors.expected was printed on an H200.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

__device__ int counter;
__constant__ float table[4];
__global__ void plain(int* p) { if (p) p[0] = 1; }
__global__ void __launch_bounds__(128) bounded(int* p) { if (p) p[0] = 2; }
__global__ void with_static(int* p) {
  __shared__ int s[4096];
  s[threadIdx.x] = 1;
  __syncthreads();
  if (p) p[0] = s[0];
}
__global__ void slow(int* p) {
  for (int i = 0; i < 4; i++) __nanosleep(1000000);
  if (p) p[0] = 3;
}
__global__ void dynamic(int* p) {
  extern __shared__ int d[];
  d[threadIdx.x] = 1;
  __syncthreads();
  if (p) p[0] = d[0];
}

static void say(const char* what, long value) { std::printf("%s = %ld\n", what, value); }
static void last(const char* what) { say(what, cudaGetLastError()); }

static void launches(cudaStream_t s) {
  plain<<<1, 1025, 0, s>>>(nullptr), last("block of 1025");
  plain<<<1, dim3(1, 1, 65), 0, s>>>(nullptr), last("block z 65");
  plain<<<0, 32, 0, s>>>(nullptr), last("grid 0");
  plain<<<1, 0, 0, s>>>(nullptr), last("block 0");
  plain<<<dim3(1, 65536), 32, 0, s>>>(nullptr), last("grid y 65536");
  dynamic<<<1, 32, 49152, s>>>(nullptr), last("dynamic 48 KiB");
  dynamic<<<1, 32, 49153, s>>>(nullptr), last("dynamic 48 KiB + 1");
  with_static<<<1, 32, 40000, s>>>(nullptr), last("static 16 KiB + dynamic 40000");
  bounded<<<1, 256, 0, s>>>(nullptr), last("256 threads with launch bounds 128");
  say("attribute 227 KiB", cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448));
  say("attribute 227 KiB + 1", cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 232449));
  last("and the last error"), last("once more");
  dynamic<<<1, 32, 232448, s>>>(nullptr), last("dynamic 227 KiB after the attribute");
  int* none = nullptr;
  void* arguments[] = {&none};
  say("cooperative, too large", cudaLaunchCooperativeKernel(plain, dim3(1 << 20), dim3(1024), arguments, 0, s));
  say("cooperative", cudaLaunchCooperativeKernel(plain, dim3(132), dim3(1024), arguments, 0, s));
  say("direct, block of 1025", cudaLaunchKernel((const void*)plain, dim3(1), dim3(1025), arguments, 0, s));
  say("direct, grid 0", cudaLaunchKernel((const void*)plain, dim3(0), dim3(32), arguments, 0, s));
  say("direct, 256 with bounds 128", cudaLaunchKernel((const void*)bounded, dim3(1), dim3(256), arguments, 0, s));
  say("direct, dynamic 64 KiB", cudaLaunchKernel((const void*)with_static, dim3(1), dim3(32), arguments, 65536, s));
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1), config.blockDim = dim3(2048), config.stream = s;
  say("ex, block of 2048", cudaLaunchKernelExC(&config, (const void*)plain, arguments));
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeCooperative, attribute.val.cooperative = 1;
  config.attrs = &attribute, config.numAttrs = 1, config.gridDim = dim3(1 << 20), config.blockDim = dim3(1024);
  say("ex, cooperative, too large", cudaLaunchKernelExC(&config, (const void*)plain, arguments));
  config.gridDim = dim3(8);
  say("ex, cooperative", cudaLaunchKernelExC(&config, (const void*)plain, arguments));
  say("cooperative, grid 0", cudaLaunchCooperativeKernel(plain, dim3(0), dim3(32), arguments, 0, s));
  last("clear");
  say("launch of no kernel", cudaLaunchKernel((const void*)say, dim3(1), dim3(1), arguments, 0, s));
  last("clear");
}

static void attributes() {
  cudaFuncAttributes a;
  cudaFuncGetAttributes(&a, with_static);
  say("static shared", (long)a.sharedSizeBytes), say("its max dynamic", a.maxDynamicSharedSizeBytes);
  cudaFuncGetAttributes(&a, bounded);
  say("max threads with bounds", a.maxThreadsPerBlock);
  cudaFuncGetAttributes(&a, plain);
  say("max threads", a.maxThreadsPerBlock);
  for (int threads : {32, 96, 256, 1000, 1024})
    for (size_t shared : {0, 1000, 20000, 48000, 120000, 232448}) {
      int n = -1;
      cudaError_t e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, dynamic, threads, shared);
      std::printf("occupancy %d threads %zu bytes = %d (%d)\n", threads, shared, n, (int)e);
    }
  size_t bytes = 0;
  for (int blocks : {1, 2, 3, 7}) {
    say("available", cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, dynamic, blocks, 128));
    say("bytes", (long)bytes);
  }
  int least, greatest;
  cudaDeviceGetStreamPriorityRange(&least, &greatest);
  say("least", least), say("greatest", greatest);
  cudaStream_t s;
  int priority;
  say("priority -99", cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, -99));
  cudaStreamGetPriority(s, &priority), say("clamped", priority);
  cudaStreamDestroy(s);
}

static void memory(cudaStream_t s) {
  char *d = nullptr, *pinned = nullptr, host[256];
  void* zero = &d;
  say("malloc 0", cudaMalloc(&zero, 0)), say("gives null", zero == nullptr);
  say("managed 0", cudaMallocManaged(&zero, 0));
  cudaMalloc(&d, 1024), cudaMallocHost(&pinned, 1024);
  say("direction 7", cudaMemcpy(d, host, 8, (cudaMemcpyKind)7));
  say("h2d into host", cudaMemcpy(host, host + 128, 8, cudaMemcpyHostToDevice));
  say("d2h from host", cudaMemcpy(host, host + 128, 8, cudaMemcpyDeviceToHost));
  say("default host to host", cudaMemcpy(host, host + 128, 8, cudaMemcpyDefault));
  say("d2d with pinned", cudaMemcpy(d, pinned, 8, cudaMemcpyDeviceToDevice));
  say("0 bytes from null", cudaMemcpy(d, nullptr, 0, cudaMemcpyHostToDevice));
  say("8 bytes from null", cudaMemcpy(d, nullptr, 8, cudaMemcpyHostToDevice));
  say("memset of host memory", cudaMemset(host, 0, 8));
  say("2D pitch below width", cudaMemcpy2D(d, 4, host, 16, 8, 2, cudaMemcpyHostToDevice));
  int five = 5;
  say("to symbol", cudaMemcpyToSymbol(counter, &five, 4));
  say("to symbol, too far", cudaMemcpyToSymbol(counter, &five, 4, 1));
  say("to no symbol", cudaMemcpyToSymbol(host, &five, 4));
  size_t size = 0;
  say("size of symbol", cudaGetSymbolSize(&size, table)), say("bytes", (long)size);
  cudaPointerAttributes a;
  say("attributes of malloc", cudaPointerGetAttributes(&a, host)), say("type", a.type), say("device", a.device);
  say("attributes of pinned", cudaPointerGetAttributes(&a, pinned)), say("type", a.type), say("device", a.device);
  say("attributes of device", cudaPointerGetAttributes(&a, d + 8)), say("type", a.type);
  say("same address", a.devicePointer == d + 8), say("no host address", a.hostPointer == nullptr);
  say("free of the middle", cudaFree(d + 8));
  say("free of host memory", cudaFree(host));
  say("free null", cudaFree(nullptr));
  say("free pinned as device", cudaFree(pinned));
  say("free", cudaFree(d));
  say("free twice", cudaFree(d));
  say("free pinned", cudaFreeHost(pinned));
  void* mine = std::aligned_alloc(4096, 8192);
  say("register", cudaHostRegister(mine, 8192, 0)), say("register twice", cudaHostRegister(mine, 4096, 0));
  say("unregister", cudaHostUnregister(mine)), say("unregister twice", cudaHostUnregister(mine));
  std::free(mine);
  say("async on no stream", cudaMemsetAsync(nullptr, 0, 0, s));
  say("enable self", cudaDeviceEnablePeerAccess(0, 0));
  int can = -1;
  say("can access self", cudaDeviceCanAccessPeer(&can, 0, 0)), say("answer", can);
  say("device -1", cudaSetDevice(-1));
  last("clear");
}

static void events(cudaStream_t s) {
  cudaEvent_t a, b, quiet;
  cudaEventCreate(&a), cudaEventCreate(&b), cudaEventCreateWithFlags(&quiet, cudaEventDisableTiming);
  float ms = -1;
  say("query, never recorded", cudaEventQuery(a));
  say("wait, never recorded", cudaStreamWaitEvent(s, a));
  say("synchronise, never recorded", cudaEventSynchronize(a));
  say("elapsed, never recorded", cudaEventElapsedTime(&ms, a, b));
  cudaEventRecord(a, s), plain<<<1, 32, 0, s>>>(nullptr), cudaEventRecord(b, s), cudaEventRecord(quiet, s);
  cudaEventSynchronize(b);
  say("elapsed", cudaEventElapsedTime(&ms, a, b)), say("is positive", ms > 0);
  cudaStreamSynchronize(s);
  say("elapsed without timing", cudaEventElapsedTime(&ms, a, quiet));
  slow<<<1, 1, 0, s>>>(nullptr), cudaEventRecord(a, s);
  last("clear");
  say("query of busy stream", cudaStreamQuery(s)), last("it is remembered");
  say("query of pending event", cudaEventQuery(a)), last("it is remembered");
  say("elapsed, pending", cudaEventElapsedTime(&ms, b, a)), last("it is remembered");
  cudaStreamSynchronize(s);
  say("query when done", cudaEventQuery(a));
  say("wrong flags", cudaEventCreateWithFlags(&quiet, 64));
  last("clear");
  say("destroy the null stream", cudaStreamDestroy(nullptr));
  last("clear");
}

static int status_word[2];
static void nothing(void*) {}

static void captures(cudaStream_t s) {
  cudaGraph_t graph = nullptr;
  cudaEvent_t outside, fork;
  cudaEventCreate(&outside), cudaEventCreate(&fork);
  cudaStream_t other;
  cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  cudaEventRecord(outside, other);
  say("end without begin", cudaStreamEndCapture(s, &graph));
  say("begin on legacy", cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeGlobal));
  say("begin", cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  say("begin again", cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  say("synchronise", cudaStreamSynchronize(s));
  say("launch afterwards", (plain<<<1, 1, 0, s>>>(nullptr), cudaGetLastError()));
  say("end", cudaStreamEndCapture(s, &graph)), say("no graph", graph == nullptr);
  say("begin", cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  say("query", cudaStreamQuery(s)), say("end", cudaStreamEndCapture(s, &graph));
  say("begin", cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  say("wait for outside", cudaStreamWaitEvent(s, outside)), say("end", cudaStreamEndCapture(s, &graph));
  say("begin", cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  void* d = nullptr;
  say("malloc", cudaMalloc(&d, 64)), say("end", cudaStreamEndCapture(s, &graph));
  say("begin relaxed", cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  say("malloc", cudaMalloc(&d, 64)), say("end", cudaStreamEndCapture(s, &graph)), cudaGraphDestroy(graph);
  say("begin", cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  say("record", cudaEventRecord(fork, s)), say("fork", cudaStreamWaitEvent(other, fork));
  plain<<<1, 1, 0, other>>>(nullptr), last("launch in the fork");
  say("query captured event", cudaEventQuery(fork));
  say("end of the other", cudaStreamEndCapture(other, &graph));
  say("end", cudaStreamEndCapture(s, &graph));
  cudaStream_t blocking;
  cudaStreamCreate(&blocking);
  last("clear");
  say("begin on a blocking stream", cudaStreamBeginCapture(blocking, cudaStreamCaptureModeGlobal));
  say("memset on legacy", cudaMemsetAsync(nullptr, 0, 0, cudaStreamLegacy));
  plain<<<1, 1, 0, cudaStreamLegacy>>>(nullptr), last("launch on legacy");
  say("end", cudaStreamEndCapture(blocking, &graph));
  say("begin", cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  plain<<<1, 1, 0, s>>>(nullptr);
  say("memcpy of pageable memory", cudaMemcpyAsync(status_word, status_word + 1, 4, cudaMemcpyDefault, s));
  say("host function", cudaLaunchHostFunc(s, nothing, nullptr));
  say("record", cudaEventRecord(fork, s)), say("fork", cudaStreamWaitEvent(other, fork));
  plain<<<1, 1, 0, other>>>(nullptr);
  say("join record", cudaEventRecord(outside, other)), say("join", cudaStreamWaitEvent(s, outside));
  say("end", cudaStreamEndCapture(s, &graph));
  size_t nodes = 0;
  say("nodes", cudaGraphGetNodes(graph, nullptr, &nodes)), say("are", (long)nodes);
  cudaGraphExec_t exec;
  say("instantiate", cudaGraphInstantiate(&exec, graph, 0)), say("destroy", cudaGraphDestroy(graph));
  say("launch", cudaGraphLaunch(exec, s)), say("launch", cudaGraphLaunch(exec, s));
  say("synchronise", cudaStreamSynchronize(s)), say("destroy", cudaGraphExecDestroy(exec));
  say("begin", cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  say("record", cudaEventRecord(fork, s)), say("fork", cudaStreamWaitEvent(other, fork));
  plain<<<1, 1, 0, other>>>(nullptr);
  say("end, not joined", cudaStreamEndCapture(s, &graph)), last("clear");
  say("use of the event after", cudaStreamWaitEvent(other, fork));
  cudaStreamCaptureStatus status;
  say("status", cudaStreamIsCapturing(s, &status)), say("is", status);
  last("clear");
  cudaFree(d), cudaStreamDestroy(other), cudaEventDestroy(outside), cudaEventDestroy(fork);
}

extern "C" int run(int rank, int) {
  if (rank) return 0;
  cudaStream_t s;
  cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  attributes();
  launches(s);
  memory(s);
  events(s);
  captures(s);
  return cudaDeviceSynchronize();
}

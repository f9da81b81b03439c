// Measures the machine-file constants that one GPU can tell: pipe rates, L2 and HBM, launch and host costs, flags, and
// the GEMM of workloads/common. Prints "name value unit" lines.
//
//   nvcc -O3 -std=c++20 -arch=sm_90 -I workloads/common bench/gpu/constants.cu -o constants && ./constants
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "gemm.cuh"

static void check(cudaError_t error, int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(error));
  std::exit(1);
}
#define CHECK(call) check((call), __LINE__)

static double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
static void show(const char *name, double value, const char *unit) { std::printf("%-28s %12.3f %s\n", name, value, unit); }

// GPU time of `work`, microseconds: the median of nine after two warm-ups.
static double gpu_us(const std::function<void()> &work) {
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < 11; i++) {
    CHECK(cudaEventRecord(begin));
    work();
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    if (i >= 2) times.push_back(ms * 1e3f);
  }
  CHECK(cudaGetLastError());
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

__global__ void nothing() {}

// ------------------------------------------------------------------------------------------------------------- pipes
constexpr int kRounds = 4096;

__global__ void fma_loop(float *out, float x) {
  float a[8];
  for (int i = 0; i < 8; i++) a[i] = x + i;
  for (int r = 0; r < kRounds; r++)
#pragma unroll
    for (int i = 0; i < 8; i++) a[i] = a[i] * x + x;
  float sum = 0;
  for (int i = 0; i < 8; i++) sum += a[i];
  if (sum == 12345.f) *out = sum;
}
__global__ void int_loop(int *out, int x) {
  int a[8];
  for (int i = 0; i < 8; i++) a[i] = x + i;
  for (int r = 0; r < kRounds; r++)
#pragma unroll
    for (int i = 0; i < 8; i++) a[i] = a[i] * x + r;
  int sum = 0;
  for (int i = 0; i < 8; i++) sum += a[i];
  if (sum == 12345) *out = sum;
}
__global__ void special_loop(float *out, float x) {
  float a[8];
  for (int i = 0; i < 8; i++) a[i] = x + i * 0.01f;
  for (int r = 0; r < kRounds / 4; r++)
#pragma unroll
    for (int i = 0; i < 8; i++) asm volatile("ex2.approx.f32 %0, %0;" : "+f"(a[i]));
  float sum = 0;
  for (int i = 0; i < 8; i++) sum += a[i];
  if (sum == 12345.f) *out = sum;
}
__global__ void mma_bf16_loop(float *out, unsigned x) {
  float c[8][4] = {};
  unsigned a[4] = {x, x, x, x};
  for (int r = 0; r < kRounds; r++)
#pragma unroll
    for (int i = 0; i < 8; i++) gemm::ptx::mma(c[i], a, x, x);
  float sum = 0;
  for (int i = 0; i < 8; i++) sum += c[i][0] + c[i][1] + c[i][2] + c[i][3];
  if (sum == 12345.f) *out = sum;
}
__global__ void mma_tf32_loop(float *out, unsigned x) {
  float c[8][4] = {};
  for (int r = 0; r < kRounds; r++)
#pragma unroll
    for (int i = 0; i < 8; i++)
      asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};"
                   : "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3]) : "r"(x));
  float sum = 0;
  for (int i = 0; i < 8; i++) sum += c[i][0];
  if (sum == 12345.f) *out = sum;
}

static void pipes(int sms) {
  float *out;
  CHECK(cudaMalloc(&out, 4096));
  const int ctas = sms * 4, threads = 512;
  const double each = double(ctas) * threads;
  auto rate = [&](const char *name, double per_thread, const std::function<void()> &work) {
    show(name, each * per_thread / gpu_us(work) / 1e3 / sms, "G/s per SM");
  };
  rate("fp32 instructions", 8.0 * kRounds, [&] { fma_loop<<<ctas, threads>>>(out, 1.0001f); });
  rate("int instructions", 8.0 * kRounds, [&] { int_loop<<<ctas, threads>>>((int *)out, 3); });
  rate("special instructions", 8.0 * kRounds / 4, [&] { special_loop<<<ctas, threads>>>(out, 0.1f); });
  rate("mma bf16 flops", 8.0 * kRounds * 4096 / 32, [&] { mma_bf16_loop<<<ctas, threads>>>(out, 0x3c003c00u); });
  rate("mma tf32 flops", 8.0 * kRounds * 2048 / 32, [&] { mma_tf32_loop<<<ctas, threads>>>(out, 0x3c000000u); });
  CHECK(cudaFree(out));
}

// ------------------------------------------------------------------------------------------------------------ memory
// Every CTA reads `per_cta` 16-byte units, starting at its own place and wrapping around `units`.
__global__ void read_loop(const uint4 *data, size_t units, size_t per_cta, unsigned *out) {
  unsigned sum = 0;
  size_t start = blockIdx.x * per_cta;
#pragma unroll 8
  for (size_t i = threadIdx.x; i < per_cta; i += blockDim.x) {
    uint4 v = __ldcg(data + (start + i) % units);
    sum += v.x ^ v.y ^ v.z ^ v.w;
  }
  if (sum == 12345) *out = sum;
}
__global__ void red_loop(unsigned *words, int rounds) {
  unsigned *mine = words + (blockIdx.x * blockDim.x + threadIdx.x);
  for (int i = 0; i < rounds; i++) asm volatile("red.global.add.u32 [%0], 1;" ::"l"(mine) : "memory");
}

static void memory(int sms) {
  const size_t large = size_t(4) << 30;
  uint4 *data;
  CHECK(cudaMalloc(&data, large));
  CHECK(cudaMemset(data, 1, large));
  auto read = [&](size_t bytes, size_t traffic, int ctas) {
    double us = gpu_us([&] { read_loop<<<ctas, 1024>>>(data, bytes / 16, traffic / 16 / ctas, (unsigned *)data); });
    return traffic / us / 1e3;
  };
  show("HBM read", read(large, large, sms * 2 * 8), "GB/s");
  show("L2 read, 20 MB", read(20 << 20, large, sms * 2), "GB/s");
  show("L2 read, one SM", read(1 << 20, 256 << 20, 1), "GB/s");
  double us = gpu_us([&] { CHECK(cudaMemcpyAsync(data, data + large / 32, large / 2, cudaMemcpyDeviceToDevice)); });
  show("copy, both ways together", large / us / 1e3, "GB/s");
  us = gpu_us([&] { red_loop<<<sms * 2, 1024>>>((unsigned *)data, 64); });
  show("atomics", sms * 2.0 * 1024 * 64 / us / 1e3 / sms, "G/s per SM");
  CHECK(cudaFree(data));
}

// -------------------------------------------------------------------------------------------------------------- host
static double host_us(int count, const std::function<void(int)> &call) {
  std::vector<double> times;
  for (int round = 0; round < 7; round++) {
    CHECK(cudaDeviceSynchronize());
    double start = now_us();
    for (int i = 0; i < count; i++) call(i);
    times.push_back((now_us() - start) / count);
    CHECK(cudaDeviceSynchronize());
  }
  std::sort(times.begin(), times.end());
  return times[3];
}

static void host() {
  cudaStream_t one, two;
  CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
  cudaEvent_t event;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  show("launch call", host_us(500, [&](int) { nothing<<<1, 32, 0, one>>>(); }), "us");
  show("event record call", host_us(500, [&](int) { CHECK(cudaEventRecord(event, one)); }), "us");
  show("stream wait call", host_us(500, [&](int) { CHECK(cudaStreamWaitEvent(two, event, 0)); }), "us");
  show("launch and synchronise", host_us(200, [&](int) {
         nothing<<<1, 32, 0, one>>>();
         CHECK(cudaStreamSynchronize(one));
       }), "us");
  show("synchronise, idle", host_us(200, [&](int) { CHECK(cudaStreamSynchronize(one)); }), "us");
  double chain = gpu_us([] {
    for (int i = 0; i < 200; i++) nothing<<<1, 32>>>();
  });
  show("empty kernels in a stream", chain / 200, "us each");
  double pair = host_us(200, [&](int) {
    nothing<<<1, 32, 0, one>>>();
    CHECK(cudaEventRecord(event, one));
    CHECK(cudaStreamWaitEvent(two, event, 0));
    nothing<<<1, 32, 0, two>>>();
    CHECK(cudaStreamSynchronize(two));
  });
  show("kernel, event, kernel, sync", pair, "us");
}

// ------------------------------------------------------------------------------------------------------------- flags
__global__ void ping_pong(unsigned *flags, int rounds) {
  unsigned *mine = flags + blockIdx.x * 64, *other = flags + (1 - blockIdx.x) * 64;
  for (int i = 1; i <= rounds; i++) {
    if (blockIdx.x == 0) asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(other), "r"(i) : "memory");
    unsigned seen;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(mine) : "memory");
    while (seen < (unsigned)i);
    if (blockIdx.x == 1) asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(other), "r"(i) : "memory");
  }
}
__global__ void fences(unsigned *word, int rounds, long long *clocks) {
  long long start = clock64();
  for (int i = 0; i < rounds; i++) {
    *(volatile unsigned *)word = i;
    __threadfence_system();
  }
  *clocks = clock64() - start;
}

static void flags() {
  unsigned *words;
  long long *clocks, taken;
  CHECK(cudaMalloc(&words, 4096));
  CHECK(cudaMalloc(&clocks, 8));
  const int rounds = 2000;
  double us = gpu_us([&] {
    CHECK(cudaMemsetAsync(words, 0, 4096));
    ping_pong<<<2, 1>>>(words, rounds);
  });
  show("flag between CTAs, one way", us / rounds / 2, "us");
  fences<<<1, 1>>>(words, 200, clocks);
  CHECK(cudaMemcpy(&taken, clocks, 8, cudaMemcpyDeviceToHost));
  show("store and system fence", taken / 200.0, "clocks");
}

// -------------------------------------------------------------------------------------------------------------- GEMM
__global__ void __launch_bounds__(gemm::kThreads, 2) gemm_kernel(const gemm::bf16 *a, const gemm::bf16 *b, gemm::bf16 *c, int m, int n,
                                                                 int k) {
  extern __shared__ __align__(128) unsigned char shared[];
  gemm::gemm_tile(a, b, c, m, n, k, blockIdx.y * gemm::kTileM, blockIdx.x * gemm::kTileN, (gemm::bf16 *)shared);
}
__global__ void fill(gemm::bf16 *data, size_t count) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x)
    data[i] = __float2bfloat16(float(int(i * 2654435761u >> 20) % 2001 - 1000) * 0.001f);
}

static void products() {
  CHECK(cudaFuncSetAttribute(gemm_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, gemm::kSharedBytes));
  const int shapes[][3] = {{1024, 4096, 4096}, {1536, 6144, 6144}, {2048, 8192, 8192}, {8192, 2048, 7168}};
  for (auto &[m, n, k] : shapes) {
    gemm::bf16 *a, *b, *c;
    CHECK(cudaMalloc(&a, size_t(m) * k * 2));
    CHECK(cudaMalloc(&b, size_t(n) * k * 2));
    CHECK(cudaMalloc(&c, size_t(m) * n * 2));
    fill<<<512, 256>>>(a, size_t(m) * k);
    fill<<<512, 256>>>(b, size_t(n) * k);
    dim3 grid(n / gemm::kTileN, (m + gemm::kTileM - 1) / gemm::kTileM);
    double us = gpu_us([&] { gemm_kernel<<<grid, gemm::kThreads, gemm::kSharedBytes>>>(a, b, c, m, n, k); });
    char name[64];
    std::snprintf(name, sizeof name, "gemm %d x %d x %d", m, n, k);
    show(name, us, "us");
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    CHECK(cudaFree(c));
  }
}

int main() {
  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0));
  int clock_khz = 0;
  CHECK(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, 0));
  std::printf("%s, %d SMs, %.0f MHz at most, L2 %d bytes\n", device.name, device.multiProcessorCount, clock_khz / 1e3, device.l2CacheSize);
  pipes(device.multiProcessorCount);
  memory(device.multiProcessorCount);
  host();
  flags();
  products();
  return 0;
}

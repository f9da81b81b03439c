// Kernels for the tests of the timing slice: value work with and without influence on control.
#include <cuda_bf16.h>
#include <stdint.h>

constexpr int kTileM = 64, kTileN = 64, kTileK = 32;

__device__ inline uint32_t shared_offset(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ inline void copy16(void *to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_offset(to)), "l"(from));
}

// c (m x n, float) = a (m x k) b' (n x k); 4 warps, double buffer, barriers in the loop, a condition in the loop.
__device__ inline void gemm_body(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int n, int k) {
  __shared__ __align__(16) __nv_bfloat16 as[2][kTileM][kTileK], bs[2][kTileN][kTileK];
  const int t = threadIdx.x, warp = t / 32, lane = t % 32, row0 = blockIdx.y * kTileM, col0 = blockIdx.x * kTileN;
  float acc[8][4] = {};
  auto load = [&](int stage, int k0) {
    for (int i = t; i < kTileM * 4; i += 128) {
      copy16(&as[stage][i / 4][i % 4 * 8], a + (size_t)(row0 + i / 4) * k + k0 + i % 4 * 8);
      copy16(&bs[stage][i / 4][i % 4 * 8], b + (size_t)(col0 + i / 4) * k + k0 + i % 4 * 8);
    }
    asm volatile("cp.async.commit_group;");
  };
  load(0, 0);
  for (int k0 = 0, stage = 0; k0 < k; k0 += kTileK, stage ^= 1) {
    if (k0 + kTileK < k) load(stage ^ 1, k0 + kTileK);
    else asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 1;");
    __syncthreads();
    for (int kk = 0; kk < kTileK; kk += 16) {
      uint32_t x[4];
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                   : "r"(shared_offset(&as[stage][warp * 16 + lane % 16][kk + lane / 16 * 8])));
      for (int j = 0; j < 8; j++) {
        uint32_t y[2];
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                     : "=r"(y[0]), "=r"(y[1])
                     : "r"(shared_offset(&bs[stage][j * 8 + lane % 8][kk + lane / 8 % 2 * 8])));
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(acc[j][0]), "+f"(acc[j][1]), "+f"(acc[j][2]), "+f"(acc[j][3])
                     : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
      }
    }
    __syncthreads();
  }
  for (int j = 0; j < 8; j++)
    for (int i = 0; i < 4; i++)
      c[(size_t)(row0 + warp * 16 + lane / 4 + i / 2 * 8) * n + col0 + j * 8 + lane % 4 * 2 + i % 2] = acc[j][i];
}

extern "C" __global__ void gemm(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int n, int k) {
  gemm_body(a, b, c, n, k);
}

// The product is also stored to a peer whose address lies in memory, and a flag follows.
struct Peer { float *remote; unsigned *flag; };
extern "C" __global__ void gemm_and_send(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int n, int k, const Peer *peer) {
  gemm_body(a, b, c, n, k);
  __syncthreads();
  float *remote = peer->remote;
  for (int i = threadIdx.x; i < kTileM * kTileN; i += blockDim.x) {
    const size_t at = (size_t)(blockIdx.y * kTileM + i / kTileN) * n + blockIdx.x * kTileN + i % kTileN;
    remote[at] = c[at];
  }
  __syncthreads();
  if (threadIdx.x == 0) asm volatile("red.release.sys.global.add.u32 [%0], 1;" ::"l"(peer->flag) : "memory");
}

extern "C" __global__ void branch_on_data(const float *x, float *y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    if (x[i] > 0.5f) y[i] = __expf(x[i]);
    else y[i] = 0;
}

// Decided by what the tensor cores computed.
extern "C" __global__ void branch_on_product(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int n, int k, int *big) {
  gemm_body(a, b, c, n, k);
  __shared__ float sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, c[threadIdx.x]);
  __syncthreads();
  if (sum > 100.0f) big[threadIdx.x] = 1;
}

// Tiles are handed out by a counter and broadcast through shared memory: control, but not by data.
extern "C" __global__ void scheduler(unsigned *counter, int tiles, float *y) {
  __shared__ unsigned mine;
  for (;;) {
    if (threadIdx.x == 0) mine = atomicAdd(counter, 1);
    __syncthreads();
    const unsigned tile = mine;
    __syncthreads();
    if (tile >= tiles) break;
    float v = y[tile * 32 + threadIdx.x % 32];
    for (int i = 0; i < 8; i++) v += __shfl_xor_sync(~0u, v, 1 << i % 5);
    y[tile * 32 + threadIdx.x % 32] = v;
  }
}

// An epoch on the device decides how often a loop runs.
extern "C" __global__ void epoch(unsigned *state, float *y) {
  const unsigned e = state[0];
  for (unsigned i = 0; i < e; i++) y[threadIdx.x] = y[threadIdx.x] * 0.5f + 1;
  __syncthreads();
  if (threadIdx.x == 0) state[0] = e + 1;
}

// One lane waits for the others: the __syncwarp orders them, and must stay.
extern "C" __global__ void warp_wait(const unsigned *flag, float *y) {
  if (threadIdx.x == 0) while (*(volatile const unsigned *)flag == 0) {}
  __syncwarp();
  y[threadIdx.x] = y[threadIdx.x + 32] * 2;
}

// Nothing here depends on the counter, but another kernel's control may: it is counted on. The copy is not.
extern "C" __global__ void count_up(unsigned long long *state, const float *x, float *y) {
  y[threadIdx.x] = x[threadIdx.x];
  if (threadIdx.x == 0) state[0] = state[0] + 1;
}

// The same counter through a pointer of unknown origin.
extern "C" __global__ void count_far(unsigned long long *const *state, const float *x, float *y) {
  y[threadIdx.x] = x[threadIdx.x];
  if (threadIdx.x == 0) state[0][0] = state[0][0] + 1;
}

__device__ __noinline__ float helper(float x, int n) { return n > 3 ? helper(x * 0.5f, n - 1) : x; }
extern "C" __global__ void with_call(float *y, int n) { y[threadIdx.x] = helper(y[threadIdx.x], n); }

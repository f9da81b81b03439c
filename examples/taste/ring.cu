// A ring shift without NCCL: every rank stores its data into its right neighbour's memory and raises a flag there.
// `make taste` runs the PTX of this file in the emulator; ring_stale.ptx is built with -DSTALE, ring_repaired.ptx without.
//
//   arrived[rank]  written by the left neighbour:  its data of step `epoch` is here
//   free[rank]     written by the right neighbour: its buffer may be overwritten for step `epoch`

static __device__ unsigned load_acquire(const unsigned *flag) {
  unsigned value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

// Release: everything this thread saw or did before is visible to whoever acquires the flag.
static __device__ void store_release(unsigned *flag, unsigned value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

static __device__ void wait_for(const unsigned *flag, unsigned least) {
  while (load_acquire(flag) < least) {
  }
}

extern "C" __global__ void ring_step(const float *send, float *right_recv, unsigned *my_arrived, unsigned *right_arrived,
                                     unsigned *my_free, unsigned *left_free, unsigned epoch, int n) {
  if (threadIdx.x == 0) {
    store_release(left_free, epoch);
    wait_for(my_free, epoch);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) right_recv[i] = send[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    store_release(right_arrived, epoch);
#ifdef STALE
    wait_for(my_arrived, 1);  // true for ever after the first step: the second step accepts the first step's flag
#else
    wait_for(my_arrived, epoch);
#endif
  }
}

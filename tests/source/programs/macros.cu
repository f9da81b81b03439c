// Calls behind check macros, made by token pasting, and launches made by a macro; none of these in text or comments.
#include <cuda_runtime.h>
#include <nccl.h>
#include <cstdio>
#include <cstdlib>

#define CHECK_NCCL(expression)                                     \
  do {                                                             \
    ncclResult_t status_ = (expression);                           \
    if (status_ != ncclSuccess) {                                  \
      fprintf(stderr, "%s\n", ncclGetErrorString(status_));        \
      exit(1);                                                     \
    }                                                              \
  } while (0)
#define CHECK_CUDA(expression)                        \
  do {                                                \
    cudaError_t status_ = (expression);               \
    if (status_ != cudaSuccess) exit(2);              \
  } while (0)
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define EXCHANGE(direction, buffer, count, peer) \
  CHECK_NCCL(PASTE(nccl, direction)(buffer, count, ncclFloat, peer, comm, stream))
#define RUN(kernel, blocks, threads, on, ...) kernel<<<blocks, threads, 0, on>>>(__VA_ARGS__)

__global__ void scale(float factor, const float *in, float *out) { out[threadIdx.x] = factor * in[threadIdx.x]; }

/* CHECK_NCCL(ncclReduce(a, b, 1, ncclFloat, ncclSum, 0, comm, stream)); scale<<<9, 9>>>(1.f, a, b); */
const char *kText = "ncclAllGather(x, y, 1, ncclFloat, comm, stream)";
const char *kRaw = R"(scale<<<1, 2>>>(ncclSend))";

void step(float *mine, float *theirs, int count, int peer, ncclComm_t comm, cudaStream_t stream) {
  CHECK_NCCL(ncclGroupStart());
  EXCHANGE(Send, mine, count, peer);
  EXCHANGE(Recv, theirs, count, peer);
  CHECK_NCCL(ncclGroupEnd());
  RUN(scale, 4, 256, stream, 2.f, theirs, mine);  // ncclBroadcast(in a comment)
#if 0
  CHECK_NCCL(ncclAllGather(mine, theirs, count, ncclFloat, comm, stream));
#endif
  CHECK_NCCL(
      PASTE(nccl, AllReduce)(
          mine,
          theirs,
          count,
          ncclFloat, ncclSum, comm, stream));
  CHECK_CUDA(cudaGetLastError());
}

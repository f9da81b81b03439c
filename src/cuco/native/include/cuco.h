/* The candidate's C ABI: what CUCo's trusted driver gives to a candidate, and what a candidate provides.
 *
 * A candidate is one .cu file that defines cuco_prepare, cuco_launch and cuco_finish. One host thread per rank calls all
 * three. The driver owns memory, inputs, poison, clock and check.
 *
 * The step contract that cuco_launch must keep:
 *  E1  On entry to a step nothing is known about peers: they may still be in the previous step, or not have begun.
 *  E2  When `stream` has passed a step on rank r, r's outputs are final and no peer reads or writes r's buffers for that
 *      step any more.
 *
 * Buffers come from ncclMemAlloc and are 4096-aligned; any of them, and memory from `alloc`, may be registered as a
 * window. A buffer of 0 bytes has a valid, non-null page. Captured CUDA graphs are allowed.
 */
#ifndef CUCO_H
#define CUCO_H

#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime.h>
#include <nccl.h>

#define CUCO_ABI 1

#ifdef __cplusplus
extern "C" {
#endif

typedef struct { const char *name; int dtype, ndim; int64_t shape[8]; size_t bytes; void *ptr; int role; } cuco_buffer;  /* dtype: an ncclDataType_t; role: 0 in, 1 out, 2 inout, 3 scratch */
typedef struct { const char *name; int is_float; int64_t i; double f; } cuco_param;

typedef struct cuco_ctx {
  uint32_t abi, struct_bytes;
  int rank, nranks, lsa_rank, lsa_size, device;
  ncclComm_t comm;
  int nbuffers;  const cuco_buffer *buffers;      /* this rank's shapes; may differ by rank; size 0 allowed */
  int nparams;   const cuco_param  *params;
  void *(*alloc)(const struct cuco_ctx *, size_t bytes, size_t align);   /* device memory fit for windows; the only way to get staging space */
  void  (*error)(const struct cuco_ctx *, const char *message);
} cuco_ctx;

/* Each returns 0, a cudaError_t or an ncclResult_t + 1000. */
int cuco_prepare(const cuco_ctx *, void **state);                       /* collective, once: windows, device communicator, streams. Timed apart */
int cuco_launch (const cuco_ctx *, void *state, cudaStream_t stream);   /* one step; asynchronous; every side stream is joined into stream */
int cuco_finish (const cuco_ctx *, void *state);                        /* collective, once */

#ifdef __cplusplus
}
#endif
#endif /* CUCO_H */

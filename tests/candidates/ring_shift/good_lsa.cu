// Ring shift over LSA, pulled: every CTA reads its slice of the left neighbour's `send` between two barriers.
//
// Barrier i belongs to CTA i of every rank. Entry: the neighbour's inputs of this step are in place. Exit: nobody
// reads my `send` any more when my kernel ends.
#include <cstring>

#include "cuco.h"
#include "nccl_device.h"

constexpr int kCtas = 4, kThreads = 256;

struct State {
  ncclWindow_t send_window;
  ncclDevComm devcomm;
};

static const cuco_buffer *find_buffer(const cuco_ctx *ctx, const char *name) {
  for (int i = 0; i < ctx->nbuffers; i++)
    if (strcmp(ctx->buffers[i].name, name) == 0) return &ctx->buffers[i];
  return nullptr;
}

__global__ void __launch_bounds__(kThreads) pull(ncclDevComm devcomm, ncclWindow_t send, float *recv, size_t n) {
  ncclLsaBarrierSession<ncclCoopCta> barrier{ncclCoopCta(), devcomm, ncclTeamTagLsa(), blockIdx.x};
  barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);   // acquire: the neighbour's stream has written its input
  int left = (devcomm.lsaRank + devcomm.lsaSize - 1) % devcomm.lsaSize;
  const float *source = (const float *)ncclGetLsaPointer(send, 0, left);
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
    recv[i] = source[i];
#ifndef OMIT_EXIT_BARRIER
  barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);   // the neighbour may overwrite its input from here on
#endif
}

extern "C" int cuco_prepare(const cuco_ctx *ctx, void **state) {
  if (ctx->lsa_size != ctx->nranks) {
    ctx->error(ctx, "this candidate needs all ranks in one LSA team");
    return 1000 + ncclInvalidUsage;
  }
  State *s = new State();
  *state = s;
  const cuco_buffer *send = find_buffer(ctx, "send");
  ncclResult_t rc = ncclCommWindowRegister(ctx->comm, send->ptr, send->bytes, &s->send_window, NCCL_WIN_COLL_SYMMETRIC);
  if (rc != ncclSuccess) return 1000 + rc;
  ncclDevCommRequirements reqs = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
  reqs.lsaBarrierCount = kCtas;
  rc = ncclDevCommCreate(ctx->comm, &reqs, &s->devcomm);
  return rc == ncclSuccess ? 0 : 1000 + rc;
}

extern "C" int cuco_launch(const cuco_ctx *ctx, void *state, cudaStream_t stream) {
  State *s = (State *)state;
  const cuco_buffer *recv = find_buffer(ctx, "recv");
  pull<<<kCtas, kThreads, 0, stream>>>(s->devcomm, s->send_window, (float *)recv->ptr, (size_t)recv->shape[0]);
  return cudaGetLastError();
}

extern "C" int cuco_finish(const cuco_ctx *ctx, void *state) {
  State *s = (State *)state;
  ncclDevCommDestroy(ctx->comm, &s->devcomm);
  ncclCommWindowDeregister(ctx->comm, s->send_window);
  delete s;
  return 0;
}

// Ring shift over GIN: one put of `send` into the right neighbour's `recv`, carried by a weak signal.
//
// Context 0. Signal 0: one increment per step by the left neighbour. World barrier 0 at entry: the neighbour's `recv`
// is free (its hash of the last step has been taken) before anybody writes it.
#include <cstring>

#include "cuco.h"
#include "nccl_device.h"

#ifndef EXPECTED_SIGNALS
#define EXPECTED_SIGNALS 1
#endif

constexpr int kThreads = 128;

struct State {
  ncclWindow_t send_window, recv_window;
  ncclDevComm devcomm;
};

static const cuco_buffer *find_buffer(const cuco_ctx *ctx, const char *name) {
  for (int i = 0; i < ctx->nbuffers; i++)
    if (strcmp(ctx->buffers[i].name, name) == 0) return &ctx->buffers[i];
  return nullptr;
}

__global__ void __launch_bounds__(kThreads)
shift(ncclDevComm devcomm, ncclWindow_t send, ncclWindow_t recv, size_t bytes) {
  ncclGin gin{devcomm, 0};
  ncclTeam world = ncclTeamWorld(devcomm);
  // Read before the barrier: nobody can raise it for this step before I have arrived there.
  uint64_t before = gin.readSignal(0);
  ncclGinBarrier(ncclCoopCta(), gin, ncclTeamTagWorld(), 0);
  int right = (world.rank + 1) % world.nRanks;
  if (threadIdx.x == 0) gin.put(world, right, recv, 0, send, 0, bytes, ncclGin_WeakSignalInc{0});
#ifndef OMIT_WAIT
  gin.waitSignal(ncclCoopCta(), 0, before + EXPECTED_SIGNALS);   // acquire: my `recv` is complete
#endif
  gin.flush(ncclCoopCta());                                      // my `send` may be overwritten after the kernel
}

extern "C" int cuco_prepare(const cuco_ctx *ctx, void **state) {
  State *s = new State();
  *state = s;
  const cuco_buffer *send = find_buffer(ctx, "send"), *recv = find_buffer(ctx, "recv");
  ncclResult_t rc = ncclCommWindowRegister(ctx->comm, send->ptr, send->bytes, &s->send_window, NCCL_WIN_DEFAULT);
  if (rc != ncclSuccess) return 1000 + rc;
  rc = ncclCommWindowRegister(ctx->comm, recv->ptr, recv->bytes, &s->recv_window, NCCL_WIN_DEFAULT);
  if (rc != ncclSuccess) return 1000 + rc;
  ncclDevCommRequirements reqs = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
  reqs.ginSignalCount = 1;
  reqs.worldGinBarrierCount = 1;
  reqs.ginConnectionType = NCCL_GIN_CONNECTION_FULL;
  rc = ncclDevCommCreate(ctx->comm, &reqs, &s->devcomm);
  return rc == ncclSuccess ? 0 : 1000 + rc;
}

extern "C" int cuco_launch(const cuco_ctx *ctx, void *state, cudaStream_t stream) {
  State *s = (State *)state;
  shift<<<1, kThreads, 0, stream>>>(s->devcomm, s->send_window, s->recv_window, find_buffer(ctx, "send")->bytes);
  return cudaGetLastError();
}

extern "C" int cuco_finish(const cuco_ctx *ctx, void *state) {
  State *s = (State *)state;
  ncclDevCommDestroy(ctx->comm, &s->devcomm);
  ncclCommWindowDeregister(ctx->comm, s->recv_window);
  ncclCommWindowDeregister(ctx->comm, s->send_window);
  delete s;
  return 0;
}

// Ring shift, host-driven: every rank sends `send` to its right neighbour and receives from its left into `recv`.
#include <cstring>

#include "cuco.h"

static const cuco_buffer *find_buffer(const cuco_ctx *ctx, const char *name) {
  for (int i = 0; i < ctx->nbuffers; i++)
    if (strcmp(ctx->buffers[i].name, name) == 0) return &ctx->buffers[i];
  return nullptr;
}

extern "C" int cuco_prepare(const cuco_ctx *, void **) { return 0; }

extern "C" int cuco_launch(const cuco_ctx *ctx, void *, cudaStream_t stream) {
  const cuco_buffer *send = find_buffer(ctx, "send"), *recv = find_buffer(ctx, "recv");
  size_t count = (size_t)send->shape[0];
  int right = (ctx->rank + 1) % ctx->nranks, left = (ctx->rank + ctx->nranks - 1) % ctx->nranks;
  // EVOLVE-BLOCK-START
  ncclResult_t rc = ncclGroupStart();
  if (rc == ncclSuccess) rc = ncclSend(send->ptr, count, ncclFloat, right, ctx->comm, stream);
  if (rc == ncclSuccess) rc = ncclRecv(recv->ptr, count, ncclFloat, left, ctx->comm, stream);
  ncclResult_t end = ncclGroupEnd();
  if (rc == ncclSuccess) rc = end;
  // EVOLVE-BLOCK-END
  return rc == ncclSuccess ? 0 : rc + 1000;
}

extern "C" int cuco_finish(const cuco_ctx *, void *) { return 0; }

// What the dishonest candidates share: finding buffers, an honest host-driven exchange, and calls that do nothing.
#pragma once
#include <cstring>

#include "cuco.h"

static const cuco_buffer *find_buffer(const cuco_ctx *ctx, const char *name) {
  for (int i = 0; i < ctx->nbuffers; i++)
    if (strcmp(ctx->buffers[i].name, name) == 0) return &ctx->buffers[i];
  return nullptr;
}

// Sends `send` to the right neighbour and receives the left one's into `to`.
static inline int exchange(const cuco_ctx *ctx, void *to, cudaStream_t stream) {
  const cuco_buffer *send = find_buffer(ctx, "send");
  size_t count = (size_t)send->shape[0];
  ncclGroupStart();
  ncclSend(send->ptr, count, ncclFloat, (ctx->rank + 1) % ctx->nranks, ctx->comm, stream);
  ncclRecv(to, count, ncclFloat, (ctx->rank + ctx->nranks - 1) % ctx->nranks, ctx->comm, stream);
  ncclResult_t rc = ncclGroupEnd();
  return rc == ncclSuccess ? 0 : rc + 1000;
}

#define NOTHING_TO_PREPARE extern "C" int cuco_prepare(const cuco_ctx *, void **) { return 0; }
#define NOTHING_TO_FINISH extern "C" int cuco_finish(const cuco_ctx *, void *) { return 0; }

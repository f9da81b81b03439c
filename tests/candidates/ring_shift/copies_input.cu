// Copies its own input through instead of communicating.
#include "ring.h"

NOTHING_TO_PREPARE
extern "C" int cuco_launch(const cuco_ctx *ctx, void *, cudaStream_t stream) {
  const cuco_buffer *send = find_buffer(ctx, "send"), *recv = find_buffer(ctx, "recv");
  return cudaMemcpyAsync(recv->ptr, send->ptr, recv->bytes, cudaMemcpyDeviceToDevice, stream);
}
NOTHING_TO_FINISH

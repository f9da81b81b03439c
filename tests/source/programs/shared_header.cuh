#pragma once
#include <nccl.h>

namespace shared {
inline void swap_halos(float *out, float *in, size_t count, int peer, ncclComm_t comm, cudaStream_t stream) {
  ncclGroupStart();
  ncclSend(out, count, ncclFloat, peer, comm, stream);
  ncclRecv(in, count, ncclFloat, peer, comm, stream);
  ncclGroupEnd();
}
struct Grouped {
  Grouped() { ncclGroupStart(); }
  ~Grouped() { ncclGroupEnd(); }
};
}  // namespace shared

// What each collective does to memory, once every rank's call is known. Knows nothing of streams, clocks or ranks'
// progress, so that it can be tested on plain host memory.
#pragma once

#include "datatype.h"

#include <functional>
#include <vector>

namespace cuco::nccl {

enum class Collective {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  gather,
  scatter,
  send,
  recv,
  put_signal,
  signal,
  wait_signal,
};

// "AllReduce": the name without the nccl prefix, aliases resolved, as contracts.md section 5 wants it.
const char* collective_name(Collective kind);

// Whether the operation folds values (its reduction and data type matter), has a root, or names a peer.
bool has_reduction(Collective kind);
bool has_root(Collective kind);
bool is_point_to_point(Collective kind);

// One rank's buffers and arguments. Counts are elements, as the call passed them.
struct Buffers {
  const void* send = nullptr;
  void* recv = nullptr;
  uint64_t scalar = 0;  // this rank's PreMulSum scalar
};

// Called around every contiguous piece a collective reads or writes: (rank, address, bytes, is_write).
using Touch = std::function<void(int, const void*, size_t, bool)>;

// Moves and reduces. ranks[r] are rank r's buffers; all other arguments agree on every rank. In-place forms follow
// nccl.h: they need no staging because no block is read after another rank may have written it.
void run_collective(Collective kind, const std::vector<Buffers>& ranks, size_t count, ncclDataType_t type,
                    const Reduction& reduction, int root, const Touch& touch);

// Bytes a rank's send (or receive) side spans, for bounds checks; 0 when the rank does not use that side.
size_t send_bytes(Collective kind, int rank, int ranks, size_t count, ncclDataType_t type, int root);
size_t recv_bytes(Collective kind, int rank, int ranks, size_t count, ncclDataType_t type, int root);

}  // namespace cuco::nccl

// The network card of the emulator: takes the descriptors that NCCL's device code posts and carries them out as late and
// in as bad an order as the GIN contract allows.
//
// What the contract promises, and so what delivery keeps:
// - a put's source may be read at any time until it is locally complete (its counter, or flush);
// - local completion says nothing about arrival;
// - pieces of puts arrive in any order, also within one put; contexts and peers are unordered;
// - a weak signal follows the put it is bundled with, a strong one every earlier put of its context to its peer;
// - a get's data is there when its request is complete;
// - requests of one queue are reported complete in order (NCCL's consumer index).
#pragma once

#include "bridge.h"
#include "gfd.h"
#include "gin_domain.h"

#include <memory>
#include <vector>

namespace cuco::nccl {

struct Piece {
  size_t offset, bytes;
};

struct Operation {
  uint64_t id = 0;            // NIC record in the trace
  GinQueue* queue = nullptr;
  uint32_t index = 0;         // position in its queue
  uint64_t round = 0;         // delivery `random`: not before this round while anything else can run
  Request request;
  Stamp reading, writing;     // the operation as two agents: it consumes its source, later it changes its target
  const char* from = nullptr; // where data is read: local for a put, remote for a get
  char* to = nullptr;
  std::vector<char> staging;  // bytes on the wire
  std::vector<Piece> unread, unwritten;
  bool locally_complete = false, settled = false, signalled = false;
  Stamp bundled;              // weak VA signals: the put that they belong to
  const Operation* waits_for = nullptr;  // that put, while it is unsettled

  bool carries_put() const { return request.kind == RequestKind::put || request.kind == RequestKind::put_value; }
  uint64_t number() const { return index + 1; }
  bool is_get() const { return request.kind == RequestKind::get; }
};

// Gives every rank's queues of the domain to that rank's card; from then on their doorbells are watched.
void nic_attach(GinDomain& domain);

}  // namespace cuco::nccl

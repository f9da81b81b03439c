// The GIN side of one device communicator: for every rank and context the proxy queues, signals and counters that NCCL's
// device code uses, and their words' names.
#pragma once

#include "bridge.h"
#include "clique.h"
#include "resources.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace cuco::nccl {

struct GinDomain;
struct Operation;  // nic.h

// The queue of one (rank, context) to one peer.
struct GinQueue {
  GinDomain* domain = nullptr;
  int rank = 0, context = 0, peer = 0;      // clique ranks
  int slot = 0;                             // index in the context's arrays
  uint32_t taken = 0;                       // descriptors read so far
  std::deque<Operation*> open;              // not locally complete, in order; completion is reported in order
  std::deque<Operation*> unsettled;         // puts whose data has not all reached the peer, in order
  // Its requests as operations of two streams, numbered by position from 1: sources consumed, targets changed.
  emu::StreamId reads = emu::kNoStream, writes = emu::kNoStream;
  uint32_t last_put = 0;                    // number of the newest put, and its agent
  Stamp last_put_agent;
};

struct GinDomain {
  Clique* clique = nullptr;
  int number = 0;                           // of the device communicator within its clique
  int contexts = 0, signals = 0, counters = 0;
  int user_signals = 0;                     // the first ids; barriers and requests follow
  int context_stride = 1;                   // connected peers differ by multiples of this
  int connection_stride = 1;                // queue index = clique rank / this
  uint32_t queue_size = 0;
  std::vector<ncclGinProxyGpuCtx_t*> gpu;   // by clique rank: array of contexts, in that rank's memory
  std::vector<std::unique_ptr<GinQueue>> queues;
  std::vector<std::string> signal_names;    // by id
  bool live = true;

  // Queue slots per context, and how many more are laid out behind them to recognise a wrong peer or context.
  int slots() const { return clique->size() / connection_stride; }
  static constexpr int kSpareSlots = 8, kSpareContexts = 8;

  ncclGinProxyGpuCtx_t& context(int rank, int index) const { return gpu[static_cast<size_t>(rank)][index]; }
  uint64_t* signal_word(int rank, int context_index, uint32_t id) const {
    return context(rank, context_index).signals + id;
  }
};

// Allocates and names everything, and registers the queues with the NIC.
GinDomain& make_gin_domain(Clique& clique, const ResourcePlan& plan, const ncclDevCommRequirements& reqs,
                           const ncclDevComm& barriers, int number);
void close_gin_domain(GinDomain& domain);

}  // namespace cuco::nccl

// One rank's part of a run: communicator, buffers, the candidate's three calls, and per step what the contract demands:
// fresh inputs, poison, the launch, the hash in stream, the snapshot, and the hash again when everything is quiet.
#pragma once

#include "candidate.h"
#include "inputs.h"
#include "memory.h"

#include <deque>
#include <memory>

namespace cuco::driver {

struct Shared {   // of all ranks of a run
  const Job &job;
  Wire &wire;
  Inputs inputs;
  ncclUniqueId id;
};

class Rank {
 public:
  Rank(Shared &shared, int rank);
  void run();

 private:
  struct Evidence {   // of one output in one step; filled in by the stream
    uint32_t step, buffer;
    uint64_t hash = 0;
    Pinned snapshot;   // empty: none is taken
  };

  void connect();
  void segment(const Segment &segment, uint32_t first);
  void supply(uint32_t step);
  void one_step(uint32_t step);
  void collect(uint32_t step);
  void settle(uint32_t last_step);
  void disconnect();
  void check_decoys();
  int device() const { return rank_ % job_.lsa_team; }   // a rank's host has the GPUs of its domain

  Shared &shared_;
  const Job &job_;
  int rank_;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Candidate> candidate_;
  std::vector<std::shared_ptr<StepInputs>> in_use_;
  std::deque<Evidence> evidence_;   // a deque: the stream holds addresses of its elements
};

}  // namespace cuco::driver

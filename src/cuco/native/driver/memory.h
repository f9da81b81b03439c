// The buffers of a rank: allocation among decoys, and the check that nothing wrote outside them.
#pragma once

#include "job.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <vector>

namespace cuco::driver {

// Owns a rank's buffers. Every buffer lies at the start of an allocation of its own (ncclMemAlloc, 4096-aligned), also
// when it has 0 bytes. Decoys are allocations between them, of sizes that depend on the seed and the rank, so that
// buffers lie at other offsets on every rank; their content is known and must never change.
class Memory {
 public:
  Memory(const Job &job, int rank);
  ~Memory();
  Memory(const Memory &) = delete;

  const std::vector<void *> &pointers() const { return pointers_; }
  // Empty, or which decoy beside which buffer has changed. Call when the device is idle.
  std::string damage() const;

 private:
  struct Decoy {
    void *memory;
    size_t bytes;
    std::string beside;
  };
  void add_decoys(uint64_t &random, int most, const std::string &beside);

  std::vector<void *> pointers_;
  std::vector<Decoy> decoys_;
};

void check_cuda(cudaError_t code, const char *what, int rank);   // ends the run with a finding on an error

}  // namespace cuco::driver

// Inputs of a step, as Python sends them: asked for when the first rank needs them, kept while any rank's copies may be
// under way. They exist in this process only after the candidate's library has been loaded.
#pragma once

#include "job.h"
#include "pinned.h"
#include "wire.h"

#include <map>
#include <memory>
#include <vector>

namespace cuco::driver {

// One step's inputs of all ranks, in page-locked memory so that copies to the device are asynchronous.
class StepInputs {
 public:
  StepInputs(const Job &job, const std::vector<char> &payload);   // throws std::runtime_error on a wrong size

  const void *at(int rank, size_t buffer) const { return memory_.data() + offsets_[rank][buffer]; }

 private:
  Pinned memory_;
  std::vector<std::vector<size_t>> offsets_;
};

class Inputs {
 public:
  Inputs(const Job &job, Wire &wire) : job_(job), wire_(wire) {}
  std::shared_ptr<StepInputs> of(uint32_t step);

 private:
  const Job &job_;
  Wire &wire_;
  std::map<uint32_t, std::weak_ptr<StepInputs>> steps_;
};

}  // namespace cuco::driver

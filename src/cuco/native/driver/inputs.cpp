#include "inputs.h"

#include <cstring>
#include <stdexcept>

namespace cuco::driver {

StepInputs::StepInputs(const Job &job, const std::vector<char> &payload) {
  size_t total = 0;
  for (const std::vector<Buffer> &buffers : job.buffers) {
    offsets_.emplace_back();
    for (const Buffer &buffer : buffers) {
      offsets_.back().push_back(total);
      if (buffer.is_input()) total += buffer.bytes;
    }
  }
  if (payload.size() != total)
    throw std::runtime_error("inputs of " + std::to_string(payload.size()) + " bytes, not " + std::to_string(total));
  memory_ = Pinned(total);
  std::memcpy(memory_.data(), payload.data(), total);
}

std::shared_ptr<StepInputs> Inputs::of(uint32_t step) {
  uint32_t source = job_.fixed_inputs ? 0 : step;
  if (std::shared_ptr<StepInputs> present = steps_[source].lock()) return present;
  wire_.send(Message::need, {source});
  std::vector<char> payload = wire_.receive(Message::inputs);
  uint32_t number = 0;
  if (payload.size() < sizeof number) throw std::runtime_error("inputs without a step number");
  std::memcpy(&number, payload.data(), sizeof number);
  if (number != source) throw std::runtime_error("inputs of the wrong step");
  payload.erase(payload.begin(), payload.begin() + sizeof number);
  auto fresh = std::make_shared<StepInputs>(job_, payload);
  steps_[source] = fresh;
  return fresh;
}

}  // namespace cuco::driver

// Events: the moment in some stream at which they were last recorded.
#pragma once

#include "stream.h"

#include <cuda_runtime_api.h>

namespace cuco::cuda {

struct Node;

struct Event {
  int rank = 0, number = 0;
  unsigned flags = 0;
  uint64_t version = 0;          // how often recorded
  MomentPtr moment;              // nullptr: never recorded
  // Recorded in a stream that is being captured: a place in that graph instead of a moment.
  Capture* captured_in = nullptr;
  std::vector<Node*> captured_after;
};

Event* find_event(cudaEvent_t handle);   // nullptr: no living event
cudaError_t record_event(Event& event, Stream& stream, bool external);
cudaError_t wait_event(Stream& stream, Event& event, bool external);

}  // namespace cuco::cuda

#include "runtime.h"

#include "host.h"
#include "stream.h"

#include <algorithm>

namespace cuco::cuda {

cudaError_t enqueue_call(cudaStream_t handle, std::string name, std::function<void()> body) {
  Stream* stream = find_stream(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  const std::string label = name;
  return submit(
      *stream,
      [name = std::move(name), body = std::move(body)](Stream& target) {
        push_call(target, name, [body](Stream&) { body(); });
      },
      label.c_str());
}

int stream_number(cudaStream_t handle) {
  const Stream* stream = find_stream(handle);
  return stream ? stream->number : -1;
}

const Clock& stream_clock(cudaStream_t handle) { return find_stream(handle)->clock; }

void forbid_synchronisation(std::string why) { host().forbidden = std::move(why); }

void drain_streams() {
  const int rank = current_rank();
  const auto drained = [rank] {
    const std::vector<Stream*> streams = streams_of(rank);
    return std::all_of(streams.begin(), streams.end(), [](Stream* stream) { return stream->idle(); });
  };
  if (!drained()) emu::scheduler().wait_until(drained, [] { return "the end of all stream work"; });
}

}  // namespace cuco::cuda

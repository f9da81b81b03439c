#include "capture.h"

#include "host.h"

#include <algorithm>
#include <set>

namespace cuco::cuda {
namespace {

std::vector<std::unique_ptr<Capture>>& captures() {
  static std::vector<std::unique_ptr<Capture>> open;
  return open;
}

void unite(std::vector<Node*>& into, const std::vector<Node*>& more) {
  for (Node* node : more)
    if (std::find(into.begin(), into.end(), node) == into.end()) into.push_back(node);
}

// Nodes that no other node depends on and that do not lead to `tails`: work that the origin has not joined.
bool all_joined(const Capture& capture) {
  std::set<const Node*> reached;
  std::vector<const Node*> waiting;
  const auto tails = capture.tails.find(capture.origin);
  if (tails != capture.tails.end()) waiting.assign(tails->second.begin(), tails->second.end());
  while (!waiting.empty()) {
    const Node* node = waiting.back();
    waiting.pop_back();
    if (!reached.insert(node).second) continue;
    waiting.insert(waiting.end(), node->after.begin(), node->after.end());
  }
  return reached.size() == capture.graph->nodes.size();
}

void close(Capture* capture) {
  for (const auto& [stream, tails] : capture->tails) stream->capture = nullptr;
  std::erase_if(captures(), [capture](const auto& other) { return other.get() == capture; });
}

}  // namespace

cudaError_t begin_capture(Stream& stream, cudaStreamCaptureMode mode) {
  if (stream.kind() == StreamKind::legacy) return cudaErrorStreamCaptureUnsupported;
  if (stream.capture) return cudaErrorIllegalState;
  if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed) return cudaErrorInvalidValue;
  static uint64_t next_id = 1;
  captures().push_back(std::make_unique<Capture>());
  Capture* capture = captures().back().get();
  capture->origin = &stream;
  capture->id = next_id++;
  capture->tails[&stream] = {};
  stream.capture = capture;
  host().capture_mode = mode;
  return cudaSuccess;
}

cudaError_t end_capture(Stream& stream, std::unique_ptr<Graph>& out) {
  Capture* capture = stream.capture;
  if (!capture) return cudaErrorIllegalState;
  if (capture->origin != &stream) return invalidate(stream, cudaErrorStreamCaptureUnmatched);
  cudaError_t result = capture->broken ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
  if (!result && !all_joined(*capture)) result = cudaErrorStreamCaptureUnjoined;
  if (!result) out = std::move(capture->graph);
  close(capture);
  return result;
}

cudaError_t invalidate(Stream& stream, cudaError_t code) {
  stream.capture->broken = code;
  return code;
}

cudaError_t add_node(Stream& stream, Work work, const char* name) {
  Capture& capture = *stream.capture;
  if (capture.broken) return cudaErrorStreamCaptureInvalidated;
  auto node = std::make_unique<Node>();
  node->work = std::move(work);
  node->name = name;
  node->after = capture.tails[&stream];
  node->priority = stream.priority;
  capture.tails[&stream] = {node.get()};
  capture.graph->nodes.push_back(std::move(node));
  return cudaSuccess;
}

std::vector<Node*> tails_of(const Stream& stream) { return stream.capture->tails.at(const_cast<Stream*>(&stream)); }

cudaError_t join_capture(Stream& stream, Capture* capture, const std::vector<Node*>& after) {
  const bool open = std::any_of(captures().begin(), captures().end(), [=](const auto& c) { return c.get() == capture; });
  if (!open) return cudaErrorInvalidValue;  // recorded in a capture that has ended
  if (stream.capture && stream.capture != capture) {
    invalidate(stream, cudaErrorStreamCaptureMerge);
    capture->broken = cudaErrorStreamCaptureMerge;
    return cudaErrorStreamCaptureMerge;
  }
  if (stream.kind() == StreamKind::legacy) return cudaErrorStreamCaptureImplicit;
  stream.capture = capture;
  unite(capture->tails[&stream], after);
  return cudaSuccess;
}

bool breaks_capture(const Stream& legacy) {
  for (const auto& capture : captures())
    for (const auto& [stream, tails] : capture->tails)
      if (stream->rank() == legacy.rank() && stream->blocking()) {
        capture->broken = cudaErrorStreamCaptureImplicit;
        return true;
      }
  return false;
}

// ------------------------------------------------------------------------------------------------ instantiation, launch
GraphExec::GraphExec(const Graph& graph, int rank) {
  std::map<const Node*, size_t> index;
  std::vector<size_t> last;  // the last step of each stream
  for (const auto& node : graph.nodes) {
    Step step;
    step.work = node->work;
    step.name = node->name;
    step.stream = streams_.size();
    for (const Node* before : node->after) {
      const size_t i = index.at(before);
      steps_[i].leaf = false;
      // Goes on in the stream of the first dependency that is still the last step there.
      if (step.stream == streams_.size() && last[steps_[i].stream] == i) step.stream = steps_[i].stream;
    }
    if (step.stream == streams_.size()) {
      streams_.push_back(make_stream(rank, StreamKind::graph, cudaStreamNonBlocking, node->priority));
      last.push_back(0);
    }
    for (const Node* before : node->after)
      if (steps_[index.at(before)].stream != step.stream) step.after.push_back(index.at(before));
    index[node.get()] = last[step.stream] = steps_.size();
    steps_.push_back(std::move(step));
  }
}

// The edges of a launched graph for the trace, as events of their own.
struct TracedEdges {
  int rank;
  int64_t mark(const Stream& stream) const {
    if (!emu::tracing()) return 0;
    const int64_t event = implicit_event(rank);
    emu::trace_host(rank, "record", Record().put("stream", stream.number).put("event", event).put("ver", 1));
    return event;
  }
  void join(const Stream& stream, int64_t event) const {
    if (emu::tracing())
      emu::trace_host(rank, "wait_event", Record().put("stream", stream.number).put("event", event).put("ver", 1));
  }
};

void GraphExec::launch(Stream& stream) {
  const TracedEdges edges{stream.rank()};
  if (emu::tracing())
    emu::trace_host(stream.rank(), "graph", Record().put("stream", stream.number).put("nodes", steps_.size()));
  push_call(stream, "cudaGraphLaunch", [](Stream&) {});
  const MomentPtr start = stream.last();
  const int64_t started = edges.mark(stream);
  std::vector<bool> begun(streams_.size());
  std::vector<MomentPtr> ends(steps_.size());
  std::vector<int64_t> marks(steps_.size());
  for (size_t i = 0; i < steps_.size(); i++) {
    const Step& step = steps_[i];
    Stream& own = *streams_[step.stream];
    if (!begun[step.stream]) {
      push_wait(own, start, "the launch of its graph");
      edges.join(own, started);
    }
    begun[step.stream] = true;
    for (const size_t before : step.after) {
      push_wait(own, ends[before], "a graph node, " + steps_[before].name);
      edges.join(own, marks[before]);
    }
    if (step.work) step.work(own);
    ends[i] = own.last();
    marks[i] = edges.mark(own);
  }
  for (size_t i = 0; i < steps_.size(); i++)
    if (steps_[i].leaf) {
      push_wait(stream, ends[i], "the end of a graph, " + steps_[i].name);
      edges.join(stream, marks[i]);
    }
  if (emu::tracing()) emu::trace_host(stream.rank(), "graph_end", Record().put("stream", stream.number));
}

// ------------------------------------------------------------------------------------------------ for other rooms
bool is_capturing(cudaStream_t handle) {
  const Stream* stream = find_stream(handle);
  return stream && stream->capture;
}

cudaError_t capture_call(const std::vector<cudaStream_t>& handles, std::function<void(cudaStream_t)> issue,
                         const char* name) {
  Stream* first = nullptr;
  for (cudaStream_t handle : handles) {
    Stream* stream = find_stream(handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (!stream->capture) continue;
    if (!first) first = stream;
    if (const cudaError_t wrong = join_capture(*first, stream->capture, tails_of(*stream))) return wrong;
  }
  if (!first) return cudaErrorIllegalState;
  const cudaError_t wrong =
      add_node(*first, [issue](Stream& target) { issue(handle_of(&target)); }, name);
  if (wrong) return wrong;
  for (cudaStream_t handle : handles)
    if (Stream* stream = find_stream(handle); stream != first)
      if (const cudaError_t failed = join_capture(*stream, first->capture, tails_of(*first))) return failed;
  return cudaSuccess;
}

}  // namespace cuco::cuda

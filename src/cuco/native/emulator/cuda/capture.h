// Stream capture and graphs. A node is the work that an API call would have given to its stream; launching a graph gives
// each node's work to a stream of the graph, in the order of the dependencies.
#pragma once

#include "stream.h"

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cuco::cuda {

struct Node {
  Work work;                 // empty: only joins its dependencies
  std::vector<Node*> after;  // nodes of the same graph, all earlier in it
  std::string name;
  int priority = 0;          // of the stream it was captured in
};

class Graph {
 public:
  std::vector<std::unique_ptr<Node>> nodes;  // every node after its dependencies
};

class Capture {
 public:
  Stream* origin = nullptr;
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  std::map<Stream*, std::vector<Node*>> tails;  // of every stream that takes part
  cudaError_t broken = cudaSuccess;             // why the capture can no longer succeed
  uint64_t id = 0;
};

cudaError_t begin_capture(Stream& stream, cudaStreamCaptureMode mode);
cudaError_t end_capture(Stream& stream, std::unique_ptr<Graph>& out);
// A call that must not happen in a capture: the capture is lost, the call fails with `code`.
cudaError_t invalidate(Stream& stream, cudaError_t code);

cudaError_t add_node(Stream& stream, Work work, const char* name);
std::vector<Node*> tails_of(const Stream& stream);
// `stream` waits for nodes of a capture: it takes part from now on.
cudaError_t join_capture(Stream& stream, Capture* capture, const std::vector<Node*>& after);
// Whether work in this legacy stream would depend on a capture that is going on.
bool breaks_capture(const Stream& legacy);

// An instantiated graph: nodes, and the streams that they run in. Launches of one run one after the other.
class GraphExec {
 public:
  GraphExec(const Graph& graph, int rank);
  void launch(Stream& stream);

 private:
  struct Step {
    Work work;
    std::string name;
    size_t stream = 0;
    std::vector<size_t> after;  // steps in other streams
    bool leaf = true;
  };
  std::vector<Step> steps_;
  std::vector<Stream*> streams_;
};

// ------------------------------------------------------------------------------------------------ for other rooms
bool is_capturing(cudaStream_t stream);
// Instead of work of its own kind (gates), another room captures a call: `issue` is called at each launch of the graph
// with the stream that stands for all of `streams`, and must not block.
cudaError_t capture_call(const std::vector<cudaStream_t>& streams, std::function<void(cudaStream_t)> issue,
                         const char* name);

}  // namespace cuco::cuda

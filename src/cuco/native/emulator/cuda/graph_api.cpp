// cudaStreamBeginCapture ... cudaGraphLaunch.
#include "api.h"
#include "capture.h"

#include <set>

using namespace cuco::cuda;
namespace emu = cuco::emu;

namespace {

std::set<Graph*>& graphs() {
  static std::set<Graph*> living;
  return living;
}
std::set<GraphExec*>& execs() {
  static std::set<GraphExec*> living;
  return living;
}

Graph* find_graph(cudaGraph_t handle) {
  auto* graph = reinterpret_cast<Graph*>(handle);
  return graphs().contains(graph) ? graph : nullptr;
}
GraphExec* find_exec(cudaGraphExec_t handle) {
  auto* exec = reinterpret_cast<GraphExec*>(handle);
  return execs().contains(exec) ? exec : nullptr;
}

cudaError_t instantiate(cudaGraphExec_t* out, cudaGraph_t handle) {
  const Graph* graph = find_graph(handle);
  if (!out || !graph) return cudaErrorInvalidValue;
  trace_call("cudaGraphInstantiate");
  auto* exec = new GraphExec(*graph, current_rank());
  execs().insert(exec);
  *out = reinterpret_cast<cudaGraphExec_t>(exec);
  return cudaSuccess;
}

cudaError_t begin(Stream* stream, cudaStreamCaptureMode mode) {
  return stream ? begin_capture(*stream, mode) : cudaErrorInvalidResourceHandle;
}

cudaError_t end(Stream* stream, cudaGraph_t* out) {
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!out) return cudaErrorInvalidValue;
  *out = nullptr;
  std::unique_ptr<Graph> graph;
  if (const cudaError_t wrong = end_capture(*stream, graph)) return wrong;
  graphs().insert(graph.get());
  *out = reinterpret_cast<cudaGraph_t>(graph.release());
  return cudaSuccess;
}

cudaStreamCaptureStatus status_of(const Stream& stream) {
  if (!stream.capture) return cudaStreamCaptureStatusNone;
  return stream.capture->broken ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
}

}  // namespace

CUCO_BOTH(cudaStreamBeginCapture, _ptsz, (cudaStream_t stream, cudaStreamCaptureMode mode), {
  return begin(find_stream(stream, default_stream), mode);
})
CUCO_BOTH(cudaStreamEndCapture, _ptsz, (cudaStream_t stream, cudaGraph_t* out), {
  return end(find_stream(stream, default_stream), out);
})
CUCO_BOTH(cudaStreamIsCapturing, _ptsz, (cudaStream_t handle, cudaStreamCaptureStatus* status), {
  const Stream* stream = find_stream(handle, default_stream);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!status) return cudaErrorInvalidValue;
  *status = status_of(*stream);
  return cudaSuccess;
})
// clang-format off
CUCO_BOTH(cudaStreamGetCaptureInfo, _ptsz, (cudaStream_t handle, cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t* graph, const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges, size_t* count), {
  const Stream* stream = find_stream(handle, default_stream);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!status) return cudaErrorInvalidValue;
  if (graph || dependencies || edges || count) unsupported("cudaStreamGetCaptureInfo of the graph under capture");
  *status = status_of(*stream);
  if (id && stream->capture) *id = stream->capture->id;
  return cudaSuccess;
})
// clang-format on

CUCO_API(cudaThreadExchangeStreamCaptureMode, (cudaStreamCaptureMode * mode), {
  if (!mode) return cudaErrorInvalidValue;
  std::swap(*mode, host().capture_mode);
  return cudaSuccess;
})

CUCO_API(cudaGraphInstantiate, (cudaGraphExec_t * out, cudaGraph_t graph, unsigned long long), {
  return instantiate(out, graph);
})
CUCO_API(cudaGraphInstantiateWithFlags, (cudaGraphExec_t * out, cudaGraph_t graph, unsigned long long), {
  return instantiate(out, graph);
})

CUCO_BOTH(cudaGraphLaunch, _ptsz, (cudaGraphExec_t handle, cudaStream_t stream_handle), {
  GraphExec* exec = find_exec(handle);
  Stream* stream = find_stream(stream_handle, default_stream);
  if (!exec) return cudaErrorInvalidValue;
  if (!stream) return cudaErrorInvalidResourceHandle;
  return submit(*stream, [exec](Stream& target) { exec->launch(target); }, "cudaGraphLaunch");
})
CUCO_BOTH(cudaGraphUpload, _ptsz, (cudaGraphExec_t handle, cudaStream_t stream), {
  if (!find_exec(handle)) return cudaErrorInvalidValue;
  return find_stream(stream, default_stream) ? cudaSuccess : cudaErrorInvalidResourceHandle;
})

// The streams of an instantiated graph outlive it: its last launch may still be running.
CUCO_API(cudaGraphExecDestroy, (cudaGraphExec_t handle), {
  GraphExec* exec = find_exec(handle);
  if (!exec) return cudaErrorInvalidValue;
  execs().erase(exec);
  delete exec;
  return cudaSuccess;
})

CUCO_API(cudaGraphDestroy, (cudaGraph_t handle), {
  Graph* graph = find_graph(handle);
  if (!graph) return cudaErrorInvalidValue;
  graphs().erase(graph);
  delete graph;
  return cudaSuccess;
})

CUCO_API(cudaGraphGetNodes, (cudaGraph_t handle, cudaGraphNode_t* nodes, size_t* count), {
  const Graph* graph = find_graph(handle);
  if (!graph || !count) return cudaErrorInvalidValue;
  if (nodes)
    for (size_t i = 0; i < *count && i < graph->nodes.size(); i++)
      nodes[i] = reinterpret_cast<cudaGraphNode_t>(graph->nodes[i].get());
  *count = graph->nodes.size();
  return cudaSuccess;
})

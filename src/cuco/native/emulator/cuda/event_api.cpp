// cudaEvent* and cudaStreamWaitEvent.
#include "event.h"

#include "api.h"
#include "capture.h"

#include <map>
#include <set>

using namespace cuco::cuda;
namespace emu = cuco::emu;

namespace cuco::cuda {
namespace {

std::set<Event*>& living() {
  static std::set<Event*> events;
  return events;
}

void trace_event(const char* op, const Stream& stream, const Event& event) {
  if (!emu::tracing()) return;
  Record record;
  record.put("stream", stream.number).put("event", event.number).put("ver", event.version);
  emu::trace_host(stream.rank(), op, std::move(record));
}

void record_now(Event& event, Stream& stream) {
  event.version++;
  event.captured_in = nullptr;
  trace_event("record", stream, event);
  push_call(stream, "the record of event " + std::to_string(event.number), [](Stream&) {});
  event.moment = stream.last();
}

void wait_now(Stream& stream, const Event& event) {
  if (!event.moment) return;  // never recorded: nothing to wait for
  trace_event("wait_event", stream, event);
  push_wait(stream, event.moment, "cudaStreamWaitEvent on event " + std::to_string(event.number));
}

}  // namespace

Event* find_event(cudaEvent_t handle) {
  auto* event = reinterpret_cast<Event*>(handle);
  return living().contains(event) ? event : nullptr;
}

cudaError_t record_event(Event& event, Stream& stream, bool external) {
  if (!stream.capture) {
    record_now(event, stream);
    return cudaSuccess;
  }
  if (external) return add_node(stream, [&event](Stream& target) { record_now(event, target); }, "cudaEventRecord");
  event.captured_in = stream.capture;
  event.captured_after = tails_of(stream);
  return cudaSuccess;
}

cudaError_t wait_event(Stream& stream, Event& event, bool external) {
  if (stream.capture && external)
    return add_node(stream, [&event](Stream& target) { wait_now(target, event); }, "cudaStreamWaitEvent");
  if (event.captured_in) return join_capture(stream, event.captured_in, event.captured_after);
  if (stream.capture) return invalidate(stream, cudaErrorStreamCaptureIsolation);
  wait_now(stream, event);
  return cudaSuccess;
}

}  // namespace cuco::cuda

namespace {

cudaError_t create(cudaEvent_t* out, unsigned flags) {
  if (!out || flags & ~7u) return cudaErrorInvalidValue;
  if (flags & cudaEventInterprocess) return cudaErrorNotSupported;
  static std::map<int, int> counters;
  auto* event = new Event;
  event->rank = current_rank();
  event->number = counters[event->rank]++;
  event->flags = flags;
  living().insert(event);
  *out = reinterpret_cast<cudaEvent_t>(event);
  return cudaSuccess;
}

cudaError_t record(cudaEvent_t handle, Stream* stream, unsigned flags) {
  Event* event = find_event(handle);
  if (!event || !stream) return cudaErrorInvalidResourceHandle;
  return record_event(*event, *stream, flags & cudaEventRecordExternal);
}

}  // namespace

CUCO_API(cudaEventCreateWithFlags, (cudaEvent_t * out, unsigned flags), { return create(out, flags); })
CUCO_API(cudaEventCreate, (cudaEvent_t * out), { return create(out, cudaEventDefault); })
CUCO_API(cudaEventDestroy, (cudaEvent_t handle), {
  Event* event = find_event(handle);
  if (!event) return cudaErrorInvalidResourceHandle;
  living().erase(event);
  delete event;
  return cudaSuccess;
})

CUCO_BOTH(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream), {
  return record(event, find_stream(stream, default_stream), 0);
})
CUCO_BOTH(cudaEventRecordWithFlags, _ptsz, (cudaEvent_t event, cudaStream_t stream, unsigned flags), {
  return record(event, find_stream(stream, default_stream), flags);
})
CUCO_BOTH(cudaStreamWaitEvent, _ptsz, (cudaStream_t handle, cudaEvent_t event_handle, unsigned flags), {
  Stream* stream = find_stream(handle, default_stream);
  Event* event = find_event(event_handle);
  if (!event || !stream) return cudaErrorInvalidResourceHandle;
  return wait_event(*stream, *event, flags & cudaEventWaitExternal);
})

CUCO_API(cudaEventQuery, (cudaEvent_t handle), {
  Event* event = find_event(handle);
  if (!event) return cudaErrorInvalidResourceHandle;
  if (event->captured_in) return cudaErrorCapturedEvent;
  if (event->moment && !event->moment->reached) emu::scheduler().yield();  // a poll: let others get on
  if (event->moment && !event->moment->reached) return cudaErrorNotReady;
  trace_call("cudaEventQuery");  // once: how often a loop asks in vain depends on the schedule
  if (event->moment) emu::host_acquire(current_rank(), event->moment->clock);
  return cudaSuccess;
})

CUCO_API(cudaEventSynchronize, (cudaEvent_t handle), {
  Event* event = find_event(handle);
  if (!event) return cudaErrorInvalidResourceHandle;
  if (event->captured_in) return cudaErrorCapturedEvent;
  if (!event->moment) return cudaSuccess;
  check_may_synchronise("cudaEventSynchronize");
  emu::trace_host(current_rank(), "event_sync", Record().put("event", event->number).put("ver", event->version));
  wait_for({event->moment}, "cudaEventSynchronize of event " + std::to_string(event->number));
  return cudaSuccess;
})

CUCO_API(cudaEventElapsedTime, (float* ms, cudaEvent_t from, cudaEvent_t to), {
  Event *start = find_event(from), *end = find_event(to);
  if (!ms) return cudaErrorInvalidValue;
  if (!start || !end || !start->moment || !end->moment) return cudaErrorInvalidResourceHandle;
  if ((start->flags | end->flags) & cudaEventDisableTiming) return cudaErrorInvalidResourceHandle;
  if (!start->moment->reached || !end->moment->reached) return cudaErrorNotReady;
  *ms = static_cast<float>((end->moment->nominal_us - start->moment->nominal_us) / 1000);
  return cudaSuccess;
})

CUCO_API(cudaIpcGetEventHandle, (cudaIpcEventHandle_t*, cudaEvent_t), { return cudaErrorNotSupported; })
CUCO_API(cudaIpcOpenEventHandle, (cudaEvent_t*, cudaIpcEventHandle_t), { return cudaErrorNotSupported; })
CUCO_API(cudaIpcGetMemHandle, (cudaIpcMemHandle_t*, void*), { return cudaErrorNotSupported; })
CUCO_API(cudaIpcOpenMemHandle, (void**, cudaIpcMemHandle_t, unsigned), { return cudaErrorNotSupported; })
CUCO_API(cudaIpcCloseMemHandle, (void*), { return cudaErrorNotSupported; })

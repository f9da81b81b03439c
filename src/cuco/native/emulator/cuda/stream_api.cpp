// cudaStream*, cudaDeviceSynchronize, host functions.
#include "api.h"
#include "capture.h"
#include "device.h"

#include <algorithm>

using namespace cuco::cuda;
namespace emu = cuco::emu;

namespace {

cudaError_t create(cudaStream_t* out, unsigned flags, int priority) {
  if (!out || flags & ~unsigned{cudaStreamNonBlocking}) return cudaErrorInvalidValue;
  trace_call("cudaStreamCreate");
  const int clamped = std::clamp(priority, kGreatestPriority, kLeastPriority);
  *out = handle_of(make_stream(current_rank(), StreamKind::created, flags, clamped));
  return cudaSuccess;
}

// A destroyed stream finishes its work; only its handle is gone.
cudaError_t destroy(cudaStream_t handle) {
  Stream* stream = find_stream(handle);
  if (!handle || !stream || stream->kind() != StreamKind::created) return cudaErrorInvalidResourceHandle;
  if (stream->capture) return invalidate(*stream, cudaErrorStreamCaptureUnsupported);
  forget_stream(stream);
  return cudaSuccess;
}

cudaError_t synchronise(Stream* stream, const char* call) {
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (stream->capture) return invalidate(*stream, cudaErrorStreamCaptureUnsupported);
  check_may_synchronise(call);
  emu::trace_host(current_rank(), "stream_sync", Record().put("stream", stream->number));
  wait_for({stream->last()}, std::string(call) + " of stream " + std::to_string(stream->number));
  return cudaSuccess;
}

cudaError_t query(Stream* stream) {
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (stream->capture) return invalidate(*stream, cudaErrorStreamCaptureUnsupported);
  if (!stream->idle()) emu::scheduler().yield();  // a poll: let others get on
  if (!stream->idle()) return cudaErrorNotReady;
  trace_call("cudaStreamQuery");  // once: how often a loop asks in vain depends on the schedule
  emu::host_acquire(current_rank(), stream->clock);
  return cudaSuccess;
}

cudaError_t call_host(Stream* stream, std::function<void()> body, const char* name) {
  if (!stream) return cudaErrorInvalidResourceHandle;
  return submit(
      *stream,
      [body, name](Stream& target) {
        emu::trace_host(target.rank(), "host_fn", Record().put("stream", target.number));
        push_call(target, name, [body](Stream&) { body(); }, 10);
      },
      name);
}

}  // namespace

CUCO_API(cudaStreamCreate, (cudaStream_t * out), { return create(out, cudaStreamDefault, 0); })
CUCO_API(cudaStreamCreateWithFlags, (cudaStream_t * out, unsigned flags), { return create(out, flags, 0); })
CUCO_API(cudaStreamCreateWithPriority, (cudaStream_t * out, unsigned flags, int priority), {
  return create(out, flags, priority);
})
CUCO_API(cudaStreamDestroy, (cudaStream_t stream), { return destroy(stream); })

CUCO_BOTH(cudaStreamSynchronize, _ptsz, (cudaStream_t stream), {
  return synchronise(find_stream(stream, default_stream), "cudaStreamSynchronize");
})
CUCO_BOTH(cudaStreamQuery, _ptsz, (cudaStream_t stream), { return query(find_stream(stream, default_stream)); })

CUCO_BOTH(cudaStreamGetFlags, _ptsz, (cudaStream_t handle, unsigned* flags), {
  const Stream* stream = find_stream(handle, default_stream);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!flags) return cudaErrorInvalidValue;
  *flags = stream->flags();
  return cudaSuccess;
})
CUCO_BOTH(cudaStreamGetPriority, _ptsz, (cudaStream_t handle, int* priority), {
  const Stream* stream = find_stream(handle, default_stream);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!priority) return cudaErrorInvalidValue;
  *priority = stream->priority;
  return cudaSuccess;
})
CUCO_BOTH(cudaStreamGetId, _ptsz, (cudaStream_t handle, unsigned long long* id), {
  const Stream* stream = find_stream(handle, default_stream);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!id) return cudaErrorInvalidValue;
  *id = stream->id;
  return cudaSuccess;
})
CUCO_BOTH(cudaStreamGetDevice, _ptsz, (cudaStream_t handle, int* device), {
  const Stream* stream = find_stream(handle, default_stream);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!device) return cudaErrorInvalidValue;
  *device = device_of_rank(stream->rank());
  return cudaSuccess;
})

CUCO_API(cudaDeviceSynchronize, (), {
  for (Stream* stream : streams_of(current_rank()))
    if (stream->capture) return invalidate(*stream, cudaErrorStreamCaptureUnsupported);
  check_may_synchronise("cudaDeviceSynchronize");
  emu::trace_host(current_rank(), "device_sync");
  std::vector<MomentPtr> moments;
  for (const Stream* stream : streams_of(current_rank())) moments.push_back(stream->last());
  wait_for(moments, "cudaDeviceSynchronize");
  return cudaSuccess;
})

CUCO_API(cudaDeviceReset, (), { return cudaDeviceSynchronize(); })

CUCO_BOTH(cudaLaunchHostFunc, _ptsz, (cudaStream_t stream, cudaHostFn_t function, void* data), {
  if (!function) return cudaErrorInvalidValue;
  return call_host(find_stream(stream, default_stream), [function, data] { function(data); }, "cudaLaunchHostFunc");
})

CUCO_BOTH(cudaStreamAddCallback, _ptsz,
          (cudaStream_t handle, cudaStreamCallback_t function, void* data, unsigned flags), {
            Stream* stream = find_stream(handle, default_stream);
            if (!function || flags) return cudaErrorInvalidValue;
            if (stream && stream->capture) return invalidate(*stream, cudaErrorStreamCaptureUnsupported);
            return call_host(stream, [function, handle, data] { function(handle, cudaSuccess, data); },
                             "cudaStreamAddCallback");
          })

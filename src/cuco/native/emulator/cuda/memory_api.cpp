// Allocation of device and page-locked memory, pointer attributes.
#include "api.h"
#include "capture.h"
#include "copy.h"
#include "device.h"

#include <map>

using namespace cuco::cuda;
namespace emu = cuco::emu;

namespace {

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

std::vector<MomentPtr> everything(int rank) {
  std::vector<MomentPtr> moments;
  for (const Stream* stream : streams_of(rank)) moments.push_back(stream->last());
  return moments;
}

// Allocation may wait for the device, which a capture must not: it is lost, unless its mode is relaxed.
bool breaks_captures(int rank) {
  if (host().capture_mode == cudaStreamCaptureModeRelaxed) return false;
  bool any = false;
  for (Stream* stream : streams_of(rank))
    if (stream->capture) any = invalidate(*stream, cudaErrorStreamCaptureUnsupported);
  return any;
}

cudaError_t allocate(void** out, size_t bytes, emu::MemoryKind kind, const char* call) {
  if (!out) return cudaErrorInvalidValue;
  check_may_synchronise(call);
  if (breaks_captures(current_rank())) return cudaErrorStreamCaptureUnsupported;
  trace_call(call);
  *out = nullptr;
  if (!bytes) return cudaSuccess;
  const uint64_t address = emu::memory().allocate(current_rank(), bytes, 256, kind);
  if (!address) return cudaErrorMemoryAllocation;
  *out = reinterpret_cast<void*>(address);
  return cudaSuccess;
}

// cudaFree waits for the whole device, so that nothing still uses the memory.
cudaError_t release(void* pointer, const char* call, bool pinned) {
  if (!pointer) return cudaSuccess;
  check_may_synchronise(call);
  if (breaks_captures(current_rank())) return cudaErrorStreamCaptureUnsupported;
  const emu::Allocation* found = emu::memory().find(address_of(pointer));
  if (!found || found->freed || found->address != address_of(pointer) ||
      (found->kind == emu::MemoryKind::pinned) != pinned)
    return cudaErrorInvalidValue;
  trace_call(call);
  wait_for(everything(current_rank()), call);
  return emu::memory().release(address_of(pointer)) ? cudaSuccess : cudaErrorInvalidValue;
}

// Host memory that the program allocated itself and had page-locked: by start, bytes.
std::map<uint64_t, uint64_t>& registered() {
  static std::map<uint64_t, uint64_t> table;
  return table;
}

}  // namespace

CUCO_API(cudaMalloc, (void** out, size_t bytes), {
  return allocate(out, bytes, emu::MemoryKind::device, "cudaMalloc");
})

CUCO_API(cudaMallocPitch, (void** out, size_t* pitch, size_t width, size_t rows), {
  if (!pitch) return cudaErrorInvalidValue;
  *pitch = (width + 511) / 512 * 512;
  return allocate(out, *pitch * rows, emu::MemoryKind::device, "cudaMallocPitch");
})

CUCO_API(cudaFree, (void* pointer), { return release(pointer, "cudaFree", false); })
CUCO_API(cudaMallocHost, (void** out, size_t bytes), {
  return allocate(out, bytes, emu::MemoryKind::pinned, "cudaMallocHost");
})
CUCO_API(cudaHostAlloc, (void** out, size_t bytes, unsigned), {
  return allocate(out, bytes, emu::MemoryKind::pinned, "cudaHostAlloc");
})
CUCO_API(cudaFreeHost, (void* pointer), { return release(pointer, "cudaFreeHost", true); })

// Managed memory is device memory that the host may touch, which is true of all memory here.
CUCO_API(cudaMallocManaged, (void** out, size_t bytes, unsigned), {
  return allocate(out, bytes, emu::MemoryKind::device, "cudaMallocManaged");
})

// ------------------------------------------------------------------------------------------------ stream-ordered
namespace {

cudaError_t allocate_async(void** out, size_t bytes, Stream* stream) {
  if (!out) return cudaErrorInvalidValue;
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (stream->capture) unsupported("cudaMallocAsync in a stream that is being captured");
  trace_call("cudaMallocAsync");
  *out = nullptr;
  if (!bytes) return cudaSuccess;
  const uint64_t address = emu::memory().allocate(current_rank(), bytes, 256, emu::MemoryKind::device);
  if (!address) return cudaErrorMemoryAllocation;
  *out = reinterpret_cast<void*>(address);
  return cudaSuccess;
}

cudaError_t release_async(void* pointer, Stream* stream) {
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!pointer) return cudaSuccess;
  const emu::Allocation* found = emu::memory().find(address_of(pointer));
  if (!found || found->freed || found->address != address_of(pointer)) return cudaErrorInvalidValue;
  if (stream->capture) unsupported("cudaFreeAsync in a stream that is being captured");
  trace_call("cudaFreeAsync");
  push_call(*stream, "cudaFreeAsync", [pointer](Stream&) { emu::memory().release(address_of(pointer)); });
  return cudaSuccess;
}

int pool;  // the device's default pool: an address is all it needs
cudaMemPool_t default_pool() { return reinterpret_cast<cudaMemPool_t>(&pool); }

}  // namespace

CUCO_BOTH(cudaMallocAsync, _ptsz, (void** out, size_t bytes, cudaStream_t stream), {
  return allocate_async(out, bytes, find_stream(stream, default_stream));
})
CUCO_BOTH(cudaMallocFromPoolAsync, _ptsz, (void** out, size_t bytes, cudaMemPool_t, cudaStream_t stream), {
  return allocate_async(out, bytes, find_stream(stream, default_stream));
})
CUCO_BOTH(cudaFreeAsync, _ptsz, (void* pointer, cudaStream_t stream), {
  return release_async(pointer, find_stream(stream, default_stream));
})

CUCO_API(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * out, int), {
  if (!out) return cudaErrorInvalidValue;
  *out = default_pool();
  return cudaSuccess;
})
CUCO_API(cudaDeviceGetMemPool, (cudaMemPool_t * out, int), {
  if (!out) return cudaErrorInvalidValue;
  *out = default_pool();
  return cudaSuccess;
})
CUCO_API(cudaMemPoolSetAttribute, (cudaMemPool_t, cudaMemPoolAttr, void* value), {
  return value ? cudaSuccess : cudaErrorInvalidValue;  // how much a pool keeps has no effect here
})
CUCO_API(cudaMemPoolTrimTo, (cudaMemPool_t, size_t), { return cudaSuccess; })

// ------------------------------------------------------------------------------------------------ host memory of others
CUCO_API(cudaHostRegister, (void* pointer, size_t bytes, unsigned), {
  if (!pointer || !bytes) return cudaErrorInvalidValue;
  const uint64_t start = address_of(pointer);
  auto next = registered().lower_bound(start);
  if (next != registered().end() && next->first < start + bytes) return cudaErrorHostMemoryAlreadyRegistered;
  if (next != registered().begin() && (--next)->first + next->second > start)
    return cudaErrorHostMemoryAlreadyRegistered;
  registered()[start] = bytes;
  return cudaSuccess;
})

CUCO_API(cudaHostUnregister, (void* pointer), {
  return registered().erase(address_of(pointer)) ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
})

CUCO_API(cudaHostGetDevicePointer, (void** out, void* pointer, unsigned), {
  if (!out) return cudaErrorInvalidValue;
  if (place_of(pointer) == Place::pageable) {
    if (!registered().contains(address_of(pointer))) return cudaErrorInvalidValue;
    unsupported("device access to host memory from cudaHostRegister; cudaHostAlloc's memory can be reached");
  }
  *out = pointer;
  return cudaSuccess;
})

CUCO_API(cudaHostGetFlags, (unsigned* flags, void* pointer), {
  if (!flags || place_of(pointer) != Place::pinned) return cudaErrorInvalidValue;
  *flags = cudaHostAllocMapped;
  return cudaSuccess;
})

// ------------------------------------------------------------------------------------------------ queries
CUCO_API(cudaMemGetInfo, (size_t * free_bytes, size_t* total), {
  if (!free_bytes || !total) return cudaErrorInvalidValue;
  *free_bytes = emu::memory().free_bytes(current_rank());
  *total = emu::settings().machine.memory;
  return cudaSuccess;
})

CUCO_API(cudaPointerGetAttributes, (cudaPointerAttributes * out, const void* pointer), {
  if (!out) return cudaErrorInvalidValue;
  *out = {};
  out->device = -2;  // as CUDA says for memory that it does not know
  if (place_of(pointer) == Place::pageable) {
    out->type = cudaMemoryTypeUnregistered;
    return cudaSuccess;
  }
  const bool pinned = place_of(pointer) == Place::pinned;
  out->type = pinned ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  out->device = device_of_rank(emu::memory().rank_of(address_of(pointer)));
  out->devicePointer = const_cast<void*>(pointer);
  out->hostPointer = pinned ? const_cast<void*>(pointer) : nullptr;
  return cudaSuccess;
})

CUCO_BOTH(cudaMemPrefetchAsync, _ptsz, (const void*, size_t, cudaMemLocation, unsigned, cudaStream_t stream), {
  return find_stream(stream, default_stream) ? cudaSuccess : cudaErrorInvalidResourceHandle;
})
CUCO_API(cudaMemAdvise, (const void*, size_t, cudaMemoryAdvise, cudaMemLocation), { return cudaSuccess; })

// cudaMemcpy*, cudaMemset*, and copies to and from symbols.
#include "api.h"
#include "copy.h"
#include "image.h"

using namespace cuco::cuda;

namespace {

Rectangle line(void* to, const void* from, size_t bytes) { return {to, bytes, from, bytes, bytes, 1}; }

// The address inside a symbol, or the error: 0 means there is no such symbol, or the range leaves it.
cudaError_t inside(const void* symbol, size_t offset, size_t bytes, char*& address) {
  const Variable* variable = find_variable(symbol);
  if (!variable) return cudaErrorInvalidSymbol;
  if (offset > variable->bytes || bytes > variable->bytes - offset) return cudaErrorInvalidValue;
  address = reinterpret_cast<char*>(variable->address) + offset;
  return cudaSuccess;
}

cudaError_t to_symbol(const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind,
                      Stream* stream, bool blocking, const char* call) {
  char* address = nullptr;
  if (const cudaError_t wrong = inside(symbol, offset, bytes, address)) return wrong;
  return copy(stream, line(address, from, bytes), kind, blocking, call);
}

cudaError_t from_symbol(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind, Stream* stream,
                        bool blocking, const char* call) {
  char* address = nullptr;
  if (const cudaError_t wrong = inside(symbol, offset, bytes, address)) return wrong;
  return copy(stream, line(to, address, bytes), kind, blocking, call);
}

}  // namespace

// clang-format off
CUCO_BOTH(cudaMemcpy, _ptds, (void* to, const void* from, size_t bytes, cudaMemcpyKind kind), {
  return copy(find_stream(nullptr, default_stream), line(to, from, bytes), kind, true, "cudaMemcpy");
})
CUCO_BOTH(cudaMemcpyAsync, _ptsz, (void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream), {
  return copy(find_stream(stream, default_stream), line(to, from, bytes), kind, false, "cudaMemcpyAsync");
})
CUCO_BOTH(cudaMemcpy2D, _ptds, (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t rows, cudaMemcpyKind kind), {
  return copy(find_stream(nullptr, default_stream), {to, to_pitch, from, from_pitch, width, rows}, kind, true, "cudaMemcpy2D");
})
CUCO_BOTH(cudaMemcpy2DAsync, _ptsz, (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t rows, cudaMemcpyKind kind, cudaStream_t stream), {
  return copy(find_stream(stream, default_stream), {to, to_pitch, from, from_pitch, width, rows}, kind, false, "cudaMemcpy2DAsync");
})
CUCO_API(cudaMemcpyPeer, (void* to, int, const void* from, int, size_t bytes), {
  return copy(find_stream(nullptr), line(to, from, bytes), cudaMemcpyDefault, false, "cudaMemcpyPeer");
})
CUCO_API(cudaMemcpyPeerAsync, (void* to, int, const void* from, int, size_t bytes, cudaStream_t stream), {
  return copy(find_stream(stream), line(to, from, bytes), cudaMemcpyDefault, false, "cudaMemcpyPeerAsync");
})

CUCO_BOTH(cudaMemset, _ptds, (void* to, int value, size_t bytes), {
  return fill(find_stream(nullptr, default_stream), {to, bytes, bytes, 1, static_cast<uint32_t>(value)}, "cudaMemset");
})
CUCO_BOTH(cudaMemsetAsync, _ptsz, (void* to, int value, size_t bytes, cudaStream_t stream), {
  return fill(find_stream(stream, default_stream), {to, bytes, bytes, 1, static_cast<uint32_t>(value)}, "cudaMemsetAsync");
})
CUCO_BOTH(cudaMemset2D, _ptds, (void* to, size_t pitch, int value, size_t width, size_t rows), {
  return fill(find_stream(nullptr, default_stream), {to, pitch, width, rows, static_cast<uint32_t>(value)}, "cudaMemset2D");
})
CUCO_BOTH(cudaMemset2DAsync, _ptsz, (void* to, size_t pitch, int value, size_t width, size_t rows, cudaStream_t stream), {
  return fill(find_stream(stream, default_stream), {to, pitch, width, rows, static_cast<uint32_t>(value)}, "cudaMemset2DAsync");
})

CUCO_BOTH(cudaMemcpyToSymbol, _ptds, (const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind), {
  return to_symbol(symbol, from, bytes, offset, kind, find_stream(nullptr, default_stream), true, "cudaMemcpyToSymbol");
})
CUCO_BOTH(cudaMemcpyToSymbolAsync, _ptsz, (const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind, cudaStream_t stream), {
  return to_symbol(symbol, from, bytes, offset, kind, find_stream(stream, default_stream), false, "cudaMemcpyToSymbolAsync");
})
CUCO_BOTH(cudaMemcpyFromSymbol, _ptds, (void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind), {
  return from_symbol(to, symbol, bytes, offset, kind, find_stream(nullptr, default_stream), true, "cudaMemcpyFromSymbol");
})
CUCO_BOTH(cudaMemcpyFromSymbolAsync, _ptsz, (void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind, cudaStream_t stream), {
  return from_symbol(to, symbol, bytes, offset, kind, find_stream(stream, default_stream), false, "cudaMemcpyFromSymbolAsync");
})
// clang-format on

CUCO_API(cudaGetSymbolAddress, (void** address, const void* symbol), {
  const Variable* variable = find_variable(symbol);
  if (!address) return cudaErrorInvalidValue;
  if (!variable) return cudaErrorInvalidSymbol;
  *address = reinterpret_cast<void*>(variable->address);
  return cudaSuccess;
})

CUCO_API(cudaGetSymbolSize, (size_t * bytes, const void* symbol), {
  const Variable* variable = find_variable(symbol);
  if (!bytes) return cudaErrorInvalidValue;
  if (!variable) return cudaErrorInvalidSymbol;
  *bytes = variable->bytes;
  return cudaSuccess;
})

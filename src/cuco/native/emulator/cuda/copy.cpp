#include "copy.h"

#include "host.h"

#include <cstring>

namespace cuco::cuda {
namespace {

// Nominal: a fixed cost and 100 GB/s.
double nominal_copy_us(size_t bytes) { return 3 + static_cast<double>(bytes) / 1e5; }

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

[[noreturn]] void out_of_bounds(const char* call, const char* side, uint64_t address, size_t bytes, int rank) {
  emu::Finding finding;
  finding.kind = "out-of-bounds";
  finding.rule = "copy-range";
  finding.rank = rank;
  finding.buffer = emu::memory().describe(address);
  finding.message = std::string(call) + " " + side + " " + std::to_string(bytes) + " bytes at " + finding.buffer +
                    ", which is not inside one live allocation";
  emu::fail(finding);
}

// When the stream executes it: allocations may have been freed since the call.
void check_lines(const char* call, const char* side, const void* start, size_t pitch, size_t width, size_t rows,
                 int rank) {
  if (place_of(start) == Place::pageable) return;
  for (size_t row = 0; row < rows; row++) {
    const uint64_t line = address_of(start) + row * pitch;
    if (!emu::memory().valid(line, width)) out_of_bounds(call, side, line, width, rank);
  }
}

void execute(const Rectangle& what, const char* call, int rank) {
  check_lines(call, "reads", what.from, what.from_pitch, what.width, what.rows, rank);
  check_lines(call, "writes", what.to, what.to_pitch, what.width, what.rows, rank);
  for (size_t row = 0; row < what.rows; row++)
    std::memmove(static_cast<char*>(what.to) + row * what.to_pitch,
                 static_cast<const char*>(what.from) + row * what.from_pitch, what.width);
}

// The error of a copy whose direction contradicts where its pointers lie.
cudaError_t check_direction(const Rectangle& what, cudaMemcpyKind kind) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (to_device && place_of(what.to) == Place::pageable) return cudaErrorInvalidValue;
  if (from_device && place_of(what.from) == Place::pageable) return cudaErrorInvalidValue;
  return cudaSuccess;
}

const char* direction(const Rectangle& what) {
  const bool to = place_of(what.to) == Place::device, from = place_of(what.from) == Place::device;
  if (!to) return from ? "d2h" : "h2h";
  return from ? "d2d" : "h2d";
}

void trace_copy(const Stream& stream, const Rectangle& what) {
  if (!emu::tracing()) return;
  Record record;
  record.put("stream", stream.number).put("bytes", what.bytes()).put("kind", direction(what));
  for (const uint64_t side : {address_of(what.from), address_of(what.to)}) {
    const int rank = emu::Memory::in_pinned(side) ? -1 : emu::memory().rank_of(side);   // host memory is nobody's
    if (rank >= 0 && rank != stream.rank()) {
      record.put("peer", rank);
      break;
    }
  }
  emu::trace_host(stream.rank(), "memcpy", std::move(record));
}

// The lines of pageable memory, read at the call.
std::shared_ptr<std::vector<char>> staged(const Rectangle& what) {
  auto bytes = std::make_shared<std::vector<char>>(what.bytes());
  for (size_t row = 0; row < what.rows; row++)
    std::memcpy(bytes->data() + row * what.width, static_cast<const char*>(what.from) + row * what.from_pitch, what.width);
  return bytes;
}

}  // namespace

Place place_of(const void* pointer) {
  const uint64_t address = address_of(pointer);
  if (emu::Memory::in_pinned(address)) return Place::pinned;
  return emu::memory().rank_of(address) >= 0 ? Place::device : Place::pageable;
}

cudaError_t copy(Stream* stream, const Rectangle& what, cudaMemcpyKind kind, bool blocking, const char* call) {
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!what.bytes()) return cudaSuccess;
  if (!what.to || !what.from) return cudaErrorInvalidValue;
  if (what.rows > 1 && (what.to_pitch < what.width || what.from_pitch < what.width)) return cudaErrorInvalidPitchValue;
  if (const cudaError_t wrong = check_direction(what, kind)) return wrong;
  if (blocking && stream->capture) return cudaErrorStreamCaptureUnsupported;

  const bool from_pageable = place_of(what.from) == Place::pageable, to_pageable = place_of(what.to) == Place::pageable;
  const bool waits = !stream->capture && (to_pageable || (blocking && (from_pageable || place_of(what.from) == Place::pinned ||
                                                                        place_of(what.to) == Place::pinned)));
  if (waits) check_may_synchronise(call);
  Rectangle real = what;
  std::shared_ptr<std::vector<char>> stage;
  if (from_pageable && !stream->capture) {
    stage = staged(what);
    real.from = stage->data();
    real.from_pitch = what.width;
  }
  const Work work = [real, stage, call](Stream& target) {
    trace_copy(target, real);
    push_call(target, call, [real, stage, call](Stream& s) { execute(real, call, s.rank()); }, nominal_copy_us(real.bytes()));
  };
  if (const cudaError_t wrong = submit(*stream, work, call)) return wrong;
  if (!waits) return cudaSuccess;
  emu::trace_host(stream->rank(), "stream_sync", Record().put("stream", stream->number));
  wait_for({stream->last()}, call);
  return cudaSuccess;
}

cudaError_t fill(Stream* stream, const Fill& what, const char* call) {
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!what.width || !what.rows) return cudaSuccess;
  if (!what.to || place_of(what.to) == Place::pageable) return cudaErrorInvalidValue;
  if (what.rows > 1 && what.pitch < what.width) return cudaErrorInvalidPitchValue;
  return submit(
      *stream,
      [what, call](Stream& target) {
        const size_t bytes = what.width * what.rows;
        if (emu::tracing())
          emu::trace_host(target.rank(), "memset", Record().put("stream", target.number).put("bytes", bytes));
        push_call(
            target, call,
            [what, call](Stream& s) {
              check_lines(call, "writes", what.to, what.pitch, what.width, what.rows, s.rank());
              for (size_t row = 0; row < what.rows; row++)
                std::memset(static_cast<char*>(what.to) + row * what.pitch, static_cast<int>(what.value), what.width);
            },
            nominal_copy_us(bytes));
      },
      call);
}

}  // namespace cuco::cuda

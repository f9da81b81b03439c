// Decoding of the 128-byte request descriptors (GFDs) that NCCL's own put(), putValue(), get(), signal() and flush()
// write into the proxy queues. The layout is NCCL's, checked in layout.cpp.
#pragma once

#include "headers.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace cuco::nccl {

enum class RequestKind { put, put_value, get, signal, flush };

struct Request {
  RequestKind kind = RequestKind::put;
  size_t bytes = 0;
  // put: source is local, destination remote. get: source is remote, destination local.
  uint64_t source_window = 0, source_offset = 0;
  uint64_t target_window = 0, target_offset = 0;
  uint64_t inline_value = 0;  // put_value: low `bytes` bytes
  bool has_signal = false;
  bool signal_is_va = false;  // a word in a window instead of an indexed signal
  bool strong = false;        // ordered after every earlier put of the same context to the same peer
  uint32_t signal_id = 0;
  uint64_t signal_window = 0, signal_offset = 0;
  uint64_t signal_add = 0;
  bool has_counter = false;
  uint32_t counter_id = 0;
};

// True when every 64-bit word of the descriptor carries its valid flag: the writer has finished.
bool gfd_complete(const ncclGinProxyGfd_t& gfd);

// Decodes a complete descriptor. On a malformed one returns nothing and says why.
std::optional<Request> decode_gfd(const ncclGinProxyGfd_t& gfd, std::string* why);

const char* request_name(RequestKind kind);

}  // namespace cuco::nccl

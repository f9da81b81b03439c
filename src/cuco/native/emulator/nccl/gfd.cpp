#include "gfd.h"

namespace cuco::nccl {
namespace {

// Destination, source, signal and counter fields shared by puts and indexed signals.
void decode_put(const ncclGinProxyGfd_t& gfd, unsigned op, Request& request) {
  if (op & ncclGinProxyOpWithInline) {
    request.kind = RequestKind::put_value;
    const auto& low = gfd.qword[ncclGinProxyGfdInlineLow].inlineLow;
    const auto& high = gfd.qword[ncclGinProxyGfdInlineHigh].inlineHigh;
    request.inline_value = static_cast<uint64_t>(low.inlineValLow) | static_cast<uint64_t>(low.inlineValLow2) << 32 |
                           static_cast<uint64_t>(high.inlineValHigh) << 48;
  } else {
    request.source_offset = gfd.qword[ncclGinProxyGfdSrcOff].srcOff.srcOff;
    request.source_window = gfd.qword[ncclGinProxyGfdSrcHandle].srcHandle.srcHandle;
    // signal() without data is a put of no bytes from no window
    if (request.source_window == 0 && request.bytes == 0) request.kind = RequestKind::signal;
  }
  if (op & ncclGinProxyOpWithCounter) {
    request.has_counter = true;
    request.counter_id = gfd.qword[ncclGinProxyGfdCompletion].completion.counterId;
  }
}

void decode_signal(const ncclGinProxyGfd_t& gfd, unsigned op, Request& request) {
  const auto& completion = gfd.qword[ncclGinProxyGfdCompletion].completion;
  const auto& rest = gfd.qword[ncclGinProxyGfdSignalVal].signalVal;
  request.has_signal = true;
  request.strong = rest.isStrongSignal != 0;
  request.signal_id = completion.signalId;
  request.signal_add = static_cast<uint64_t>(completion.signalValLow) |
                       static_cast<uint64_t>(rest.signalValLow2) << 16 |
                       static_cast<uint64_t>(rest.signalValHigh) << 32;
  if (op & ncclGinProxyOpWithSignalInc) request.signal_add = 1;
  if (op & ncclGinProxyOpVASignal) {
    request.kind = RequestKind::signal;
    request.signal_is_va = true;
    request.signal_offset = gfd.qword[ncclGinProxyGfdVASignalOff].vaSignalOff.vaSignalOff;
    request.signal_window = gfd.qword[ncclGinProxyGfdVASignalHandle].vaSignalHandle.vaSignalHandle;
  }
}

}  // namespace

bool gfd_complete(const ncclGinProxyGfd_t& gfd) {
  for (int i = 0; i < ncclGinProxyGfdQwords; i++)
    if (!gfd.qword[i].flag.v) return false;
  return true;
}

std::optional<Request> decode_gfd(const ncclGinProxyGfd_t& gfd, std::string* why) {
  const auto header = gfd.qword[ncclGinProxyGfdHeader].header;
  if (header.version != NCCL_GIN_PROXY_GFD_VERSION) {
    *why = "GIN descriptor version " + std::to_string(header.version) + ", this runtime reads version " +
           std::to_string(NCCL_GIN_PROXY_GFD_VERSION);
    return std::nullopt;
  }
  const unsigned op = gfd.qword[ncclGinProxyGfdHeaderExt].headerExt.op;
  constexpr unsigned signals = ncclGinProxyOpWithSignalInc | ncclGinProxyOpWithSignalAdd;
  Request request;
  request.bytes = header.size;
  if (op & ncclGinProxyOpFlush) {
    request.kind = RequestKind::flush;
    return request;
  }
  if (!(op & (ncclGinProxyOpPut | ncclGinProxyOpGet | signals))) {
    *why = "GIN descriptor with unknown operation bits " + std::to_string(op);
    return std::nullopt;
  }
  request.target_offset = gfd.qword[ncclGinProxyGfdDstOff].dstOff.dstOff;
  request.target_window = gfd.qword[ncclGinProxyGfdDstHandle].dstHandle.dstHandle;
  if (op & ncclGinProxyOpGet) {
    request.kind = RequestKind::get;
    request.source_offset = gfd.qword[ncclGinProxyGfdSrcOff].srcOff.srcOff;
    request.source_window = gfd.qword[ncclGinProxyGfdSrcHandle].srcHandle.srcHandle;
    return request;
  }
  if (op & ncclGinProxyOpPut) decode_put(gfd, op, request);
  if (op & signals) decode_signal(gfd, op, request);
  return request;
}

const char* request_name(RequestKind kind) {
  switch (kind) {
    case RequestKind::put: return "put";
    case RequestKind::put_value: return "putValue";
    case RequestKind::get: return "get";
    case RequestKind::signal: return "signal";
    case RequestKind::flush: return "flush";
  }
  return "request";
}

}  // namespace cuco::nccl

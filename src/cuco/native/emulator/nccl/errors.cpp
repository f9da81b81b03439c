#include "errors.h"

#include "bridge.h"

#include <cstdarg>
#include <cstdio>
#include <map>

namespace cuco::nccl {
namespace {

std::map<int, std::string>& messages() {
  static std::map<int, std::string> by_rank;
  return by_rank;
}

}  // namespace

ncclResult_t reject(ncclResult_t code, const char* format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  messages()[host_rank()] = text;
  return code;
}

const std::string& last_error(int host_rank) { return messages()[host_rank]; }

const char* result_name(ncclResult_t code) {
  static constexpr const char* names[ncclNumResults] = {
      "ncclSuccess",      "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError", "ncclInvalidArgument",
      "ncclInvalidUsage", "ncclRemoteError",        "ncclInProgress",  "ncclTimeout"};
  return code >= 0 && code < ncclNumResults ? names[code] : "unknown result";
}

}  // namespace cuco::nccl

// The wording is NCCL's, since programs print and compare it.
extern "C" const char* ncclGetErrorString(ncclResult_t code) {
  switch (code) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError: return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    case ncclTimeout: return "timeout";
    default: return "unknown result code";
  }
}

extern "C" const char* ncclGetLastError(ncclComm_t) {
  return cuco::nccl::last_error(cuco::nccl::host_rank()).c_str();
}

extern "C" ncclResult_t ncclGetVersion(int* version) {
  if (!version) return ncclInvalidArgument;
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

// nccl.h turns the deprecated name into an empty macro, the library exports it all the same.
#undef ncclResetDebugInit
#undef pncclResetDebugInit
extern "C" void ncclResetDebugInit();
extern "C" void ncclResetDebugInit() {}

CUCO_NCCL_PROFILED(ncclGetErrorString);
CUCO_NCCL_PROFILED(ncclGetLastError);
CUCO_NCCL_PROFILED(ncclGetVersion);
CUCO_NCCL_PROFILED(ncclResetDebugInit);

// Error codes and the text behind ncclGetLastError. Every refusal goes through reject(), so that a deadlock report can
// quote what a rank was told last.
#pragma once

#include "headers.h"

#include <string>

// pncclX is the same function as ncclX: profiling tools interpose the latter and call the former.
#define CUCO_NCCL_PROFILED(name) extern "C" decltype(name) p##name __attribute__((alias(#name)))

namespace cuco::nccl {

// Records the message as this rank's last error and returns the code.
[[gnu::format(printf, 2, 3)]] ncclResult_t reject(ncclResult_t code, const char* format, ...);

// The last message recorded for a rank's host code, "" when there was none.
const std::string& last_error(int host_rank);

// "ncclInvalidArgument" and so on.
const char* result_name(ncclResult_t code);

}  // namespace cuco::nccl

// ncclParam*: run-time parameters by name. NCCL 2.32.3 publishes seven keys, all about logging; the emulator has no
// NCCL log, so their values are what the environment says and change nothing.
#include "errors.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

struct ncclParamHandle {
  const char* key;
  const char* fallback;
};

namespace {

ncclParamHandle kParams[] = {
    {"NCCL_DEBUG_FILE", ""},           {"NCCL_DEBUG_TIMESTAMP_FORMAT", "[%F %T] "},
    {"NCCL_DEBUG_TIMESTAMP_LEVELS", "WARN,ATTN"}, {"NCCL_SET_THREAD_NAME", "FALSE"},
    {"NCCL_DEBUG_SUBSYS", "INIT,ENV,BOOTSTRAP"},  {"NCCL_DEBUG_LEVELS", "NONE"},
    {"NCCL_DEBUG", "<unknown>"},
};
constexpr int kCount = sizeof kParams / sizeof kParams[0];

const char* value_of(const ncclParamHandle& param) {
  const char* set = std::getenv(param.key);
  return set ? set : param.fallback;
}

ncclParamHandle* find(const char* key) {
  if (!key) return nullptr;
  for (ncclParamHandle& param : kParams)
    if (!std::strcmp(param.key, key)) return &param;
  return nullptr;
}

// Every published parameter is text or an enumeration: a typed read is a type error, as it is in NCCL.
ncclResult_t refuse_typed(ncclParamHandle_t, const void*) { return ncclInvalidArgument; }

}  // namespace

extern "C" {

ncclResult_t ncclParamBind(ncclParamHandle_t* out, const char* key) {
  ncclParamHandle* param = find(key);
  if (!out || !param) return ncclInvalidArgument;
  *out = param;
  return ncclSuccess;
}

ncclResult_t ncclParamGetI8(ncclParamHandle_t h, int8_t* out) { return refuse_typed(h, out); }
ncclResult_t ncclParamGetI16(ncclParamHandle_t h, int16_t* out) { return refuse_typed(h, out); }
ncclResult_t ncclParamGetI32(ncclParamHandle_t h, int32_t* out) { return refuse_typed(h, out); }
ncclResult_t ncclParamGetI64(ncclParamHandle_t h, int64_t* out) { return refuse_typed(h, out); }
ncclResult_t ncclParamGetU8(ncclParamHandle_t h, uint8_t* out) { return refuse_typed(h, out); }
ncclResult_t ncclParamGetU16(ncclParamHandle_t h, uint16_t* out) { return refuse_typed(h, out); }
ncclResult_t ncclParamGetU32(ncclParamHandle_t h, uint32_t* out) { return refuse_typed(h, out); }
ncclResult_t ncclParamGetU64(ncclParamHandle_t h, uint64_t* out) { return refuse_typed(h, out); }

ncclResult_t ncclParamGetStr(ncclParamHandle_t h, const char** out) {
  if (!h || !out) return ncclInvalidArgument;
  *out = value_of(*h);
  return ncclSuccess;
}

ncclResult_t ncclParamGet(ncclParamHandle_t h, void* out, int maxLen, int* len) {
  if (!h || !out || !len) return ncclInvalidArgument;
  const char* value = value_of(*h);
  const int bytes = static_cast<int>(std::strlen(value));
  if (maxLen < bytes) return ncclInvalidArgument;
  std::memcpy(out, value, static_cast<size_t>(bytes));
  *len = bytes;
  return ncclSuccess;
}

ncclResult_t ncclParamGetParameter(const char* key, const char** value, int* valueLen) {
  const ncclParamHandle* param = find(key);
  if (!param || !value || !valueLen) return ncclInvalidArgument;
  *value = value_of(*param);
  *valueLen = static_cast<int>(std::strlen(*value));
  return ncclSuccess;
}

ncclResult_t ncclParamGetAllParameterKeys(const char*** table, int* tableLen) {
  if (!table || !tableLen) return ncclInvalidArgument;
  static const char* keys[kCount];
  for (int i = 0; i < kCount; i++) keys[i] = kParams[i].key;
  *table = keys;
  *tableLen = kCount;
  return ncclSuccess;
}

void ncclParamDumpAll(void) {
  for (const ncclParamHandle& param : kParams) std::printf("%s=%s\n", param.key, value_of(param));
}

// There is no socket to encrypt between fibers of one process; NCCL accepts the call without a check as well.
ncclResult_t ncclSetEncryption(const ncclEncryptionConfig_t*) { return ncclSuccess; }

}  // extern "C"

CUCO_NCCL_PROFILED(ncclParamBind);
CUCO_NCCL_PROFILED(ncclParamGetI8);
CUCO_NCCL_PROFILED(ncclParamGetI16);
CUCO_NCCL_PROFILED(ncclParamGetI32);
CUCO_NCCL_PROFILED(ncclParamGetI64);
CUCO_NCCL_PROFILED(ncclParamGetU8);
CUCO_NCCL_PROFILED(ncclParamGetU16);
CUCO_NCCL_PROFILED(ncclParamGetU32);
CUCO_NCCL_PROFILED(ncclParamGetU64);
CUCO_NCCL_PROFILED(ncclParamGetStr);
CUCO_NCCL_PROFILED(ncclParamGet);
CUCO_NCCL_PROFILED(ncclParamGetParameter);
CUCO_NCCL_PROFILED(ncclParamGetAllParameterKeys);
CUCO_NCCL_PROFILED(ncclParamDumpAll);
CUCO_NCCL_PROFILED(ncclSetEncryption);

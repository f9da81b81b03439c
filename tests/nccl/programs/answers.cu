// Prints the emulator's answers to the calls that test_host_api.py puts to the real library, in the same order.
#include "check.h"

#include <nccl_device.h>

__global__ void nothing() {}

static int index_ = 0;
#define ANSWER(name, ...) std::printf("%d %s=%d\n", index_++, #name, static_cast<int>(name(__VA_ARGS__)))

extern "C" int rank_main(int, int, ncclUniqueId) {
  const ncclRedOp_t user = static_cast<ncclRedOp_t>(7), garbage = static_cast<ncclRedOp_t>(-1);
  ANSWER(ncclCommCount, nullptr, nullptr);
  ANSWER(ncclCommUserRank, nullptr, nullptr);
  ANSWER(ncclCommCuDevice, nullptr, nullptr);
  ANSWER(ncclCommDestroy, nullptr);
  ANSWER(ncclCommFinalize, nullptr);
  ANSWER(ncclCommAbort, nullptr);
  ANSWER(ncclCommRevoke, nullptr, 0);
  ANSWER(ncclCommGetAsyncError, nullptr, nullptr);
  ANSWER(ncclCommWindowRegister, nullptr, nullptr, 0, nullptr, 0);
  ANSWER(ncclCommWindowDeregister, nullptr, nullptr);
  ANSWER(ncclDevCommCreate, nullptr, nullptr, nullptr);
  ANSWER(ncclDevCommDestroy, nullptr, nullptr);
  ANSWER(ncclCommQueryProperties, nullptr, nullptr);
  ANSWER(ncclAllReduce, nullptr, nullptr, 1, ncclFloat, ncclSum, nullptr, nullptr);
  ANSWER(ncclGroupEnd);
  ANSWER(ncclGroupSimulateEnd, nullptr);
  ANSWER(ncclRedOpDestroy, ncclSum, nullptr);
  ANSWER(ncclRedOpDestroy, user, nullptr);
  ANSWER(ncclRedOpDestroy, garbage, nullptr);
  ANSWER(ncclGetLsaDevicePointer, nullptr, 0, 0, nullptr);
  ANSWER(ncclGetLsaMultimemDevicePointer, nullptr, 0, nullptr);
  ANSWER(ncclWinGetUserPtr, nullptr, nullptr, nullptr);
  ANSWER(ncclGetUniqueId, nullptr);
  ANSWER(ncclGetVersion, nullptr);
  ANSWER(ncclCommMemStats, nullptr, ncclStatGpuMemSuspend, nullptr);
  ANSWER(ncclCommSuspend, nullptr, 1);
  ANSWER(ncclCommResume, nullptr);
  ANSWER(ncclCommDeregister, nullptr, nullptr);
  ANSWER(ncclParamBind, nullptr, nullptr);
  ANSWER(ncclLLA2ACalcSlots, 10, 12);
  for (int code = -1; code < 11; code++)
    std::printf("error %d=%s\n", code, ncclGetErrorString(static_cast<ncclResult_t>(code)));
  return failures;
}

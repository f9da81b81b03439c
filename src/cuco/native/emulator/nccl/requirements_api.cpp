// Requirement builders of the device API: pure functions from counts to bytes and signals. The sizes follow from the
// addressing in NCCL's own headers (lsa_barrier__types.h, gin_barrier__funcs.h, ll_a2a__funcs.h).
#include "errors.h"

#include <cstring>

extern "C" {

// Per barrier: multicast epoch, unicast epoch, multicast inbox, and one unicast inbox per team rank, 4 bytes each.
ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam_t team, int nBarriers, ncclLsaBarrierHandle_t* outHandle,
                                             ncclDevResourceRequirements_t* outReq) {
  std::memset(outReq, 0, sizeof *outReq);
  outHandle->nBarriers = nBarriers;
  outReq->bufferSize = static_cast<size_t>(nBarriers) * static_cast<size_t>(3 + team.nRanks) * sizeof(uint32_t);
  outReq->bufferAlign = alignof(uint32_t);
  outReq->outBufferHandle = &outHandle->bufHandle;
  return ncclSuccess;
}

// Per barrier one signal for every team rank.
ncclResult_t ncclGinBarrierCreateRequirement(ncclComm_t, ncclTeam_t team, int nBarriers,
                                             ncclGinBarrierHandle_t* outHandle,
                                             ncclDevResourceRequirements_t* outReq) {
  std::memset(outReq, 0, sizeof *outReq);
  outReq->ginSignalCount = nBarriers * team.nRanks;
  outReq->outGinSignalStart = &outHandle->signal0;
  return ncclSuccess;
}

ncclResult_t ncclCftBarrierCreateRequirement(ncclTeam_t, int, ncclCftBarrierHandle_t*,
                                             ncclDevResourceRequirements_t*) {
  return cuco::nccl::reject(ncclInvalidUsage, "CFT barriers need sm_100 and CUDA 13.3; the emulator has no CFT.");
}

// A line of 16 bytes carries 8 bytes of data and its epoch twice.
int ncclLLA2ACalcSlots(int maxElts, int maxEltSize) { return maxElts * ((maxEltSize + 7) / 8); }

// Per block: one line of state and two epochs of slots.
ncclResult_t ncclLLA2ACreateRequirement(int nBlocks, int nSlots, ncclLLA2AHandle_t* outHandle,
                                        ncclDevResourceRequirements_t* outReq) {
  std::memset(outReq, 0, sizeof *outReq);
  outHandle->nSlots = static_cast<uint32_t>(nSlots);
  outReq->bufferSize = static_cast<size_t>(nBlocks) * static_cast<size_t>(1 + 2 * nSlots) * 16;
  outReq->bufferAlign = 16;
  outReq->outBufferHandle = &outHandle->bufHandle;
  return ncclSuccess;
}

}  // extern "C"

CUCO_NCCL_PROFILED(ncclLsaBarrierCreateRequirement);
CUCO_NCCL_PROFILED(ncclGinBarrierCreateRequirement);
CUCO_NCCL_PROFILED(ncclCftBarrierCreateRequirement);
CUCO_NCCL_PROFILED(ncclLLA2ACalcSlots);
CUCO_NCCL_PROFILED(ncclLLA2ACreateRequirement);

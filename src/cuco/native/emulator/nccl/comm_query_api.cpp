// Questions about a communicator: size, rank, device, asynchronous errors, properties, memory statistics, teams.
#include "birth.h"
#include "bridge.h"
#include "clique.h"
#include "engine.h"
#include "errors.h"

#include <cstdlib>

namespace cuco::nccl {

std::string member_name(const ncclComm& comm) {
  return "rank " + std::to_string(comm.rank) + " of communicator " +
         (comm.clique ? std::to_string(comm.clique->id) : std::string("(unfinished)"));
}

ncclResult_t check_pointer(const void* pointer, const char* call, const char* argument) {
  return pointer ? ncclSuccess : reject(ncclInvalidArgument, "%s : %s argument is NULL", call, argument);
}

ncclResult_t check_comm(const ncclComm* comm, const char* call) {
  if (ncclResult_t bad = check_pointer(comm, call, "comm")) return bad;
  if (comm->magic != kCommAlive) return reject(ncclInvalidArgument, "Error: corrupted comm object detected");
  if (!comm->clique)
    return reject(ncclInvalidArgument, "Attempt to use communicator before the previous operation returned ncclSuccess");
  return ncclSuccess;
}

ncclResult_t check_usable(const ncclComm* comm, const char* call) {
  if (ncclResult_t bad = check_comm(comm, call)) return bad;
  if (comm->revoked) return reject(ncclInvalidUsage, "%s: communicator was revoked", call);
  if (comm->finalized) return reject(ncclInvalidUsage, "%s: communicator was finalized", call);
  if (comm->suspended) return reject(ncclInvalidUsage, "%s: communicator is suspended", call);
  return ncclSuccess;
}

}  // namespace cuco::nccl

using namespace cuco::nccl;

namespace {

ncclTeam_t make_team(int ranks, int rank, int stride) {
  ncclTeam_t team;
  team.nRanks = ranks;
  team.rank = rank;
  team.stride = stride;
  return team;
}

bool gin_disabled() {
  const char* enable = std::getenv("NCCL_GIN_ENABLE");
  return enable && std::atoi(enable) == 0;
}

}  // namespace

namespace cuco::nccl {

ncclGinConnectionType_t gin_support() { return gin_disabled() ? NCCL_GIN_CONNECTION_NONE : run_shape().gin; }

}  // namespace cuco::nccl

extern "C" {

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  if (ncclResult_t bad = check_comm(comm, "CommCount")) return bad;
  if (ncclResult_t bad = check_pointer(count, "CommCount", "count")) return bad;
  *count = comm->ranks;
  return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  if (ncclResult_t bad = check_comm(comm, "CommCuDevice")) return bad;
  if (ncclResult_t bad = check_pointer(device, "CommCuDevice", "devid")) return bad;
  *device = comm->device;
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  if (ncclResult_t bad = check_comm(comm, "CommUserRank")) return bad;
  if (ncclResult_t bad = check_pointer(rank, "CommUserRank", "rank")) return bad;
  *rank = comm->rank;
  return ncclSuccess;
}

// A poll may take any time, so on a non-blocking communicator it waits for the pending operation instead of spinning.
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  if (ncclResult_t bad = check_pointer(comm, "ncclGetAsyncError", "comm")) return bad;
  if (comm->magic != kCommAlive) return reject(ncclInvalidArgument, "Error: corrupted comm object detected");
  if (ncclResult_t bad = check_pointer(asyncError, "ncclGetAsyncError", "asyncError")) return bad;
  if (comm->async == ncclInProgress)
    wait_until([comm] { return progress_background(comm); }, [comm] { return describe_background(comm); });
  *asyncError = comm->async;
  return ncclSuccess;
}

ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t* props) {
  if (ncclResult_t bad = check_comm(comm, "ncclCommQueryProperties")) return bad;
  if (ncclResult_t bad = check_pointer(props, "ncclCommQueryProperties", "props")) return bad;
  if (props->magic != NCCL_API_MAGIC)
    return reject(ncclInvalidUsage, "Cannot get communicator properties: ncclCommProperties_t argument must be "
                                    "initialized via NCCL_COMM_PROPERTIES_INITIALIZER");
  if (props->version != NCCL_VERSION_CODE)
    return reject(ncclInvalidUsage, "this application was compiled with NCCL version code %u, the emulator has %d",
                  props->version, NCCL_VERSION_CODE);
  const ncclGinConnectionType_t gin = gin_support();
  props->rank = comm->rank;
  props->nRanks = comm->ranks;
  props->cudaDev = props->nvmlDev = comm->device;
  props->deviceApiSupport = true;
  props->multimemSupport = false;
  props->ginType = gin == NCCL_GIN_CONNECTION_FULL ? NCCL_GIN_TYPE_PROXY : NCCL_GIN_TYPE_NONE;
  props->railedGinType = gin != NCCL_GIN_CONNECTION_NONE ? NCCL_GIN_TYPE_PROXY : NCCL_GIN_TYPE_NONE;
  props->nLsaTeams = comm->ranks / comm->clique->lsa_ranks;
  props->hostRmaSupport = true;
  props->commHash = comm->clique->hash;
  props->ginMinStride = gin == NCCL_GIN_CONNECTION_RAIL ? comm->clique->lsa_ranks : 1;
  props->ginConnectionType = gin;
  for (bool& supported : props->ginSupport) supported = false;
  props->ginSupport[NCCL_GIN_TYPE_PROXY] = gin != NCCL_GIN_CONNECTION_NONE;
  props->devCommRuntimeVersionSize = sizeof(ncclDevComm);
  props->cftSupport = props->cftMulticastSupport = props->cftCountedSupport = false;
  return ncclSuccess;
}

// Everything the emulated NCCL allocates is host memory of the process, so nothing counts as GPU memory.
ncclResult_t ncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value) {
  if (ncclResult_t bad = check_comm(comm, "ncclCommMemStats")) return bad;
  if (ncclResult_t bad = check_pointer(value, "ncclCommMemStats", "value")) return bad;
  if (stat < ncclStatGpuMemSuspend || stat > ncclStatGpuMemTotal)
    return reject(ncclInvalidArgument, "ncclCommMemStats : unknown statistic %d", static_cast<int>(stat));
  *value = stat == ncclStatGpuMemSuspended && comm->suspended ? 1 : 0;
  return ncclSuccess;
}

ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags) {
  if (ncclResult_t bad = check_usable(comm, "ncclCommSuspend")) return bad;
  if (flags != NCCL_SUSPEND_MEM) return reject(ncclInvalidArgument, "ncclCommSuspend : unknown flags %d", flags);
  if (comm->open_launches > 0)
    return reject(ncclInvalidUsage, "ncclCommSuspend : operations are still in progress on the communicator");
  comm->suspended = true;
  return ncclSuccess;
}

ncclResult_t ncclCommResume(ncclComm_t comm) {
  if (ncclResult_t bad = check_comm(comm, "ncclCommResume")) return bad;
  if (!comm->suspended) return reject(ncclInvalidUsage, "ncclCommResume : the communicator is not suspended");
  comm->suspended = false;
  return ncclSuccess;
}

ncclTeam_t ncclTeamWorld(ncclComm_t comm) { return make_team(comm->ranks, comm->rank, 1); }

ncclTeam_t ncclTeamLsa(ncclComm_t comm) {
  return make_team(comm->clique->lsa_ranks, comm->clique->lsa_rank(comm->rank), 1);
}

ncclTeam_t ncclTeamRail(ncclComm_t comm) {
  const int lsa = comm->clique->lsa_ranks;
  return make_team(comm->ranks / lsa, comm->rank / lsa, lsa);
}

// No CFT: the team of one.
ncclTeam_t ncclTeamCft(ncclComm_t, ncclCftTeamMode_t) { return make_team(1, 0, 1); }
ncclTeam_t ncclTeamCftMultimem(ncclComm_t) { return make_team(1, 0, 1); }

int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank) {
  return comm->rank + (rank - team.rank) * team.stride;
}

int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank) {
  return comm->clique->lsa_rank(comm->rank) + (rank - team.rank) * team.stride;
}

}  // extern "C"

CUCO_NCCL_PROFILED(ncclCommCount);
CUCO_NCCL_PROFILED(ncclCommCuDevice);
CUCO_NCCL_PROFILED(ncclCommUserRank);
CUCO_NCCL_PROFILED(ncclCommGetAsyncError);
CUCO_NCCL_PROFILED(ncclCommQueryProperties);
CUCO_NCCL_PROFILED(ncclCommMemStats);
CUCO_NCCL_PROFILED(ncclCommSuspend);
CUCO_NCCL_PROFILED(ncclCommResume);
CUCO_NCCL_PROFILED(ncclTeamWorld);
CUCO_NCCL_PROFILED(ncclTeamLsa);
CUCO_NCCL_PROFILED(ncclTeamRail);
CUCO_NCCL_PROFILED(ncclTeamCft);
CUCO_NCCL_PROFILED(ncclTeamCftMultimem);
CUCO_NCCL_PROFILED(ncclTeamRankToWorld);
CUCO_NCCL_PROFILED(ncclTeamRankToLsa);

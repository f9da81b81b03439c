#include "resources.h"

#include <algorithm>
#include <cstdint>

namespace cuco::nccl {
namespace {

constexpr size_t kHandleUnit = 128;  // an ncclDevResourceHandle counts 128-byte units
constexpr int kMaxContexts = 64;

size_t align_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

bool list_wants_gin(const ncclDevResourceRequirements* node) {
  for (; node; node = node->next)
    if (node->ginSignalCount > 0 || node->ginCounterCount > 0) return true;
  return false;
}

bool wants_gin(const ncclDevCommRequirements& reqs) {
  return reqs.barrierCount > 0 || reqs.railGinBarrierCount > 0 || reqs.worldGinBarrierCount > 0 ||
         reqs.ginSignalCount > 0 || reqs.ginCounterCount > 0 || list_wants_gin(reqs.resourceRequirementsList);
}

ncclGinConnectionType_t connection(const ncclDevCommRequirements& reqs) {
  return reqs.ginForceEnable ? NCCL_GIN_CONNECTION_FULL : reqs.ginConnectionType;
}

Refusal invalid(std::string reason) { return {ncclInvalidArgument, std::move(reason)}; }
Refusal misuse(std::string reason) { return {ncclInvalidUsage, std::move(reason)}; }

Refusal check_counts(const ncclDevCommRequirements& reqs) {
  const int counts[] = {reqs.barrierCount,       reqs.lsaBarrierCount,   reqs.railGinBarrierCount,
                        reqs.worldGinBarrierCount, reqs.lsaLLA2ABlockCount, reqs.lsaLLA2ASlotCount,
                        reqs.ginSignalCount,     reqs.ginCounterCount,   reqs.ginContextCount};
  for (int count : counts)
    if (count < 0) return invalid("A resource count in ncclDevCommRequirements_t is negative.");
  return {};
}

Refusal check_stride(const ncclDevCommRequirements& reqs, const TeamShape& shape) {
  const int stride = reqs.ginCustomStride, least = shape.gin == NCCL_GIN_CONNECTION_RAIL ? shape.lsa_ranks : 1;
  if (stride == 0)
    return invalid("Cannot create DevComm with a GIN rank stride of 0. To disable GIN, set reqs->ginConnectionType to "
                   "NCCL_GIN_CONNECTION_NONE.");
  if (stride > shape.lsa_ranks)
    return invalid("Cannot create DevComm with a GIN rank stride " + std::to_string(stride) +
                   " greater than the rail team stride " + std::to_string(shape.lsa_ranks));
  if (stride < 0 || stride % least != 0 || shape.lsa_ranks % stride != 0)
    return invalid("Cannot create DevComm with the requested GIN rank stride " + std::to_string(stride) +
                   ", this comm only supports strides that are multiples of " + std::to_string(least) +
                   " and divide the LSA team");
  if (stride > 1 && reqs.worldGinBarrierCount > 0)
    return invalid("Cannot create worldGinBarrier with a GIN rank stride above 1.");
  return {};
}

Refusal check_gin(const ncclDevCommRequirements& reqs, const TeamShape& shape) {
  const ncclGinConnectionType_t type = connection(reqs);
  if (type == NCCL_GIN_CONNECTION_NONE) {
    if (wants_gin(reqs)) return invalid("User requested GIN resources but did not request GIN to be enabled!");
    return {};
  }
  if (type != NCCL_GIN_CONNECTION_FULL && type != NCCL_GIN_CONNECTION_RAIL &&
      type != NCCL_GIN_CONNECTION_CUSTOM_STRIDE)
    return invalid("Unknown GIN connection type " + std::to_string(static_cast<int>(type)) + ".");
  if (shape.gin == NCCL_GIN_CONNECTION_NONE)
    return invalid("User requested GIN but not all ranks in the communicator support GIN");
  if (type == NCCL_GIN_CONNECTION_FULL && shape.gin == NCCL_GIN_CONNECTION_RAIL)
    return invalid("User requested GIN connection type NCCL_GIN_CONNECTION_FULL but the communicator supports only "
                   "NCCL_GIN_CONNECTION_RAIL");
  if (type == NCCL_GIN_CONNECTION_RAIL && reqs.worldGinBarrierCount > 0)
    return invalid("Cannot create worldGinBarrier with NCCL_GIN_CONNECTION_RAIL.");
  if (type == NCCL_GIN_CONNECTION_CUSTOM_STRIDE)
    if (Refusal r = check_stride(reqs, shape); r.code != ncclSuccess) return r;
  if (reqs.ginType != NCCL_GIN_TYPE_NONE && reqs.ginType != NCCL_GIN_TYPE_PROXY)
    return invalid("GIN type " + std::to_string(static_cast<int>(reqs.ginType)) +
                   " is not available, this network has NCCL_GIN_TYPE_PROXY.");
  if (reqs.ginQueueDepth != 0) return invalid("GIN PROXY does not support a custom ginQueueDepth.");
  if (reqs.ginContextCount > kMaxContexts)
    return invalid("ginContextCount " + std::to_string(reqs.ginContextCount) + " is above the limit of " +
                   std::to_string(kMaxContexts) + ".");
  return {};
}

ncclDevResourceRequirements lsa_request(int team_ranks, int count, ncclLsaBarrierHandle_t* out) {
  ncclDevResourceRequirements node{};
  ncclLsaBarrierCreateRequirement(ncclTeam_t{team_ranks, 0, 1}, count, out, &node);
  return node;
}

ncclDevResourceRequirements gin_request(int team_ranks, int count, ncclGinBarrierHandle_t* out) {
  ncclDevResourceRequirements node{};
  node.ginSignalCount = count * team_ranks;
  node.outGinSignalStart = &out->signal0;
  return node;
}

int stride_of(const ncclDevCommRequirements& reqs, const TeamShape& shape) {
  switch (connection(reqs)) {
    case NCCL_GIN_CONNECTION_RAIL: return shape.lsa_ranks;
    case NCCL_GIN_CONNECTION_CUSTOM_STRIDE: return reqs.ginCustomStride;
    default: return 1;
  }
}

// One node of a list: reserves its bytes, signals and counters and reports where they start.
void place(ncclDevResourceRequirements& node, ResourcePlan& plan) {
  plan.buffer_bytes = align_up(plan.buffer_bytes, std::max(kHandleUnit, node.bufferAlign));
  if (node.outBufferHandle) *node.outBufferHandle = static_cast<ncclDevResourceHandle_t>(plan.buffer_bytes / kHandleUnit);
  if (node.outGinSignalStart) *node.outGinSignalStart = static_cast<ncclGinSignal_t>(plan.signals);
  if (node.outGinCounterStart) *node.outGinCounterStart = static_cast<ncclGinCounter_t>(plan.counters);
  plan.buffer_bytes += node.bufferSize;
  plan.signals += node.ginSignalCount;
  plan.counters += node.ginCounterCount;
}

}  // namespace

Refusal check_requirements(const ncclDevCommRequirements& reqs, const TeamShape& shape) {
  if (reqs.magic != NCCL_API_MAGIC)
    return misuse("Cannot create device communicator: ncclDevCommRequirements_t argument must be initialized via "
                  "NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER");
  if (reqs.version > NCCL_VERSION_CODE)
    return misuse("NCCL library is too old. This application was compiled with NCCL version code " +
                  std::to_string(reqs.version) + ", the emulator has " + std::to_string(NCCL_VERSION_CODE) + ".");
  if (reqs.version < NCCL_VERSION_CODE)
    return misuse("The emulator runs device code of NCCL version code " + std::to_string(NCCL_VERSION_CODE) +
                  " only, this one was compiled with " + std::to_string(reqs.version) + ".");
  if (Refusal r = check_counts(reqs); r.code != ncclSuccess) return r;
  if (reqs.lsaMultimem) return invalid("Multicast support requested for team but none available on system.");
  for (const ncclTeamRequirements* t = reqs.teamRequirementsList; t; t = t->next)
    if (t->multimem) return invalid("Multicast support requested for team but none available on system.");
  if (reqs.cftCaps != NCCL_CFT_NONE || reqs.cftBarrierCount > 0)
    return invalid("CFT requested but none available on system (it needs sm_100 and CUDA 13.3).");
  return check_gin(reqs, shape);
}

ResourcePlan plan_resources(const ncclDevCommRequirements& reqs, const TeamShape& shape, ncclDevComm* comm) {
  ResourcePlan plan;
  plan.gin = connection(reqs) != NCCL_GIN_CONNECTION_NONE;
  plan.contexts = plan.gin ? std::max(1, reqs.ginContextCount) : 0;
  plan.context_stride = stride_of(reqs, shape);
  plan.connection_stride = shape.gin == NCCL_GIN_CONNECTION_RAIL ? shape.lsa_ranks : 1;
  plan.signals = reqs.ginSignalCount;
  plan.counters = reqs.ginCounterCount;

  const int rails = shape.ranks / shape.lsa_ranks;
  const int dense = plan.gin ? shape.ranks / plan.context_stride : 0;
  // On rail connections the dense barrier would be the rail barrier again, so NCCL gives it no signals.
  const bool has_dense = plan.gin && plan.context_stride != shape.lsa_ranks;
  // NCCL's own order: its barriers before the user's list.
  ncclDevResourceRequirements own[] = {
      gin_request(shape.ranks, reqs.worldGinBarrierCount, &comm->worldGinBarrier),
      gin_request(rails, reqs.railGinBarrierCount, &comm->railGinBarrier),
      lsa_request(shape.lsa_ranks, reqs.lsaBarrierCount, &comm->lsaBarrier),
      gin_request(dense, has_dense ? reqs.barrierCount : 0, &comm->hybridDenseGinBarrier),
      gin_request(rails, reqs.barrierCount, &comm->hybridRailGinBarrier),
      lsa_request(shape.lsa_ranks, reqs.barrierCount, &comm->hybridLsaBarrier),
  };
  for (ncclDevResourceRequirements& node : own) place(node, plan);

  // lsaLLA2A*: buffers for one session per block; NCCL keeps no handle for them in ncclDevComm, users take theirs
  // from ncclLLA2ACreateRequirement, so the counts only reserve space.
  if (reqs.lsaLLA2ABlockCount > 0) {
    ncclDevResourceRequirements node{};
    ncclLLA2AHandle_t unused{};
    ncclLLA2ACreateRequirement(reqs.lsaLLA2ABlockCount, reqs.lsaLLA2ASlotCount, &unused, &node);
    place(node, plan);
  }
  for (ncclDevResourceRequirements* node = reqs.resourceRequirementsList; node; node = node->next) place(*node, plan);

  plan.buffer_bytes = align_up(plan.buffer_bytes, kHandleUnit);
  plan.shadow_offset = plan.buffer_bytes;
  plan.buffer_bytes += static_cast<size_t>(plan.contexts) * plan.signals * sizeof(uint64_t);
  return plan;
}

}  // namespace cuco::nccl

#include "config.h"

#include <cstddef>
#include <cstring>

namespace cuco::nccl {
namespace {

constexpr int kMaxChannels = 64;  // NCCL's MAXCHANNELS
constexpr int kUnset = NCCL_CONFIG_UNDEF_INT;

struct Rule {
  int ncclConfig_t::*field;
  const char* name;
  int low, high;
};

// Every integer of the structure with a closed range; a value outside is ncclInvalidArgument.
constexpr Rule kRules[] = {
    {&ncclConfig_t::blocking, "blocking", 0, 1},
    {&ncclConfig_t::cgaClusterSize, "cgaClusterSize", 0, INT_MAX},
    {&ncclConfig_t::minCTAs, "minCTAs", 1, INT_MAX},
    {&ncclConfig_t::maxCTAs, "maxCTAs", 1, INT_MAX},
    {&ncclConfig_t::splitShare, "splitShare", 0, 1},
    {&ncclConfig_t::collnetEnable, "collnetEnable", 0, 1},
    {&ncclConfig_t::CTAPolicy, "CTAPolicy", 0, NCCL_CTA_POLICY_EFFICIENCY | NCCL_CTA_POLICY_ZERO},
    {&ncclConfig_t::shrinkShare, "shrinkShare", 0, 1},
    {&ncclConfig_t::nvlsCTAs, "nvlsCTAs", 1, INT_MAX},
    {&ncclConfig_t::nChannelsPerNetPeer, "nChannelsPerNetPeer", 1, kMaxChannels},
    {&ncclConfig_t::nvlinkCentricSched, "nvlinkCentricSched", 0, 1},
    {&ncclConfig_t::graphUsageMode, "graphUsageMode", 0, 2},
    {&ncclConfig_t::numRmaCtx, "numRmaCtx", 0, INT_MAX},
    {&ncclConfig_t::maxP2pPeers, "maxP2pPeers", 1, INT_MAX},
    {&ncclConfig_t::graphStreamOrdering, "graphStreamOrdering", 0, 1},
};

// Copies as many bytes as the caller's version of a structure has, over the defaults of ours.
template <class T>
T widen(const T* from, T defaults) {
  size_t size = 0;
  std::memcpy(&size, from, sizeof size);
  std::memcpy(static_cast<void*>(&defaults), from, size < sizeof(T) ? size : sizeof(T));
  return defaults;
}

}  // namespace

std::string read_config(const ncclConfig_t* config, CommConfig* out) {
  *out = CommConfig{};
  if (!config) return "";
  ncclConfig_t defaults = NCCL_CONFIG_INITIALIZER;
  const ncclConfig_t value = widen(config, defaults);
  if (value.magic != NCCL_API_MAGIC) return "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER";
  for (const Rule& rule : kRules) {
    const int got = value.*rule.field;
    if (got != kUnset && (got < rule.low || got > rule.high))
      return std::string("Invalid config ") + rule.name + " attribute value " + std::to_string(got);
  }
  if (value.minCTAs != kUnset && value.maxCTAs != kUnset && value.minCTAs > value.maxCTAs)
    return "Invalid config min/max channels attribute value " + std::to_string(value.minCTAs) + "/" +
           std::to_string(value.maxCTAs);
  if (value.graphStreamOrdering == 0 && value.graphUsageMode == 2)
    return "graphStreamOrdering=0 with graphUsageMode=2 (graph mixing) is not supported";
  if (value.blocking != kUnset) out->blocking = value.blocking != 0;
  if (value.maxCTAs != kUnset) out->max_ctas = value.maxCTAs < kMaxChannels ? value.maxCTAs : kMaxChannels;
  if (value.CTAPolicy != kUnset) out->cta_policy = value.CTAPolicy;
  if (value.numRmaCtx != kUnset) out->rma_contexts = value.numRmaCtx;
  if (value.numRmaSig != kUnset && value.numRmaSig >= 0) out->rma_signals = value.numRmaSig;
  return "";
}

std::string check_call_config(const ncclCollConfig_t* config, const CommConfig& comm) {
  if (!config) return "";
  ncclCollConfig_t defaults = NCCL_COLLCONFIG_INITIALIZER;
  const ncclCollConfig_t value = widen(config, defaults);
  if (value.magic != NCCL_API_MAGIC)
    return "ncclCollConfig_t argument not initialized via NCCL_COLLCONFIG_INITIALIZER";
  if (value.minCTAs != kUnset && value.minCTAs <= 0)
    return "Invalid collective config minCTAs " + std::to_string(value.minCTAs);
  if (value.maxCTAs != kUnset && (value.maxCTAs <= 0 || value.maxCTAs > comm.max_ctas))
    return "Invalid collective config maxCTAs " + std::to_string(value.maxCTAs) + ", the communicator's limit is " +
           std::to_string(comm.max_ctas);
  if (value.minCTAs != kUnset && value.maxCTAs != kUnset && value.minCTAs > value.maxCTAs)
    return "Invalid collective config minCTAs/maxCTAs " + std::to_string(value.minCTAs) + "/" +
           std::to_string(value.maxCTAs);
  return "";
}

}  // namespace cuco::nccl

// ncclDevCommCreate and ncclDevCommDestroy: fills the real ncclDevComm with resources of the emulator.
#include "bridge.h"
#include "errors.h"
#include "gin_domain.h"
#include "group.h"
#include "meeting.h"
#include "nic.h"
#include "resources.h"
#include "windows.h"

#include <cstring>
#include <map>

using namespace cuco::nccl;

namespace cuco::nccl {
ncclGinConnectionType_t gin_support();
}

namespace {

struct DevCommOffer {
  ncclDevCommRequirements reqs;
  ncclDevComm* out;
};

// What one device communicator holds; found again at its destruction by the resource window or GIN handle.
struct DevCommRecord {
  Window* resources = nullptr;
  GinDomain* gin = nullptr;
  int destroyed = 0;
};

std::map<const void*, DevCommRecord*>& records() {
  static std::map<const void*, DevCommRecord*> known;
  return known;
}

TeamShape shape_of(const ncclComm& comm, int rank) {
  const Clique& clique = *comm.clique;
  return {rank, clique.size(), clique.lsa_rank(rank), clique.lsa_ranks, gin_support()};
}

// Fields that do not depend on allocations.
void fill_identity(ncclDevComm& out, const DevCommOffer& offer, const TeamShape& shape, const ResourcePlan& plan) {
  out.magic = NCCL_API_MAGIC;
  out.version = offer.reqs.version;
  out.rank = shape.rank;
  out.nRanks = shape.ranks;
  out.nRanks_rcp32 = nccl::utility::idivRcp32(static_cast<uint32_t>(shape.ranks));
  out.lsaRank = shape.lsa_rank;
  out.lsaSize = shape.lsa_ranks;
  out.lsaSize_rcp32 = nccl::utility::idivRcp32(static_cast<uint32_t>(shape.lsa_ranks));
  out.ginContextStride = plan.context_stride;
  out.ginConnectionStride = plan.connection_stride;
  out.ginConnectionStride_rcp32 = nccl::utility::idivRcp32(static_cast<uint32_t>(plan.connection_stride));
  out.ginStrongLegacySignals = offer.reqs.ginStrongSignalsRequired;
  out.cftSize = out.cftMultimemSize = 1;
  out.cftMultimemSize_rcp32 = nccl::utility::idivRcp32(1);
}

// Names the inboxes of one barrier handle; epochs are ordinary memory.
void name_inboxes(char* buffer, const ncclLsaBarrierHandle& handle, int team, const char* what) {
  const int count = handle.nBarriers;
  if (count == 0) return;
  auto* state = reinterpret_cast<uint32_t*>(buffer + static_cast<size_t>(handle.bufHandle) * 128);
  name_words(state + 3 * count, static_cast<size_t>(count) * static_cast<size_t>(team), sizeof(uint32_t),
             WordUse::plain, [team, what](size_t i) {
               const size_t ranks = static_cast<size_t>(team);
               return std::string(what) + " " + std::to_string(i / ranks) + " inbox from LSA rank " +
                      std::to_string(i % ranks);
             });
}

// One resource buffer per rank, made a window of the communicator.
Window* make_resources(Clique& clique, const std::vector<ncclDevComm>& drafts, size_t bytes) {
  if (bytes == 0) return nullptr;
  const size_t rounded = (bytes + 4095) / 4096 * 4096;
  std::vector<char*> bases;
  for (int r = 0; r < clique.size(); r++) {
    bases.push_back(static_cast<char*>(internal_alloc(clique.arenas[static_cast<size_t>(r)], rounded, "NCCL resources", 4096)));
    name_inboxes(bases.back(), drafts[static_cast<size_t>(r)].lsaBarrier, clique.lsa_ranks, "LSA barrier");
    name_inboxes(bases.back(), drafts[static_cast<size_t>(r)].hybridLsaBarrier, clique.lsa_ranks, "hybrid barrier");
  }
  return &clique.spaces->add(bases, std::vector<size_t>(bases.size(), rounded), NCCL_WIN_DEFAULT, "NCCL resources");
}

void attach_resources(ncclDevComm& out, const Window& window, int rank, const ResourcePlan& plan) {
  ncclWindow_vidmem* handle = window.handles[static_cast<size_t>(rank)];
  out.resourceWindow = handle;
  out.resourceWindow_inlined.lsaFlatBase = handle->lsaFlatBase;
  out.resourceWindow_inlined.stride4G = handle->stride4G;
  out.resourceWindow_inlined.mcOffset4K = handle->mcOffset4K;
  if (plan.gin) out.ginSignalShadows = reinterpret_cast<uint64_t*>(window.bases[static_cast<size_t>(rank)] + plan.shadow_offset);
}

void attach_gin(ncclDevComm& out, const GinDomain& gin, int rank) {
  out.ginConnectionCount = 1;
  out.ginNetDeviceTypes[0] = NCCL_NET_DEVICE_GIN_PROXY;
  out.ginHandles[0] = gin.gpu[static_cast<size_t>(rank)];
  out.ginSignalCount = gin.signals;
  out.ginCounterCount = gin.counters;
  out.ginContextCount = static_cast<uint32_t>(gin.contexts);
}

void check_same_plan(const ncclComm& comm, const ResourcePlan& plan, const ResourcePlan& first, int rank) {
  if (plan.buffer_bytes == first.buffer_bytes && plan.signals == first.signals && plan.counters == first.counters &&
      plan.contexts == first.contexts && plan.context_stride == first.context_stride)
    return;
  stop_run({"deadlock", "nccl-requirements-differ", comm.clique->hosts[static_cast<size_t>(rank)],
            "ncclDevCommCreate on communicator " + std::to_string(comm.clique->id) + ": rank " + std::to_string(rank) +
                " asks for other resources than rank 0 (bytes " + std::to_string(plan.buffer_bytes) + " and " +
                std::to_string(first.buffer_bytes) + ", signals " + std::to_string(plan.signals) + " and " +
                std::to_string(first.signals) + ", contexts " + std::to_string(plan.contexts) + " and " +
                std::to_string(first.contexts) + ")"});
}

std::shared_ptr<void> combine_devcomm(ncclComm& comm, Meeting& meeting) {
  Clique& clique = *comm.clique;
  std::vector<ncclDevComm> drafts(static_cast<size_t>(clique.size()));
  std::vector<ResourcePlan> plans;
  for (int r = 0; r < clique.size(); r++) {
    const auto& offer = meeting.offer<DevCommOffer>(r);
    ncclDevComm& draft = drafts[static_cast<size_t>(r)];
    std::memset(static_cast<void*>(&draft), 0, sizeof draft);
    const TeamShape shape = shape_of(comm, r);
    plans.push_back(plan_resources(offer.reqs, shape, &draft));
    check_same_plan(comm, plans.back(), plans.front(), r);
    fill_identity(draft, offer, shape, plans.back());
  }
  auto* record = new DevCommRecord;
  record->resources = make_resources(clique, drafts, plans.front().buffer_bytes);
  if (plans.front().gin)
    record->gin = &make_gin_domain(clique, plans.front(), meeting.offer<DevCommOffer>(0).reqs, drafts.front(),
                                   static_cast<int>(records().size()));
  for (int r = 0; r < clique.size(); r++) {
    ncclDevComm& draft = drafts[static_cast<size_t>(r)];
    draft.windowTable = clique.spaces->table(r);
    if (record->resources) attach_resources(draft, *record->resources, r, plans.front());
    if (record->gin) attach_gin(draft, *record->gin, r);
    if (draft.resourceWindow) records()[draft.resourceWindow] = record;
    if (record->gin) records()[draft.ginHandles[0]] = record;
    *meeting.offer<DevCommOffer>(r).out = draft;
  }
  return nullptr;
}

class DevCommJob : public Job {
 public:
  DevCommJob(ncclComm& comm, const ncclDevCommRequirements& reqs, ncclDevComm* out)
      : comm_(comm), offer_(std::make_shared<DevCommOffer>(DevCommOffer{reqs, out})) {}

  ncclComm* comm() override { return &comm_; }
  void arrive() override {
    meeting_ = join_meeting(comm_, "ncclDevCommCreate", offer_,
                            [this](Meeting& meeting) { return combine_devcomm(comm_, meeting); });
  }
  bool ready() override { return meeting_->complete; }
  ncclResult_t finish() override {
    leave_meeting(comm_, *meeting_);
    return ncclSuccess;
  }
  std::string describe() override { return describe_meeting(comm_, *meeting_); }

 private:
  ncclComm& comm_;
  std::shared_ptr<DevCommOffer> offer_;
  std::shared_ptr<Meeting> meeting_;
};

}  // namespace

extern "C" {

ncclResult_t ncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t* reqs, ncclDevComm_t* outDevComm) {
  api_called("ncclDevCommCreate");
  if (ncclResult_t bad = check_usable(comm, "ncclDevCommCreate")) return note_in_group(bad);
  if (ncclResult_t bad = check_pointer(reqs, "ncclDevCommCreate", "reqs")) return note_in_group(bad);
  if (ncclResult_t bad = check_pointer(outDevComm, "ncclDevCommCreate", "outDevComm")) return note_in_group(bad);
  const Refusal refusal = check_requirements(*reqs, shape_of(*comm, comm->rank));
  if (refusal.code != ncclSuccess) return note_in_group(reject(refusal.code, "%s", refusal.reason.c_str()));
  return submit(std::make_unique<DevCommJob>(*comm, *reqs, outDevComm));
}

ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t* devComm) {
  api_called("ncclDevCommDestroy");
  if (ncclResult_t bad = check_comm(comm, "ncclDevCommDestroy")) return bad;
  if (ncclResult_t bad = check_pointer(devComm, "ncclDevCommDestroy", "devComm")) return bad;
  const void* key = devComm->resourceWindow ? static_cast<const void*>(devComm->resourceWindow) : devComm->ginHandles[0];
  if (!key) return ncclSuccess;  // a device communicator without resources
  auto found = records().find(key);
  if (found == records().end())
    return reject(ncclInvalidArgument, "ncclDevCommDestroy: no such device communicator, or it was destroyed before");
  DevCommRecord& record = *found->second;
  if (record.resources) record.resources->clique->spaces->remove(*record.resources, comm->rank);
  records().erase(key);
  if (++record.destroyed == comm->ranks && record.gin) close_gin_domain(*record.gin);
  return ncclSuccess;
}

}  // extern "C"

CUCO_NCCL_PROFILED(ncclDevCommCreate);
CUCO_NCCL_PROFILED(ncclDevCommDestroy);

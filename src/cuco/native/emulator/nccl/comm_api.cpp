// Life cycle of communicators: unique ids, init, split, shrink, grow, finalize, destroy, abort, revoke.
#include "birth.h"
#include "bridge.h"
#include "engine.h"
#include "errors.h"
#include "meeting.h"

#include <algorithm>

using namespace cuco::nccl;

namespace {

ncclResult_t init_member(ncclComm_t* out, int nranks, const std::string& key, int rank, const ncclConfig_t* config,
                         int device, const char* call) {
  if (ncclResult_t bad = check_pointer(out, "CommInitRank", "newcomm")) return note_in_group(bad);
  *out = nullptr;
  if (nranks < 1 || rank < 0 || rank >= nranks)
    return note_in_group(reject(ncclInvalidArgument, "Invalid rank requested : %d/%d", rank, nranks));
  if (device_arena(device) != host_rank())
    return note_in_group(reject(ncclInvalidUsage, "device %d belongs to another rank: in the emulator each rank's host "
                                                  "code drives one device", device));
  CommConfig parsed;
  if (std::string wrong = read_config(config, &parsed); !wrong.empty())
    return note_in_group(reject(ncclInvalidArgument, "%s", wrong.c_str()));
  ncclComm* member = make_member(rank, nranks, parsed, device);
  if (!parsed.blocking) *out = member;  // its owner asks ncclCommGetAsyncError about it before it is complete
  return submit(birth_job(key, member, out, call));
}

// One rank's part in a split.
struct SplitOffer {
  int color, key;
  CommConfig config;
  ncclComm* child = nullptr;
};

std::shared_ptr<void> combine_split(const ncclComm& parent, Meeting& meeting) {
  std::map<int, std::vector<std::pair<int, int>>> colors;  // color -> (key, parent rank)
  for (int r = 0; r < parent.clique->size(); r++) {
    const auto& offer = meeting.offer<SplitOffer>(r);
    if (offer.color != NCCL_SPLIT_NOCOLOR) colors[offer.color].push_back({offer.key, r});
  }
  for (auto& [color, ranks] : colors) {
    std::sort(ranks.begin(), ranks.end());
    std::vector<ncclComm*> members;
    for (size_t i = 0; i < ranks.size(); i++) {
      ncclComm* child = meeting.offer<SplitOffer>(ranks[i].second).child;
      child->rank = static_cast<int>(i);
      child->ranks = static_cast<int>(ranks.size());
      members.push_back(child);
    }
    std::string why;
    make_clique(members, &why);  // a part of a valid communicator cannot use one device twice
  }
  return nullptr;
}

class SplitJob : public Job {
 public:
  SplitJob(ncclComm& parent, SplitOffer offer, ncclComm** out)
      : parent_(parent), offer_(std::make_shared<SplitOffer>(offer)), out_(out) {}

  ncclComm* comm() override { return &parent_; }
  void arrive() override {
    meeting_ = join_meeting(parent_, "ncclCommSplit", offer_,
                            [this](Meeting& meeting) { return combine_split(parent_, meeting); });
  }
  bool ready() override { return meeting_->complete; }
  ncclResult_t finish() override {
    leave_meeting(parent_, *meeting_);
    *out_ = offer_->child;
    if (offer_->child) offer_->child->async = ncclSuccess;
    return ncclSuccess;
  }
  std::string describe() override { return describe_meeting(parent_, *meeting_); }

 private:
  ncclComm& parent_;
  std::shared_ptr<SplitOffer> offer_;
  ncclComm** out_;
  std::shared_ptr<Meeting> meeting_;
};

// A child's configuration: its own argument, or its parent's.
ncclResult_t child_config(const ncclComm& parent, const ncclConfig_t* config, CommConfig* out) {
  *out = parent.config;
  if (!config) return ncclSuccess;
  std::string wrong = read_config(config, out);
  return wrong.empty() ? ncclSuccess : reject(ncclInvalidArgument, "%s", wrong.c_str());
}

ncclResult_t wait_quiet(ncclComm& comm, const char* call) {
  wait_until([&comm] { return comm.open_launches == 0; },
             [&comm, call] { return std::string(call) + " of " + member_name(comm) + " waits for " +
                                    describe_open_launches(comm); });
  return ncclSuccess;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) {
  if (ncclResult_t bad = check_pointer(uniqueId, "GetUniqueId", "out")) return bad;
  issue_unique_id(uniqueId);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                    ncclConfig_t* config) {
  api_called("ncclCommInitRankConfig");
  if (!was_issued(commId))
    return note_in_group(reject(ncclInvalidArgument, "ncclCommInitRank: the unique id does not come from ncclGetUniqueId"));
  return init_member(comm, nranks, id_key(&commId, 1), rank, config, current_device(), "ncclCommInitRank");
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return ncclCommInitRankConfig(comm, nranks, commId, rank, nullptr);
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds,
                                      ncclConfig_t* config) {
  api_called("ncclCommInitRankScalable");
  if (nId <= 0 || nId > nranks || !commIds)
    return note_in_group(reject(ncclInvalidArgument, "improper usage of ncclCommInitRank: nId = %d, nranks=%d", nId, nranks));
  return init_member(newcomm, nranks, id_key(commIds, nId), myrank, config, current_device(),
                     "ncclCommInitRankScalable");
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int ndev, const int* devlist) {
  api_called("ncclCommInitAll");
  if (ncclResult_t bad = check_pointer(comms, "CommInitAll", "comms")) return note_in_group(bad);
  if (ndev < 0) return note_in_group(reject(ncclInvalidArgument, "Invalid device count requested : %d", ndev));
  for (int i = 0; i < ndev; i++) {
    const int device = devlist ? devlist[i] : i;
    if (device < 0 || device >= device_count())
      return note_in_group(reject(devlist ? ncclInvalidArgument : ncclUnhandledCudaError,
                                  "Invalid device %d (totalnDev=%d)", device, device_count()));
    if (devlist && std::count(devlist, devlist + i, device))
      return note_in_group(reject(ncclInvalidUsage, "device %d is listed twice", device));
  }
  ncclUniqueId id;
  issue_unique_id(&id);
  ncclGroupStart();
  for (int i = 0; i < ndev; i++)
    init_member(comms + i, ndev, id_key(&id, 1), i, nullptr, devlist ? devlist[i] : i, "ncclCommInitAll");
  return ncclGroupEnd();
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config) {
  api_called("ncclCommSplit");
  if (ncclResult_t bad = check_comm(comm, "ncclCommSplit")) return note_in_group(bad);
  if (ncclResult_t bad = check_pointer(newcomm, "ncclCommSplit", "newcomm")) return note_in_group(bad);
  *newcomm = nullptr;
  if (color < 0 && color != NCCL_SPLIT_NOCOLOR)
    return note_in_group(reject(ncclInvalidArgument, "ncclCommSplit : color %d is negative", color));
  SplitOffer offer{color, key, {}, nullptr};
  if (ncclResult_t bad = child_config(*comm, config, &offer.config)) return note_in_group(bad);
  if (color != NCCL_SPLIT_NOCOLOR) offer.child = make_member(0, 0, offer.config, comm->device);
  return submit(std::make_unique<SplitJob>(*comm, offer, newcomm));
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm,
                            ncclConfig_t* config, int shrinkFlags) {
  api_called("ncclCommShrink");
  if (ncclResult_t bad = check_comm(comm, "ncclCommShrink")) return note_in_group(bad);
  if (ncclResult_t bad = check_pointer(newcomm, "ncclCommShrink", "newcomm")) return note_in_group(bad);
  *newcomm = nullptr;
  if (ncclResult_t bad = check_pointer(excludeRanksList, "ncclCommShrink", "excludeRanksList")) return note_in_group(bad);
  if (excludeRanksCount <= 0)
    return note_in_group(reject(ncclInvalidArgument, "ncclCommShrink : no rank to exclude"));
  const std::vector<int> excluded(excludeRanksList, excludeRanksList + excludeRanksCount);
  std::string key = "shrink of communicator " + std::to_string(comm->clique->id) + " without";
  int rank = 0, ranks = 0;
  for (int r = 0; r < comm->ranks; r++) {
    const bool out = std::count(excluded.begin(), excluded.end(), r) > 0;
    if (out) key += " " + std::to_string(r);
    if (!out && r < comm->rank) rank++;
    if (!out) ranks++;
    if (out && r == comm->rank)
      return note_in_group(reject(ncclInvalidArgument, "ncclCommShrink : the calling rank %d is excluded", r));
  }
  CommConfig parsed;
  if (ncclResult_t bad = child_config(*comm, config, &parsed)) return note_in_group(bad);
  if (shrinkFlags & NCCL_SHRINK_ABORT) abort_launches(*comm);
  return submit(birth_job(key + " #" + std::to_string(comm->shrinks++),
                          make_member(rank, ranks, parsed, comm->device), newcomm, "ncclCommShrink"));
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  api_called("ncclCommFinalize");
  if (!comm) return ncclSuccess;
  if (ncclResult_t bad = check_comm(comm, "ncclCommFinalize")) return note_in_group(bad);
  if (comm->finalized || comm->revoked)
    return note_in_group(reject(ncclInvalidArgument, "ncclCommFinalize: the communicator is already finalized"));
  comm->finalized = true;
  return wait_quiet(*comm, "ncclCommFinalize");
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  api_called("ncclCommDestroy");
  if (!comm) return ncclSuccess;
  if (comm->magic != kCommAlive)
    return note_in_group(reject(ncclInvalidArgument, "comm %p has already been destroyed", static_cast<void*>(comm)));
  if (comm->clique) wait_quiet(*comm, "ncclCommDestroy");
  comm->magic = 0;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  api_called("ncclCommAbort");
  if (!comm) return ncclSuccess;
  if (ncclResult_t bad = check_comm(comm, "ncclCommAbort")) return note_in_group(bad);
  comm->aborted = true;
  if (comm->clique) abort_launches(*comm);
  comm->magic = 0;
  return ncclSuccess;
}

ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags) {
  api_called("ncclCommRevoke");
  if (!comm) return ncclSuccess;
  if (ncclResult_t bad = check_comm(comm, "ncclCommRevoke")) return note_in_group(bad);
  if (revokeFlags != NCCL_REVOKE_DEFAULT || comm->finalized || comm->revoked)
    return note_in_group(reject(ncclInvalidArgument, "ncclCommRevoke: unknown flags, or the communicator is already "
                                                     "finalized or revoked"));
  comm->revoked = comm->finalized = true;
  abort_launches(*comm);
  return ncclSuccess;
}

// Growing brings ranks into a run after its start; the emulator's ranks are fixed when it starts.
ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* uniqueId) {
  if (ncclResult_t bad = check_comm(comm, "ncclCommGetUniqueId")) return bad;
  if (ncclResult_t bad = check_pointer(uniqueId, "CommGetUniqueId", "uniqueId")) return bad;
  return reject(ncclInvalidUsage, "ncclCommGrow is not supported by the emulator: the ranks of a run are fixed");
}

ncclResult_t ncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId*, int, ncclComm_t* newcomm, ncclConfig_t*) {
  if (!newcomm) return ncclInvalidArgument;
  *newcomm = nullptr;
  if (nRanks <= 0 || (comm && nRanks < comm->ranks))
    return note_in_group(reject(ncclInvalidArgument, "ncclCommGrow: total ranks must be positive and not less than "
                                                     "the current number, got %d", nRanks));
  return note_in_group(reject(ncclInvalidUsage, "ncclCommGrow is not supported by the emulator: the ranks of a run "
                                                "are fixed"));
}

}  // extern "C"

CUCO_NCCL_PROFILED(ncclGetUniqueId);
CUCO_NCCL_PROFILED(ncclCommInitRankConfig);
CUCO_NCCL_PROFILED(ncclCommInitRank);
CUCO_NCCL_PROFILED(ncclCommInitRankScalable);
CUCO_NCCL_PROFILED(ncclCommInitAll);
CUCO_NCCL_PROFILED(ncclCommSplit);
CUCO_NCCL_PROFILED(ncclCommShrink);
CUCO_NCCL_PROFILED(ncclCommFinalize);
CUCO_NCCL_PROFILED(ncclCommDestroy);
CUCO_NCCL_PROFILED(ncclCommAbort);
CUCO_NCCL_PROFILED(ncclCommRevoke);
CUCO_NCCL_PROFILED(ncclCommGetUniqueId);
CUCO_NCCL_PROFILED(ncclCommGrow);

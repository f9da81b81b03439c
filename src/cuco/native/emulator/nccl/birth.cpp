#include "birth.h"

#include "errors.h"
#include "engine.h"
#include "host_rma.h"
#include "windows.h"

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <set>

namespace cuco::nccl {
namespace {

std::map<std::string, std::shared_ptr<Birth>>& births() {
  static std::map<std::string, std::shared_ptr<Birth>> open;
  return open;
}

std::set<std::string>& issued() {
  static std::set<std::string> ids;
  return ids;
}

class BirthJob : public Job {
 public:
  BirthJob(std::string key, ncclComm* member, ncclComm** out, const char* call)
      : key_(std::move(key)), member_(member), out_(out), call_(call) {}

  ncclComm* comm() override { return member_; }

  void arrive() override {
    std::shared_ptr<Birth>& slot = births()[key_];
    if (!slot) {
      slot = std::make_shared<Birth>();
      slot->key = key_;
      slot->ranks = member_->ranks;
      slot->members.resize(static_cast<size_t>(member_->ranks));
    }
    birth_ = slot;
    check_agreement();
    birth_->members[static_cast<size_t>(member_->rank)] = member_;
    birth_->clock.join(host_knows(member_->host));
    if (++birth_->arrived < birth_->ranks) return;
    birth_->result = make_clique(birth_->members, &birth_->why);
    birth_->complete = true;
    births().erase(key_);
    made_progress();
  }

  bool ready() override { return birth_->complete; }

  ncclResult_t finish() override {
    host_learns(member_->host, birth_->clock);
    if (birth_->result != ncclSuccess) {
      *out_ = nullptr;
      member_->magic = 0;
      return reject(birth_->result, "%s", birth_->why.c_str());
    }
    member_->async = ncclSuccess;
    *out_ = member_;
    return ncclSuccess;
  }

  std::string describe() override {
    std::string text = std::string(call_) + " as rank " + std::to_string(member_->rank) + " of " + std::to_string(birth_->ranks) + " waits for rank";
    for (int r = 0; r < birth_->ranks; r++)
      if (!birth_->members[static_cast<size_t>(r)]) text += " " + std::to_string(r);
    return text;
  }

 private:
  // Ranks that disagree about the size, or claim one rank twice, would hang in NCCL's bootstrap.
  void check_agreement() {
    if (birth_->ranks != member_->ranks)
      stop_run({"deadlock", "nccl-init-size", member_->host,
                std::string(call_) + ": rank " + std::to_string(member_->rank) + " says the communicator has " +
                    std::to_string(member_->ranks) + " ranks, another said " + std::to_string(birth_->ranks)});
    if (birth_->members[static_cast<size_t>(member_->rank)])
      stop_run({"deadlock", "nccl-init-rank-twice", member_->host,
                std::string(call_) + ": rank " + std::to_string(member_->rank) + " of " +
                    std::to_string(birth_->ranks) + " has already checked in"});
  }

  std::string key_;
  ncclComm* member_;
  ncclComm** out_;
  const char* call_;
  std::shared_ptr<Birth> birth_;
};

}  // namespace

Clique::Clique() = default;
Clique::~Clique() = default;

ncclComm* make_member(int rank, int ranks, const CommConfig& config, int device) {
  auto* comm = new ncclComm;  // never freed: late use of a destroyed communicator must be recognised
  comm->rank = rank;
  comm->ranks = ranks;
  comm->host = host_rank();
  comm->device = device;
  comm->arena = device_arena(device);
  comm->config = config;
  comm->async = ncclInProgress;
  return comm;
}

std::unique_ptr<Job> birth_job(const std::string& key, ncclComm* member, ncclComm** out, const char* call) {
  return std::make_unique<BirthJob>(key, member, out, call);
}

int common_lsa_ranks(const std::vector<int>& arenas, int ranks_per_domain) {
  int common = 0, run = 0;
  for (size_t r = 0; r < arenas.size(); r++) {
    run++;
    const bool last = r + 1 == arenas.size() || arenas[r + 1] / ranks_per_domain != arenas[r] / ranks_per_domain;
    if (last) common = std::gcd(common, run), run = 0;
  }
  if (const char* limit = std::getenv("NCCL_LSA_TEAM_SIZE"))
    if (const int wanted = std::atoi(limit); wanted > 0) common = std::gcd(common, wanted);
  return common;
}

ncclResult_t make_clique(const std::vector<ncclComm*>& members, std::string* why) {
  static int count = 0;
  auto clique = std::make_shared<Clique>();
  clique->members = members;
  std::set<int> seen;
  for (const ncclComm* member : members) {
    if (!seen.insert(member->arena).second) {
      *why = "Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1 to enable this.";
      return ncclInvalidUsage;
    }
    clique->arenas.push_back(member->arena);
    clique->hosts.push_back(member->host);
  }
  clique->id = count++;
  clique->hash = 0x9e3779b97f4a7c15ull * static_cast<uint64_t>(clique->id + 1);
  clique->lsa_ranks = common_lsa_ranks(clique->arenas, run_shape().lsa_team);
  clique->spaces = std::make_unique<Spaces>(*clique);
  clique->ledger = std::make_unique<Ledger>(clique->size());
  clique->rma = std::make_unique<RmaTable>();
  for (ncclComm* member : members) member->clique = clique;
  return ncclSuccess;
}

void issue_unique_id(ncclUniqueId* id) {
  static int count = 0;
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->internal, sizeof id->internal, "cuco-emulator-%d", count++);
  issued().insert(id_key(id, 1));
}

bool was_issued(const ncclUniqueId& id) { return issued().contains(id_key(&id, 1)); }

std::string id_key(const ncclUniqueId* ids, int count) {
  std::string key;
  for (int i = 0; i < count; i++) key.append(ids[i].internal, sizeof ids[i].internal);
  return key;
}

}  // namespace cuco::nccl

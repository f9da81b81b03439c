// Communicators: the opaque ncclComm of nccl.h, and the clique that the ranks of one communicator share.
#pragma once

#include "config.h"
#include "datatype.h"
#include "headers.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cuco::nccl {

struct Meeting;    // meeting.h
class Spaces;      // windows.h: the flat load/store address space of the clique
struct Window;     // windows.h
class Ledger;      // engine.h: which collectives and messages the ranks of a clique have posted
class RmaTable;    // host_rma.h

struct Clique {
  int id = 0;                     // number of the communicator in traces and messages
  uint64_t hash = 0;
  std::vector<int> arenas;        // by clique rank: the device whose memory it uses
  std::vector<int> hosts;         // by clique rank: the rank whose host code drives it
  std::vector<ncclComm*> members; // by clique rank
  int lsa_ranks = 1;
  std::map<uint64_t, std::shared_ptr<Meeting>> meetings;  // incomplete ones, by ordinal
  std::unique_ptr<Spaces> spaces;
  std::unique_ptr<Ledger> ledger;
  std::unique_ptr<RmaTable> rma;

  Clique();
  ~Clique();
  int size() const { return static_cast<int>(arenas.size()); }
  int lsa_team(int rank) const { return rank / lsa_ranks; }
  int lsa_rank(int rank) const { return rank % lsa_ranks; }
};

struct UserReduction {
  bool live = false;
  ncclDataType_t type = ncclFloat32;
  Reduction reduction;
};

constexpr uint64_t kCommAlive = 0x6375636f6e63636cull;

}  // namespace cuco::nccl

// What ncclComm_t points to. A destroyed communicator is never freed, only marked, so that late use is recognised.
struct ncclComm {
  uint64_t magic = cuco::nccl::kCommAlive;
  std::shared_ptr<cuco::nccl::Clique> clique;  // null until every rank has joined
  int rank = 0, ranks = 0;
  int host = 0;    // rank whose host code owns it
  int arena = 0;   // device memory it works on
  int device = 0;  // CUDA ordinal as its host code sees it
  cuco::nccl::CommConfig config;
  bool finalized = false, revoked = false, aborted = false, suspended = false;
  ncclResult_t async = ncclSuccess;
  uint64_t meetings = 0;   // host meetings joined so far
  int open_launches = 0;   // issued and not yet complete
  int shrinks = 0;         // ncclCommShrink calls so far, part of the name of the next
  std::vector<cuco::nccl::UserReduction> reductions;
  std::map<void*, int> registrations;  // ncclCommRegister handles
};

namespace cuco::nccl {

// "rank 2 of communicator 0": how messages name a communicator's member.
std::string member_name(const ncclComm& comm);

// Ranks of one LSA team: the greatest block length such that consecutive clique ranks of every block share a domain.
int common_lsa_ranks(const std::vector<int>& arenas, int ranks_per_domain);

// ncclInvalidArgument with NCCL's message unless `comm` is a live communicator.
ncclResult_t check_comm(const ncclComm* comm, const char* call);
// The same, and not revoked, aborted, finalized or suspended, so that work may be issued on it.
ncclResult_t check_usable(const ncclComm* comm, const char* call);
ncclResult_t check_pointer(const void* pointer, const char* call, const char* argument);

}  // namespace cuco::nccl

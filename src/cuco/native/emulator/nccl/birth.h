// Births: the creation of communicators, by a unique id that the ranks share (init, grow) or by a name that they all can
// compute (split, shrink). A birth completes when all its ranks have arrived.
#pragma once

#include "bridge.h"
#include "clique.h"
#include "group.h"

namespace cuco::nccl {

struct Birth {
  std::string key;
  int ranks = 0;
  int arrived = 0;
  std::vector<ncclComm*> members;  // by rank of the new communicator
  Clock clock;                     // what the members' hosts had done when they arrived
  bool complete = false;
  ncclResult_t result = ncclSuccess;
  std::string why;  // when result is an error
};

// A new member, not yet part of a clique, driven by the calling host code on its current device.
ncclComm* make_member(int rank, int ranks, const CommConfig& config, int device);

// The job that brings `member` into the birth named `key`. *out receives the communicator when it is complete.
std::unique_ptr<Job> birth_job(const std::string& key, ncclComm* member, ncclComm** out, const char* call);

// Makes the clique of a complete set of members. Refuses two ranks on one device, as NCCL does by default.
ncclResult_t make_clique(const std::vector<ncclComm*>& members, std::string* why);

// Unique ids issued in this run; an id that was never issued is refused instead of waiting for ever.
void issue_unique_id(ncclUniqueId* id);
bool was_issued(const ncclUniqueId& id);
std::string id_key(const ncclUniqueId* ids, int count);

}  // namespace cuco::nccl

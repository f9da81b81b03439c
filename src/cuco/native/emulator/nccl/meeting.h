// Meetings: host calls that every rank of a communicator must make, in the same order, before any of them returns
// (windows, device communicators, splits). A rank that calls something else at the same ordinal is a finding, because
// real ranks would hang there.
#pragma once

#include "bridge.h"
#include "clique.h"

#include <functional>

namespace cuco::nccl {

struct Meeting {
  uint64_t ordinal = 0;
  std::string call;                           // "ncclCommWindowRegister"
  int arrived = 0;
  std::vector<std::shared_ptr<void>> offers;  // by clique rank, null until it arrives
  Clock clock;                                // what the ranks had done when they arrived
  bool complete = false;
  std::shared_ptr<void> outcome;              // what `combine` returned

  template <class T>
  T& offer(int rank) const {
    return *static_cast<T*>(offers[static_cast<size_t>(rank)].get());
  }
};

using Combine = std::function<std::shared_ptr<void>(Meeting&)>;

// Joins the communicator's next meeting. `combine` runs once, in the call of the last rank to arrive.
std::shared_ptr<Meeting> join_meeting(ncclComm& comm, const std::string& call, std::shared_ptr<void> offer,
                                      const Combine& combine);

// Ends a rank's part in a complete meeting: it learns what the others had done.
void leave_meeting(const ncclComm& comm, const Meeting& meeting);

// Who is missing, what the missing ranks were last told by NCCL.
std::string describe_meeting(const ncclComm& comm, const Meeting& meeting);

}  // namespace cuco::nccl

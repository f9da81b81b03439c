#include "meeting.h"

#include "errors.h"

namespace cuco::nccl {
namespace {

std::string ordinal_name(uint64_t n) {
  const char* suffix = n % 100 / 10 == 1 ? "th" : n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
  return std::to_string(n) + suffix;
}

// Some rank that has already joined, to contrast with the one that comes with another call.
int first_arrived(const Meeting& meeting) {
  for (size_t r = 0; r < meeting.offers.size(); r++)
    if (meeting.offers[r]) return static_cast<int>(r);
  return 0;
}

void refuse_other_call(const ncclComm& comm, const Meeting& meeting, const std::string& call) {
  const int other = first_arrived(meeting);
  stop_run({"deadlock", "nccl-collective-order", comm.host,
            "collective host calls differ: as the " + ordinal_name(meeting.ordinal + 1) + " one on communicator " +
                std::to_string(comm.clique->id) + " rank " + std::to_string(comm.rank) + " calls " + call +
                " but rank " + std::to_string(other) + " calls " + meeting.call});
}

}  // namespace

std::shared_ptr<Meeting> join_meeting(ncclComm& comm, const std::string& call, std::shared_ptr<void> offer,
                                      const Combine& combine) {
  Clique& clique = *comm.clique;
  const uint64_t ordinal = comm.meetings++;
  std::shared_ptr<Meeting>& slot = clique.meetings[ordinal];
  if (!slot) {
    slot = std::make_shared<Meeting>();
    slot->ordinal = ordinal;
    slot->call = call;
    slot->offers.resize(static_cast<size_t>(clique.size()));
  }
  std::shared_ptr<Meeting> meeting = slot;
  if (meeting->call != call) refuse_other_call(comm, *meeting, call);
  meeting->offers[static_cast<size_t>(comm.rank)] = std::move(offer);
  meeting->clock.join(host_knows(comm.host));
  if (++meeting->arrived == clique.size()) {
    meeting->outcome = combine(*meeting);
    meeting->complete = true;
    clique.meetings.erase(ordinal);
    made_progress();
  }
  return meeting;
}

void leave_meeting(const ncclComm& comm, const Meeting& meeting) { host_learns(comm.host, meeting.clock); }

std::string describe_meeting(const ncclComm& comm, const Meeting& meeting) {
  std::string text = meeting.call + " (the " + ordinal_name(meeting.ordinal + 1) +
                     " collective host call) of rank " + std::to_string(comm.rank) + " on communicator " +
                     std::to_string(comm.clique->id) + " waits for";
  for (int r = 0; r < comm.clique->size(); r++) {
    if (meeting.offers[static_cast<size_t>(r)]) continue;
    text += " rank " + std::to_string(r);
    const std::string& told = last_error(comm.clique->hosts[static_cast<size_t>(r)]);
    if (!told.empty()) text += " (NCCL last told it: " + told + ")";
  }
  return text;
}

}  // namespace cuco::nccl

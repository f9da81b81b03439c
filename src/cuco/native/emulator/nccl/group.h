// Groups: ncclGroupStart/End per host thread. Host jobs (communicator creation, windows, device communicators) and stream
// work issued inside a group start together at its end, so that one host thread can serve several communicators.
#pragma once

#include "headers.h"

#include <memory>
#include <string>

namespace cuco::nccl {

struct Task;  // engine.h

// A host call that completes only with the help of other ranks. arrive() never blocks.
struct Job {
  virtual ~Job() = default;
  virtual ncclComm* comm() = 0;         // whose blocking flag and async state apply; may be null
  virtual void arrive() = 0;
  virtual bool ready() = 0;
  virtual ncclResult_t finish() = 0;    // after ready(); fills the caller's out arguments
  virtual std::string describe() = 0;   // what it waits for, for a deadlock report
};

// Runs a job now, or at the end of the current group. With a non-blocking communicator it returns ncclInProgress and the
// job finishes in ncclCommGetAsyncError.
ncclResult_t submit(std::unique_ptr<Job> job);

// Remembers a failed call, so that ncclGroupEnd reports it; returns its argument. For calls that NCCL counts in groups.
ncclResult_t note_in_group(ncclResult_t code);

bool in_group();

// Adds stream work to the launch of its communicator in the current group; outside a group the launch starts at once.
ncclResult_t add_to_launch(Task task);

// Advances the jobs of non-blocking communicators; true when none of `comm` is left.
bool progress_background(ncclComm* comm);
std::string describe_background(ncclComm* comm);

}  // namespace cuco::nccl

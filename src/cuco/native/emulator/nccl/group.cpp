#include "group.h"

#include "clique.h"
#include "engine.h"
#include "errors.h"

#include <map>
#include <utility>

namespace cuco::nccl {
namespace {

// What one host thread has collected since its outermost ncclGroupStart.
struct GroupState {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<std::unique_ptr<Job>> jobs;
  std::vector<std::unique_ptr<Launch>> launches;  // one per communicator, in order of first use
  std::vector<std::unique_ptr<Job>> background;   // of non-blocking communicators
};

GroupState& state() {
  static std::map<int, GroupState> by_host;
  return by_host[host_rank()];
}

bool blocking(Job& job) { return !job.comm() || job.comm()->config.blocking; }

// All jobs arrive before any is waited for: two communicators of one host thread may need each other's other ranks.
ncclResult_t run_jobs(GroupState& group, std::vector<std::unique_ptr<Job>> jobs) {
  ncclResult_t result = ncclSuccess;
  for (auto& job : jobs)
    if (blocking(*job) != blocking(*jobs.front()))
      return reject(ncclInvalidArgument, "Blocking and nonblocking communicators are not allowed in the same group.");
  for (auto& job : jobs) job->arrive();
  for (auto& job : jobs) {
    if (!blocking(*job)) {
      job->comm()->async = ncclInProgress;
      group.background.push_back(std::move(job));
      result = ncclInProgress;
      continue;
    }
    Job& waiting = *job;
    wait_until([&waiting] { return waiting.ready(); }, [&waiting] { return waiting.describe(); });
    if (ncclResult_t code = waiting.finish(); code != ncclSuccess) result = code;
  }
  return result;
}

ncclResult_t end_group() {
  GroupState& group = state();
  if (group.depth == 0) return reject(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
  if (--group.depth > 0) return ncclSuccess;
  std::vector<std::unique_ptr<Job>> jobs = std::move(group.jobs);
  std::vector<std::unique_ptr<Launch>> launches = std::move(group.launches);
  group.jobs.clear();
  group.launches.clear();
  const ncclResult_t error = std::exchange(group.error, ncclSuccess);
  if (error != ncclSuccess) return error;
  for (auto& launch : launches)
    if (ncclResult_t bad = check_launch(*launch)) return bad;
  const ncclResult_t result = run_jobs(group, std::move(jobs));
  if (result != ncclSuccess && result != ncclInProgress) return result;
  for (auto& launch : launches)
    if (ncclResult_t bad = issue_launch(std::move(launch))) return bad;
  return result;
}

}  // namespace

ncclResult_t submit(std::unique_ptr<Job> job) {
  GroupState& group = state();
  group.depth++;
  group.jobs.push_back(std::move(job));
  return end_group();
}

ncclResult_t note_in_group(ncclResult_t code) {
  GroupState& group = state();
  if (group.depth > 0 && code != ncclSuccess && code != ncclInProgress) group.error = code;
  return code;
}

bool in_group() { return state().depth > 0; }

ncclResult_t add_to_launch(Task task) {
  GroupState& group = state();
  group.depth++;
  Launch* launch = nullptr;
  for (auto& known : group.launches)
    if (known->comm == task.comm) launch = known.get();
  if (!launch) {
    group.launches.push_back(std::make_unique<Launch>());
    launch = group.launches.back().get();
    launch->comm = task.comm;
  }
  launch->tasks.push_back(std::move(task));
  return end_group();
}

bool progress_background(ncclComm* comm) {
  GroupState& group = state();
  bool left = false;
  for (auto& job : group.background) {
    if (!job || job->comm() != comm) continue;
    if (!job->ready()) {
      left = true;
      continue;
    }
    const ncclResult_t code = job->finish();
    comm->async = code;
    job.reset();
  }
  std::erase(group.background, nullptr);
  return !left;
}

std::string describe_background(ncclComm* comm) {
  for (auto& job : state().background)
    if (job && job->comm() == comm) return job->describe();
  return "nothing";
}

}  // namespace cuco::nccl

using namespace cuco::nccl;

extern "C" {

ncclResult_t ncclGroupStart() {
  state().depth++;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  api_called("ncclGroupEnd");
  return end_group();
}

// Ends the group without starting it, as NCCL does; the emulator has no estimate while it runs (times come from the
// replay of the trace), so estimatedTime keeps NCCL_UNDEF_FLOAT.
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* simInfo) {
  GroupState& group = state();
  if (group.depth == 0) return reject(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
  if (simInfo && simInfo->magic != 0x74685283)
    return reject(ncclInvalidArgument, "ncclSimInfo_t argument not initialized via NCCL_SIM_INFO_INITIALIZER");
  if (--group.depth > 0) return ncclSuccess;
  group.jobs.clear();
  group.launches.clear();
  return std::exchange(group.error, ncclSuccess);
}

}  // extern "C"

CUCO_NCCL_PROFILED(ncclGroupStart);
CUCO_NCCL_PROFILED(ncclGroupEnd);
CUCO_NCCL_PROFILED(ncclGroupSimulateEnd);

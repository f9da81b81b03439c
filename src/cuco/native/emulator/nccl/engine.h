// The collective engine: stream work of the host API. A launch is what one rank issues on one communicator in one group;
// it starts when all its streams have reached it, and its streams go on when all its tasks are done. A collective runs
// when every rank's launch with that ordinal has started; a message when sender and receiver have. Between "may run" and
// "runs" lies an arbitrary delay that the run's seed chooses.
#pragma once

#include "bridge.h"
#include "clique.h"
#include "movement.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cuco::nccl {

struct Launch;

struct Task {
  ncclComm* comm = nullptr;
  Collective kind = Collective::all_reduce;
  Buffers buffers;
  size_t count = 0;
  ncclDataType_t type = ncclInt8;
  ncclRedOp_t op = ncclSum;
  Reduction reduction;
  int root = 0;  // or the peer of a message or one-sided operation
  cudaStream_t stream = nullptr;
  // one-sided operations
  ncclWindow_t window = nullptr;
  size_t window_offset = 0;
  int signal = 0, context = 0;
  std::vector<ncclWaitSignalDesc_t> waits;
  // filled in when issued
  Launch* launch = nullptr;
  uint64_t ordinal = 0;  // among the communicator's collectives, or among the messages between two ranks
  Stamp agent;           // the task as it runs on its rank
  bool done = false;
};

struct Launch {
  ncclComm* comm = nullptr;
  std::vector<Task> tasks;
  std::vector<StreamGate*> gates;  // one per stream involved, null until the stream's work is submitted
  size_t gates_reached = 0;
  size_t tasks_done = 0;
  bool started = false;
  Clock clock;                     // joined over the streams at the start, then over what the tasks received
};

// Tasks of one collective, by rank.
struct Match {
  std::vector<Task*> tasks;
  int posted = 0, started = 0;
};

struct Message {
  Task* send = nullptr;
  Task* recv = nullptr;
  bool queued = false;  // handed to the actor: a message to oneself starts both sides at once
};

// What the ranks of one clique have posted and not finished.
class Ledger {
 public:
  explicit Ledger(int ranks);
  // Gives the task its ordinal and checks it against what other ranks posted there; a disagreement stops the run.
  void post(Task& task);
  // Its launch has started; returns true when the task's partners have as well.
  bool start(Task& task);
  Match* match_of(const Task& task);
  Message* message_of(const Task& task);
  void retire(const Task& task);
  // "rank 1, which has not called it; ..." for a deadlock report.
  std::string missing(const Task& task);

 private:
  using Pair = std::pair<int, int>;  // sender, receiver
  void post_collective(Task& task);
  void post_message(Task& task);

  std::vector<uint64_t> next_collective_;
  std::map<uint64_t, Match> matches_;
  std::map<Pair, uint64_t> next_send_, next_recv_;
  std::map<std::pair<Pair, uint64_t>, Message> messages_;
};

// Checks that need the whole group: messages to oneself come in pairs.
ncclResult_t check_launch(const Launch& launch);
// Gives it to its streams: now, or for every launch of the graphs that capture them. Never blocks.
ncclResult_t issue_launch(std::unique_ptr<Launch> launch);
// Opens the streams of a communicator's unfinished launches without running them (abort, revoke).
void abort_launches(ncclComm& comm);
std::string describe_open_launches(const ncclComm& comm);

// "ncclAllGather(count 1024, float32) number 3 of rank 2 on communicator 0"
std::string describe_task(const Task& task);

// For one-sided operations: a task's effects are done, and what it learnt; a task may run.
void finish_task(Task& task, const Clock& received);
void make_ready(Task& task);

}  // namespace cuco::nccl

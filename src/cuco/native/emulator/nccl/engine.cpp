#include "engine.h"

#include "errors.h"
#include "host_rma.h"

#include <algorithm>
#include <cstring>
#include <deque>

namespace cuco::nccl {
namespace {

// Every launch between issue and completion, by communicator, in issue order: launches of one communicator run in order.
std::map<const ncclComm*, std::deque<std::unique_ptr<Launch>>>& queues() {
  static std::map<const ncclComm*, std::deque<std::unique_ptr<Launch>>> open;
  return open;
}

// Aborted launches stay alive: partners may still point at their tasks.
std::vector<std::unique_ptr<Launch>>& retired_launches() {
  static std::vector<std::unique_ptr<Launch>> kept;
  return kept;
}

// Runs one rank's ready tasks at moments the seed chooses.
class CollectiveActor : public NetworkActor {
 public:
  using NetworkActor::NetworkActor;

  void step() override {
    size_t pick = choose(ready_.size());
    for (size_t k = 0; k < ready_.size() && !reached(ready_[pick].round); k++) pick = (pick + 1) % ready_.size();
    Task* task = ready_[pick].task;
    ready_.erase(ready_.begin() + static_cast<long>(pick));
    run(*task);
  }
  std::string describe() override {
    return ready_.empty() ? "" : describe_task(*ready_.front().task) + " is about to run";
  }
  void add(Task& task) {
    ready_.push_back({&task, later()});
    made_progress();
  }
  void drop(const ncclComm& comm) {
    std::erase_if(ready_, [&comm](const Item& item) { return item.task->comm == &comm; });
  }

 protected:
  bool has_work() override { return !ready_.empty(); }
  bool due() override {
    return std::any_of(ready_.begin(), ready_.end(), [](const Item& item) { return reached(item.round); });
  }

 private:
  struct Item {
    Task* task;
    uint64_t round;
  };
  static void run(Task& task);
  std::vector<Item> ready_;
};

CollectiveActor& actor(int arena) {
  static std::map<int, CollectiveActor*> actors;
  CollectiveActor*& found = actors[arena];
  if (!found) found = new CollectiveActor(arena);  // lives as long as the run
  return *found;
}

void start_if_ready(Launch& launch);

// Opens the launch's streams and lets the communicator's next launch start.
void complete_launch(Launch& launch) {
  ncclComm& comm = *launch.comm;
  for (StreamGate* gate : launch.gates) open_gate(gate, launch.clock);
  comm.open_launches--;
  auto& queue = queues()[&comm];
  queue.pop_front();  // destroys the launch
  made_progress();
  if (!queue.empty()) start_if_ready(*queue.front());
}

void check_buffer(const Task& task, const void* pointer, size_t bytes, const char* which) {
  if (bytes == 0) return;
  const MemoryInfo info = find_memory(pointer);
  const char* end = static_cast<const char*>(pointer) + bytes;
  if (info.base && end <= info.base + info.bytes) return;
  stop_run({"out-of-bounds", "nccl-buffer", task.comm->host,
            describe_task(task) + ": " + which + " of " + std::to_string(bytes) + " bytes " +
                (info.base ? "ends " + std::to_string(end - (info.base + info.bytes)) + " bytes behind its allocation of " +
                                 std::to_string(info.bytes) + " bytes"
                           : "is not device memory")});
}

void check_buffers(const Task& task) {
  const int rank = task.comm->rank, ranks = task.comm->ranks;
  check_buffer(task, task.buffers.send, send_bytes(task.kind, rank, ranks, task.count, task.type, task.root), "sendbuff");
  check_buffer(task, task.buffers.recv, recv_bytes(task.kind, rank, ranks, task.count, task.type, task.root), "recvbuff");
}

// Which ranks' data reaches `rank`: the edges that the operation promises.
bool receives_from(const Task& task, int rank, int from) {
  switch (task.kind) {
    case Collective::broadcast:
    case Collective::scatter: return from == task.root;
    case Collective::reduce:
    case Collective::gather: return rank == task.root;
    default: return true;
  }
}

void run_match(Task& task) {
  Ledger& ledger = *task.comm->clique->ledger;
  const std::vector<Task*> tasks = ledger.match_of(task)->tasks;
  std::vector<Buffers> buffers;
  for (Task* t : tasks) {
    check_buffers(*t);
    if (t->reduction.scalar_in_device)
      std::memcpy(&t->buffers.scalar, t->reduction.scalar_in_device, type_size(t->type));
    buffers.push_back(t->buffers);
  }
  std::vector<Clock> clocks(tasks.size());
  for (size_t r = 0; r < tasks.size(); r++)
    for (size_t from = 0; from < tasks.size(); from++)
      if (r == from || receives_from(task, static_cast<int>(r), static_cast<int>(from)))
        tasks[from]->agent.join_into(clocks[r]);
  const Touch touch = [&tasks](int rank, const void* address, size_t bytes, bool write) {
    touch_memory(tasks[static_cast<size_t>(rank)]->agent, address, bytes, write);
  };
  run_collective(task.kind, buffers, task.count, task.type, task.reduction, task.root, touch);
  ledger.retire(task);
  for (size_t r = 0; r < tasks.size(); r++) finish_task(*tasks[r], clocks[r]);
}

void run_message(Task& task) {
  Ledger& ledger = *task.comm->clique->ledger;
  const Message message = *ledger.message_of(task);
  check_buffers(*message.send);
  check_buffers(*message.recv);
  const Touch touch = [&message](int side, const void* address, size_t bytes, bool write) {
    touch_memory((side == 0 ? message.send : message.recv)->agent, address, bytes, write);
  };
  const size_t bytes = message.send->count * type_size(message.send->type);
  touch(0, message.send->buffers.send, bytes, false);
  touch(1, message.recv->buffers.recv, bytes, true);
  std::memmove(message.recv->buffers.recv, message.send->buffers.send, bytes);
  ledger.retire(task);
  Clock sent = clock_of(message.send->agent), got = sent;
  message.recv->agent.join_into(got);
  finish_task(*message.recv, got);
  finish_task(*message.send, sent);
}

void CollectiveActor::run(Task& task) {
  switch (task.kind) {
    case Collective::send:
    case Collective::recv: return run_message(task);
    case Collective::put_signal:
    case Collective::signal:
    case Collective::wait_signal: return run_one_sided(task);
    default: return run_match(task);
  }
}

void start_if_ready(Launch& launch) {
  if (launch.started || launch.gates_reached < launch.gates.size()) return;  // some stream is not there yet
  if (queues()[launch.comm].front().get() != &launch) return;  // an earlier launch of this communicator still runs
  launch.started = true;
  for (StreamGate* gate : launch.gates) launch.clock.join(gate_clock(gate));
  made_progress();
  std::vector<Task*> tasks;
  for (Task& task : launch.tasks) {
    task.agent = new_agent(task.comm->arena, collective_name(task.kind), task.ordinal, launch.clock);
    tasks.push_back(&task);
  }
  for (Task* task : tasks) {
    const bool one_sided = task->kind == Collective::put_signal || task->kind == Collective::signal ||
                           task->kind == Collective::wait_signal;
    if (one_sided) start_one_sided(*task);
    else if (task->comm->clique->ledger->start(*task)) actor(task->comm->arena).add(*task);
  }
}

void trace_task(const Task& task, uint64_t group, cudaStream_t stream) {
  NcclRecord record;
  record.host = task.comm->host;
  record.stream = stream;
  record.collective = collective_name(task.kind);
  record.bytes = task.count * type_size(task.type);
  record.dtype = type_name(task.type);
  record.comm = task.comm->clique->id;
  record.ranks = &task.comm->clique->arenas;
  record.ordinal = task.ordinal;
  record.group = group;
  record.send = task.buffers.send;
  if (has_root(task.kind)) record.root = task.root;
  else if (is_point_to_point(task.kind) || task.kind == Collective::put_signal || task.kind == Collective::signal)
    record.peer = task.root;
  trace_nccl(record);
}

std::string describe_gate(const Launch& launch) {
  for (const Task& task : launch.tasks) {
    if (task.done) continue;
    if (task.kind == Collective::wait_signal) return describe_task(task) + " waits for " + missing_signals(task);
    if (!launch.started) return describe_task(task) + " waits for earlier work of its streams or communicator";
    return describe_task(task) + " waits for" + task.comm->clique->ledger->missing(task);
  }
  return "a finished NCCL launch";
}

// A launch as it was issued. Each of its streams calls reach() once, or once per launch of the graph that captured it; the
// n-th calls of all streams together are the n-th instance.
struct Plan {
  explicit Plan(Launch&& issued) : pattern(std::move(issued)) {
    for (const Task& task : pattern.tasks)
      if (std::find(streams.begin(), streams.end(), task.stream) == streams.end()) streams.push_back(task.stream);
    calls.resize(streams.size());
  }

  void reach(size_t stream_index, cuda::Stream& target) {
    const size_t instance = calls[stream_index]++;
    if (instance == instances.size()) instances.push_back(&begin(cuda::handle_of(&target)));
    Launch& launch = *instances[instance];
    launch.gates[stream_index] = make_gate(cuda::handle_of(&target), [&launch] {
      launch.gates_reached++;
      start_if_ready(launch);
    }, [&launch] { return describe_gate(launch); });
  }

  Launch pattern;
  std::vector<cudaStream_t> streams;
  std::vector<size_t> calls;          // by stream
  std::vector<Launch*> instances;     // finished ones dangle; only the newest is ever used again

 private:
  Launch& begin(cudaStream_t stream) {
    static uint64_t groups = 0;
    auto owned = std::make_unique<Launch>();
    owned->comm = pattern.comm;
    owned->tasks = pattern.tasks;
    owned->gates.resize(streams.size());
    Launch& launch = *owned;
    launch.comm->open_launches++;
    queues()[launch.comm].push_back(std::move(owned));
    const uint64_t group = groups++;
    for (Task& task : launch.tasks) {
      task.launch = &launch;
      task.comm->clique->ledger->post(task);
      trace_task(task, group, streams.size() == 1 ? stream : task.stream);
    }
    return launch;
  }
};

}  // namespace

void make_ready(Task& task) { actor(task.comm->arena).add(task); }

void finish_task(Task& task, const Clock& received) {
  Launch& launch = *task.launch;
  task.done = true;
  launch.clock.join(received);
  if (++launch.tasks_done == launch.tasks.size()) complete_launch(launch);
}

ncclResult_t check_launch(const Launch& launch) {
  int balance = 0;
  for (const Task& task : launch.tasks)
    if (task.root == task.comm->rank) {
      if (task.kind == Collective::send) balance++;
      if (task.kind == Collective::recv) balance--;
    }
  if (balance > 0) return reject(ncclInvalidUsage, "Trying to send to self without a matching recv");
  if (balance < 0) return reject(ncclInvalidUsage, "Trying to recv to self without a matching send");
  return ncclSuccess;
}

ncclResult_t issue_launch(std::unique_ptr<Launch> launch) {
  auto plan = std::make_shared<Plan>(std::move(*launch));
  const char* name = collective_name(plan->pattern.tasks.front().kind);
  for (size_t i = 0; i < plan->streams.size(); i++) {
    cuda::Stream* stream = cuda::find_stream(plan->streams[i]);
    const cudaError_t code =
        cuda::submit(*stream, [plan, i](cuda::Stream& target) { plan->reach(i, target); }, name);
    if (code != cudaSuccess)
      return reject(ncclUnhandledCudaError, "Cuda failure '%s'", cudaGetErrorString(code));
  }
  return ncclSuccess;
}

void abort_launches(ncclComm& comm) {
  actor(comm.arena).drop(comm);
  auto& queue = queues()[&comm];
  for (auto& launch : queue) {
    for (StreamGate* gate : launch->gates)
      if (gate) open_gate(gate, launch->clock);
    retired_launches().push_back(std::move(launch));
  }
  queue.clear();
  comm.open_launches = 0;
  made_progress();
}

std::string describe_open_launches(const ncclComm& comm) {
  auto& queue = queues()[&comm];
  return queue.empty() ? "nothing" : describe_gate(*queue.front());
}

std::string describe_task(const Task& task) {
  std::string text = std::string("nccl") + collective_name(task.kind) + "(";
  if (task.kind != Collective::signal && task.kind != Collective::wait_signal)
    text += "count " + std::to_string(task.count) + ", " + type_name(task.type);
  if (has_root(task.kind)) text += ", root " + std::to_string(task.root);
  if (is_point_to_point(task.kind)) text += ", peer " + std::to_string(task.root);
  if (has_reduction(task.kind)) {
    static constexpr const char* names[] = {"sum", "prod", "max", "min"};
    text += std::string(", ") + names[static_cast<int>(task.reduction.fold)];
  }
  text += ") number " + std::to_string(task.ordinal + 1) + " of rank " + std::to_string(task.comm->rank) +
          " on communicator " + std::to_string(task.comm->clique->id);
  return text;
}

}  // namespace cuco::nccl

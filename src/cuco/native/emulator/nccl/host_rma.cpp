#include "host_rma.h"

#include "windows.h"

#include <algorithm>
#include <cstring>

namespace cuco::nccl {
namespace {

RmaTable& table(const Task& task) { return *task.comm->clique->rma; }

bool satisfied(const Task& task) {
  for (const ncclWaitSignalDesc_t& want : task.waits) {
    const auto& channel = table(task).channel(want.peer, task.comm->rank, want.sigIdx, want.ctx);
    if (channel.arrived < channel.awaited) return false;
  }
  return true;
}

void wake_waiters(RmaTable& rma) {
  std::vector<Task*> still;
  std::vector<Task*> waiting = std::move(rma.waiting);
  rma.waiting.clear();
  for (Task* task : waiting) {
    if (satisfied(*task)) make_ready(*task);
    else still.push_back(task);
  }
  rma.waiting.insert(rma.waiting.end(), still.begin(), still.end());
}

void move_data(const Task& task) {
  const size_t bytes = task.count * type_size(task.type);
  if (bytes == 0) return;
  const Window* window = find_window(task.window);
  const size_t size = window->sizes[static_cast<size_t>(task.root)];
  if (task.window_offset > size || bytes > size - task.window_offset)
    stop_run({"out-of-bounds", "nccl-put-signal", task.comm->host,
              describe_task(task) + " writes [" + std::to_string(task.window_offset) + ", " +
                  std::to_string(task.window_offset + bytes) + ") of rank " + std::to_string(task.root) +
                  "'s window of " + std::to_string(size) + " bytes"});
  char* target = window->bases[static_cast<size_t>(task.root)] + task.window_offset;
  touch_memory(task.agent, task.buffers.send, bytes, false);
  touch_memory(task.agent, target, bytes, true);
  std::memcpy(target, task.buffers.send, bytes);
}

}  // namespace

void start_one_sided(Task& task) {
  if (task.kind != Collective::wait_signal) return make_ready(task);
  for (const ncclWaitSignalDesc_t& want : task.waits)
    table(task).channel(want.peer, task.comm->rank, want.sigIdx, want.ctx).awaited += static_cast<uint64_t>(want.opCnt);
  if (satisfied(task)) make_ready(task);
  else table(task).waiting.push_back(&task);
}

void run_one_sided(Task& task) {
  RmaTable& rma = table(task);
  if (task.kind == Collective::wait_signal) {
    Clock received;
    for (const ncclWaitSignalDesc_t& want : task.waits)
      received.join(rma.channel(want.peer, task.comm->rank, want.sigIdx, want.ctx).clock);
    return finish_task(task, received);
  }
  if (task.kind == Collective::put_signal) move_data(task);
  auto& channel = rma.channel(task.comm->rank, task.root, task.signal, task.context);
  channel.arrived++;
  task.agent.join_into(channel.clock);
  finish_task(task, clock_of(task.agent));
  wake_waiters(rma);
}

std::string missing_signals(const Task& task) {
  for (const ncclWaitSignalDesc_t& want : task.waits) {
    const auto& channel = table(task).channel(want.peer, task.comm->rank, want.sigIdx, want.ctx);
    if (channel.arrived < channel.awaited)
      return "signal " + std::to_string(want.sigIdx) + " of context " + std::to_string(want.ctx) + " from rank " +
             std::to_string(want.peer) + ": has " + std::to_string(channel.arrived) + ", wants " +
             std::to_string(channel.awaited);
  }
  return "its turn";
}

}  // namespace cuco::nccl

#include "engine.h"

#include "errors.h"

namespace cuco::nccl {
namespace {

bool agrees(const Task& a, const Task& b) {
  if (a.kind != b.kind || a.count * type_size(a.type) != b.count * type_size(b.type)) return false;
  if (has_reduction(a.kind) && (a.type != b.type || a.reduction.fold != b.reduction.fold)) return false;
  return !has_root(a.kind) || a.root == b.root;
}

[[noreturn]] void refuse(const Task& task, const Task& other, const char* rule, const std::string& what) {
  stop_run({"deadlock", rule, task.comm->host, what + ": " + describe_task(other) + ", but " + describe_task(task)});
}

std::string absent(const Clique& clique, int rank, bool posted) {
  std::string text = " rank " + std::to_string(rank);
  if (posted) return text + ", whose stream has not reached it";
  text += ", which has not called it";
  const std::string& told = last_error(clique.hosts[static_cast<size_t>(rank)]);
  return told.empty() ? text : text + " (NCCL last told it: " + told + ")";
}

}  // namespace

Ledger::Ledger(int ranks) : next_collective_(static_cast<size_t>(ranks)) {}

void Ledger::post(Task& task) {
  if (is_point_to_point(task.kind)) return post_message(task);
  if (task.kind == Collective::put_signal || task.kind == Collective::signal || task.kind == Collective::wait_signal)
    return;
  post_collective(task);
}

void Ledger::post_collective(Task& task) {
  task.ordinal = next_collective_[static_cast<size_t>(task.comm->rank)]++;
  Match& match = matches_[task.ordinal];
  match.tasks.resize(next_collective_.size());
  for (const Task* other : match.tasks)
    if (other && !agrees(*other, task))
      refuse(task, *other, "nccl-collective-mismatch", "ranks disagree about a collective");
  match.tasks[static_cast<size_t>(task.comm->rank)] = &task;
  match.posted++;
}

void Ledger::post_message(Task& task) {
  const bool sends = task.kind == Collective::send;
  const Pair pair = sends ? Pair{task.comm->rank, task.root} : Pair{task.root, task.comm->rank};
  task.ordinal = sends ? next_send_[pair]++ : next_recv_[pair]++;
  Message& message = messages_[{pair, task.ordinal}];
  (sends ? message.send : message.recv) = &task;
  if (!message.send || !message.recv) return;
  const Task& other = sends ? *message.recv : *message.send;
  if (message.send->count * type_size(message.send->type) != message.recv->count * type_size(message.recv->type))
    refuse(task, other, "nccl-message-mismatch", "sender and receiver disagree about a message");
}

Match* Ledger::match_of(const Task& task) {
  auto found = matches_.find(task.ordinal);
  return found == matches_.end() ? nullptr : &found->second;
}

Message* Ledger::message_of(const Task& task) {
  const Pair pair = task.kind == Collective::send ? Pair{task.comm->rank, task.root} : Pair{task.root, task.comm->rank};
  auto found = messages_.find({pair, task.ordinal});
  return found == messages_.end() ? nullptr : &found->second;
}

bool Ledger::start(Task& task) {
  if (is_point_to_point(task.kind)) {
    Message* message = message_of(task);
    if (message->queued || !message->send || !message->recv) return false;
    return message->queued = message->send->launch->started && message->recv->launch->started;
  }
  Match* match = match_of(task);
  return ++match->started == static_cast<int>(match->tasks.size());
}

void Ledger::retire(const Task& task) {
  if (is_point_to_point(task.kind)) {
    const Pair pair =
        task.kind == Collective::send ? Pair{task.comm->rank, task.root} : Pair{task.root, task.comm->rank};
    messages_.erase({pair, task.ordinal});
  } else {
    matches_.erase(task.ordinal);
  }
}

std::string Ledger::missing(const Task& task) {
  const Clique& clique = *task.comm->clique;
  if (is_point_to_point(task.kind)) {
    const Message* message = message_of(task);
    const Task* other = message ? (task.kind == Collective::send ? message->recv : message->send) : nullptr;
    return absent(clique, task.root, other != nullptr);
  }
  std::string text;
  if (const Match* match = match_of(task))
    for (size_t r = 0; r < match->tasks.size(); r++) {
      const Task* other = match->tasks[r];
      if (!other || !other->launch->started) text += (text.empty() ? "" : ";") + absent(clique, static_cast<int>(r), other);
    }
  return text;
}

}  // namespace cuco::nccl

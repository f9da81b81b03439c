// One-sided operations of the host API: ncclPutSignal, ncclSignal, ncclWaitSignal. A put becomes visible at the peer
// before its signal, and a wait consumes signals: the n-th wait for k signals of a peer needs the sum of all waits so far.
#pragma once

#include "engine.h"

namespace cuco::nccl {

class RmaTable {
 public:
  struct Channel {  // signals from one rank to another on one (signal, context)
    uint64_t arrived = 0, awaited = 0;
    Clock clock;    // what the arrived signals carry
  };
  Channel& channel(int from, int to, int signal, int context) { return channels_[{from, to, signal, context}]; }
  std::vector<Task*> waiting;

 private:
  std::map<std::tuple<int, int, int, int>, Channel> channels_;
};

void start_one_sided(Task& task);
void run_one_sided(Task& task);
std::string missing_signals(const Task& task);

}  // namespace cuco::nccl

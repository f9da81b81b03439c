#include "movement.h"

#include <cstring>

namespace cuco::nccl {
namespace {

const char* at(const void* base, size_t bytes) { return static_cast<const char*>(base) + bytes; }
char* at(void* base, size_t bytes) { return static_cast<char*>(base) + bytes; }

// One running collective: the arguments every helper needs.
struct Job {
  const std::vector<Buffers>& ranks;
  size_t count;
  size_t bytes;  // of one block of `count` elements
  ncclDataType_t type;
  const Reduction& reduction;
  const Touch& touch;

  int size() const { return static_cast<int>(ranks.size()); }

  void copy(int from, const void* source, int to, void* target) const {
    if (source == target) return;  // an in-place block stays where it is
    touch(from, source, bytes, false);
    touch(to, target, bytes, true);
    std::memmove(target, source, bytes);
  }

  // Folds block `block` of every rank's send buffer into `target`, which belongs to rank `to`.
  void fold(size_t block, int to, void* target) const {
    std::vector<Source> sources;
    for (int r = 0; r < size(); r++) {
      const void* source = at(ranks[r].send, block * bytes);
      touch(r, source, bytes, false);
      sources.push_back({source, ranks[r].scalar});
    }
    touch(to, target, bytes, true);
    reduce_elements(target, sources, count, type, reduction);
  }
};

void all_reduce(const Job& job) {
  job.fold(0, 0, job.ranks[0].recv);
  for (int r = 1; r < job.size(); r++) job.copy(0, job.ranks[0].recv, r, job.ranks[r].recv);
}

void reduce_scatter(const Job& job) {
  for (int r = 0; r < job.size(); r++) job.fold(static_cast<size_t>(r), r, job.ranks[r].recv);
}

void all_gather(const Job& job) {
  for (int to = 0; to < job.size(); to++)
    for (int from = 0; from < job.size(); from++)
      job.copy(from, job.ranks[from].send, to, at(job.ranks[to].recv, static_cast<size_t>(from) * job.bytes));
}

void all_to_all(const Job& job) {
  for (int to = 0; to < job.size(); to++)
    for (int from = 0; from < job.size(); from++)
      job.copy(from, at(job.ranks[from].send, static_cast<size_t>(to) * job.bytes), to,
               at(job.ranks[to].recv, static_cast<size_t>(from) * job.bytes));
}

}  // namespace

const char* collective_name(Collective kind) {
  switch (kind) {
    case Collective::all_reduce: return "AllReduce";
    case Collective::all_gather: return "AllGather";
    case Collective::reduce_scatter: return "ReduceScatter";
    case Collective::broadcast: return "Broadcast";
    case Collective::reduce: return "Reduce";
    case Collective::all_to_all: return "AlltoAll";
    case Collective::gather: return "Gather";
    case Collective::scatter: return "Scatter";
    case Collective::send: return "Send";
    case Collective::recv: return "Recv";
    case Collective::put_signal: return "PutSignal";
    case Collective::signal: return "Signal";
    case Collective::wait_signal: return "WaitSignal";
  }
  return "?";
}

bool has_reduction(Collective kind) {
  return kind == Collective::all_reduce || kind == Collective::reduce_scatter || kind == Collective::reduce;
}

bool has_root(Collective kind) {
  return kind == Collective::broadcast || kind == Collective::reduce || kind == Collective::gather ||
         kind == Collective::scatter;
}

bool is_point_to_point(Collective kind) { return kind == Collective::send || kind == Collective::recv; }

void run_collective(Collective kind, const std::vector<Buffers>& ranks, size_t count, ncclDataType_t type,
                    const Reduction& reduction, int root, const Touch& touch) {
  const Job job{ranks, count, count * type_size(type), type, reduction, touch};
  switch (kind) {
    case Collective::all_reduce: return all_reduce(job);
    case Collective::reduce_scatter: return reduce_scatter(job);
    case Collective::all_gather: return all_gather(job);
    case Collective::all_to_all: return all_to_all(job);
    case Collective::reduce: return job.fold(0, root, ranks[root].recv);
    case Collective::broadcast:
      for (int r = 0; r < job.size(); r++) job.copy(root, ranks[root].send, r, ranks[r].recv);
      return;
    case Collective::gather:
      for (int r = 0; r < job.size(); r++)
        job.copy(r, ranks[r].send, root, at(ranks[root].recv, static_cast<size_t>(r) * job.bytes));
      return;
    case Collective::scatter:
      for (int r = 0; r < job.size(); r++)
        job.copy(root, at(ranks[root].send, static_cast<size_t>(r) * job.bytes), r, ranks[r].recv);
      return;
    default: return;  // point-to-point and one-sided operations are matched elsewhere
  }
}

size_t send_bytes(Collective kind, int rank, int ranks, size_t count, ncclDataType_t type, int root) {
  const size_t block = count * type_size(type);
  switch (kind) {
    case Collective::reduce_scatter:
    case Collective::all_to_all: return block * static_cast<size_t>(ranks);
    case Collective::scatter: return rank == root ? block * static_cast<size_t>(ranks) : 0;
    case Collective::broadcast: return rank == root ? block : 0;
    case Collective::recv:
    case Collective::signal:
    case Collective::wait_signal: return 0;
    default: return block;
  }
}

size_t recv_bytes(Collective kind, int rank, int ranks, size_t count, ncclDataType_t type, int root) {
  const size_t block = count * type_size(type);
  switch (kind) {
    case Collective::all_gather:
    case Collective::all_to_all: return block * static_cast<size_t>(ranks);
    case Collective::gather: return rank == root ? block * static_cast<size_t>(ranks) : 0;
    case Collective::reduce: return rank == root ? block : 0;
    case Collective::send:
    case Collective::put_signal:
    case Collective::signal:
    case Collective::wait_signal: return 0;
    default: return block;
  }
}

}  // namespace cuco::nccl

#include "stream.h"

#include "capture.h"
#include "host.h"

#include <algorithm>
#include <map>
#include <set>

namespace cuco::cuda {
namespace {

struct RankStreams {
  std::vector<std::unique_ptr<Stream>> all;
  Stream* legacy = nullptr;
  Stream* per_thread = nullptr;
  int next_number = 0;
};

std::map<int, RankStreams>& table() {
  static std::map<int, RankStreams> ranks;
  return ranks;
}

std::set<const Stream*>& living() {
  static std::set<const Stream*> streams;
  return streams;
}

Stream* legacy_of(int rank) {
  RankStreams& streams = table()[rank];
  if (!streams.legacy) streams.legacy = make_stream(rank, StreamKind::legacy, cudaStreamDefault, 0);
  return streams.legacy;
}

Stream* per_thread_of(int rank) {
  RankStreams& streams = table()[rank];
  if (!streams.per_thread) streams.per_thread = make_stream(rank, StreamKind::per_thread, cudaStreamDefault, 0);
  return streams.per_thread;
}

// The streams that an operation pushed to `stream` now must wait for: the legacy default stream waits for all blocking
// streams of its device, and they for it.
std::vector<const Stream*> implicit_order(const Stream& stream) {
  std::vector<const Stream*> before;
  if (!stream.blocking()) return before;
  const auto add = [&before](const Stream* other) {
    if (other && other->last()) before.push_back(other);
  };
  if (stream.kind() != StreamKind::legacy) {
    add(table()[stream.rank()].legacy);
    return before;
  }
  for (const auto& other : table()[stream.rank()].all)
    if (other->blocking() && other.get() != &stream) add(other.get());
  return before;
}

class Call final : public Op {
 public:
  Call(std::string name, std::function<void(Stream&)> body, double nominal)
      : name_(std::move(name)), body_(std::move(body)), nominal_(nominal) {}
  void begin(Stream& stream) override { body_(stream); }
  double nominal_us() const override { return nominal_; }
  std::string describe() const override { return name_; }

 private:
  std::string name_;
  std::function<void(Stream&)> body_;
  double nominal_;
};

class Wait final : public Op {
 public:
  Wait(MomentPtr moment, std::string what) : moment_(std::move(moment)), what_(std::move(what)) {}
  bool ready() const override { return moment_->reached; }
  void begin(Stream& stream) override {
    stream.clock.join(moment_->clock);
    stream.nominal_us = std::max(stream.nominal_us, moment_->nominal_us);
  }
  std::string describe() const override { return what_; }

 private:
  MomentPtr moment_;
  std::string what_;
};

}  // namespace

Stream::Stream(int rank, int number_of, StreamKind kind, unsigned flags, int priority_of)
    : Actor(rank), number(number_of), id(emu::new_stream(rank)), priority(priority_of), kind_(kind), flags_(flags) {}

bool Stream::may_begin(const Item& item) const {
  return std::all_of(item.after.begin(), item.after.end(), [](const MomentPtr& m) { return m->reached; }) &&
         item.op->ready();
}

bool Stream::ready() {
  if (queue_.empty()) return false;
  const Item& head = queue_.front();
  return head.begun ? head.op->finished() : may_begin(head);
}

void Stream::step() {
  // The item stays at a fixed place while its operation runs: a deque does not move its elements at push_back.
  Item& head = queue_.front();
  if (!head.begun) {
    for (const MomentPtr& moment : head.after) {
      clock.join(moment->clock);
      nominal_us = std::max(nominal_us, moment->nominal_us);
    }
    head.begun = true;
    ops++;
    head.op->begin(*this);
    made_progress();
    if (!head.op->finished()) return;
  }
  head.op->end(*this);
  clock.add(id, ops);
  nominal_us += head.op->nominal_us();
  head.end->clock = clock;
  head.end->nominal_us = nominal_us;
  head.end->reached = true;
  queue_.pop_front();
  made_progress();
}

std::string Stream::describe() {
  if (queue_.empty()) return "";
  const std::string at = queue_.front().op->describe();
  if (at.empty()) return "";
  const std::string name = kind_ == StreamKind::legacy       ? "the legacy default stream"
                           : kind_ == StreamKind::per_thread ? "the per-thread default stream"
                                                             : "stream " + std::to_string(number);
  const std::string state = queue_.front().begun ? " is at " : " waits to begin ";
  return "rank " + std::to_string(rank()) + ": " + name + state + at + ", " +
         std::to_string(queue_.size() - 1) + " more behind it";
}

void Stream::push(std::unique_ptr<Op> op, std::vector<MomentPtr> after) {
  for (const Stream* other : implicit_order(*this)) after.push_back(other->last());
  after.push_back(host_moment(rank()));
  last_ = std::make_shared<Moment>();
  queue_.push_back({std::move(op), std::move(after), last_});
  made_progress();
}

Stream* make_stream(int rank, StreamKind kind, unsigned flags, int priority) {
  RankStreams& streams = table()[rank];
  streams.all.push_back(std::make_unique<Stream>(rank, streams.next_number++, kind, flags, priority));
  Stream* stream = streams.all.back().get();
  living().insert(stream);
  return stream;
}

void forget_stream(Stream* stream) { living().erase(stream); }

std::vector<Stream*> streams_of(int rank) {
  std::vector<Stream*> found;
  for (const auto& stream : table()[rank].all) found.push_back(stream.get());
  return found;
}

Stream* find_stream(cudaStream_t handle, Default meaning) {
  const int rank = current_rank();
  if (!handle) return meaning == Default::legacy ? legacy_of(rank) : per_thread_of(rank);
  if (handle == cudaStreamLegacy) return legacy_of(rank);
  if (handle == cudaStreamPerThread) return per_thread_of(rank);
  auto* stream = reinterpret_cast<Stream*>(handle);
  return living().contains(stream) && stream->rank() == rank ? stream : nullptr;
}

cudaStream_t handle_of(Stream* stream) { return reinterpret_cast<cudaStream_t>(stream); }

cudaError_t submit(Stream& stream, Work work, const char* name) {
  if (stream.capture) return add_node(stream, std::move(work), name);
  if (stream.kind() == StreamKind::legacy && breaks_capture(stream)) return cudaErrorStreamCaptureImplicit;
  if (emu::tracing())
    for (const Stream* before : implicit_order(stream)) trace_order(*before, stream);
  work(stream);
  return cudaSuccess;
}

int64_t implicit_event(int rank) {
  static std::map<int, int64_t> counters;
  return --counters[rank];
}

void trace_order(const Stream& before, const Stream& after) {
  if (!emu::tracing()) return;
  const int64_t number = implicit_event(before.rank());
  const auto record = [number](const Stream& stream) {
    return Record().put("stream", stream.number).put("event", number).put("ver", 1).put("implicit", true);
  };
  emu::trace_host(before.rank(), "record", record(before));
  emu::trace_host(after.rank(), "wait_event", record(after));
}

void push_call(Stream& stream, std::string name, std::function<void(Stream&)> body, double nominal_us) {
  stream.push(std::make_unique<Call>(std::move(name), std::move(body), nominal_us));
}

void push_wait(Stream& stream, MomentPtr moment, std::string what) {
  stream.push(std::make_unique<Wait>(std::move(moment), std::move(what)));
}

// ------------------------------------------------------------------------------------------------ gates
class StreamGate {
 public:
  bool reached = false, open = false;
  Clock before, received;
};

namespace {

class GateOp final : public Op {
 public:
  GateOp(std::shared_ptr<StreamGate> gate, std::function<void()> reached, std::function<std::string()> describe)
      : gate_(std::move(gate)), reached_(std::move(reached)), describe_(std::move(describe)) {}
  void begin(Stream& stream) override {
    gate_->before = stream.clock;
    gate_->reached = true;
    reached_();
  }
  bool finished() const override { return gate_->open; }
  void end(Stream& stream) override { stream.clock.join(gate_->received); }
  double nominal_us() const override { return 20; }
  std::string describe() const override { return describe_(); }

 private:
  std::shared_ptr<StreamGate> gate_;
  std::function<void()> reached_;
  std::function<std::string()> describe_;
};

}  // namespace

StreamGate* make_gate(cudaStream_t handle, std::function<void()> reached, std::function<std::string()> describe) {
  Stream* stream = find_stream(handle);
  if (!stream) return nullptr;
  auto gate = std::make_shared<StreamGate>();
  StreamGate* plain = gate.get();
  stream->push(std::make_unique<GateOp>(std::move(gate), std::move(reached), std::move(describe)));
  return plain;
}

void open_gate(StreamGate* gate, const Clock& received) {
  gate->received = received;
  gate->open = true;
  made_progress();
}

const Clock& gate_clock(const StreamGate* gate) { return gate->before; }

}  // namespace cuco::cuda

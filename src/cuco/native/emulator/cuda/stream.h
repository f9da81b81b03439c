// Streams: queues of operations that the scheduler advances one by one, in order within a stream and in any order that
// the run's seed chooses between streams. What has happened before an operation travels as a vector clock.
#pragma once

#include "core.h"

#include <cuda_runtime_api.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cuco::cuda {

class Stream;
class Capture;

// A point in a stream's order. `nominal_us` is a rough time of its own (see nominal.h), the same on every seed.
struct Moment {
  bool reached = false;
  Clock clock;
  double nominal_us = 0;
};
using MomentPtr = std::shared_ptr<Moment>;

// One piece of stream work.
class Op {
 public:
  virtual ~Op() = default;
  virtual bool ready() const { return true; }     // may it begin, now that the stream has reached it?
  virtual void begin(Stream& stream) = 0;
  virtual bool finished() const { return true; }  // asked after begin; wake the stream when it becomes true
  virtual void end(Stream& stream) { (void)stream; }
  virtual double nominal_us() const { return 0; }
  virtual std::string describe() const = 0;       // for a deadlock report; "" while others report on it
};

enum class StreamKind { created, legacy, per_thread, graph };

class Stream final : public Actor {
 public:
  Stream(int rank, int number, StreamKind kind, unsigned flags, int priority);

  bool ready() override;
  void step() override;
  bool idle() override { return queue_.empty(); }
  std::string describe() override;

  void push(std::unique_ptr<Op> op, std::vector<MomentPtr> after = {});
  // The end of everything pushed so far.
  MomentPtr last() const { return last_; }
  bool blocking() const { return kind_ != StreamKind::graph && flags_ != cudaStreamNonBlocking; }

  const int number;       // of the rank's streams, in order of creation
  const emu::StreamId id; // of the clocks
  uint64_t ops = 0;       // operations begun; the running one's number
  Clock clock;            // what has happened before the next operation
  double nominal_us = 0;  // its rough time
  Capture* capture = nullptr;
  int priority;
  StreamKind kind() const { return kind_; }
  unsigned flags() const { return flags_; }

 private:
  struct Item {
    std::unique_ptr<Op> op;
    std::vector<MomentPtr> after;
    MomentPtr end;
    bool begun = false;
  };
  bool may_begin(const Item& item) const;

  StreamKind kind_;
  unsigned flags_;
  std::deque<Item> queue_;
  MomentPtr last_;
};

// How a null handle is meant: the two meanings that nvcc's -default-stream gives it.
enum class Default { legacy, per_thread };

// The calling rank's stream of that handle, or nullptr: not one of its streams.
Stream* find_stream(cudaStream_t handle, Default meaning = Default::legacy);
cudaStream_t handle_of(Stream* stream);
Stream* make_stream(int rank, StreamKind kind, unsigned flags, int priority);
void forget_stream(Stream* stream);              // its handle is no longer valid; its work still runs
std::vector<Stream*> streams_of(int rank);       // forgotten ones too

// The trace knows order between streams by events only. Order that needs no event in the program (default streams,
// graphs) is written as an event of its own that costs no host time.
// Such events have negative numbers, never used twice.
int64_t implicit_event(int rank);
void trace_order(const Stream& before, const Stream& after);  // what `after` gets from now on waits for all in `before`

// What an API call gives to a stream: called with the stream to push to, now, or once per launch of the graph into which
// it is captured.
using Work = std::function<void(Stream&)>;
cudaError_t submit(Stream& stream, Work work, const char* name);

// An operation that happens in an instant, in the scheduler's context: it must not block.
void push_call(Stream& stream, std::string name, std::function<void(Stream&)> body, double nominal_us = 0);
void push_wait(Stream& stream, MomentPtr moment, std::string what);

// ------------------------------------------------------------------------------------------------ for other rooms
// A gate holds its stream: `reached` is called when the stream gets there, the stream goes on after open_gate.
class StreamGate;
StreamGate* make_gate(cudaStream_t stream, std::function<void()> reached, std::function<std::string()> describe);
void open_gate(StreamGate* gate, const Clock& received);
const Clock& gate_clock(const StreamGate* gate);  // what had happened before the gate, once it is reached

}  // namespace cuco::cuda

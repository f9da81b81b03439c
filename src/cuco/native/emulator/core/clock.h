// Happens-before: agents, events, vector clocks.
//
// Agents: a CTA (its threads are told apart between block-wide barriers), a host rank, one operation of a NIC or of an
// asynchronous engine. An event is (agent, thread, tick). Whole launches collapse into stream components: "stream s has
// completed its operation n" covers every event of operations <= n on s.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace cuco::emu {

using AgentId = uint32_t;
using StreamId = uint32_t;   // unique over all ranks; new_stream()
constexpr AgentId kNoAgent = 0;
constexpr StreamId kNoStream = 0;

struct Event {
  AgentId agent = kNoAgent;
  uint32_t thread = 0;
  uint32_t tick = 0;
  explicit operator bool() const { return agent != kNoAgent; }
};

// A set of events closed under happens-before. A value; joins are merges of sorted vectors.
class Clock {
 public:
  bool contains(const Event& event) const;
  bool contains(StreamId stream, uint64_t op) const;
  void add(const Event& event);                       // this event and what the same thread did before it
  void add_all_before(AgentId agent, uint32_t tick);  // every thread's events with a smaller tick
  void add_warp_before(AgentId agent, uint32_t warp, uint32_t tick);   // the same for the threads of one warp
  void add(StreamId stream, uint64_t op);             // operations <= op of a stream
  void join(const Clock& other);
  bool empty() const { return entries_.empty() && streams_.empty(); }
  size_t size() const { return entries_.size() + streams_.size(); }

 private:
  struct Entry { uint64_t key; uint32_t tick; };      // key = agent << 32 | thread + 1, 0 for all, 65536 + warp
  struct Done { StreamId stream; uint64_t op; };
  uint32_t tick_of(uint64_t key) const;
  void raise(uint64_t key, uint32_t tick);
  std::vector<Entry> entries_;
  std::vector<Done> streams_;
};
using ClockRef = std::shared_ptr<const Clock>;

// What an agent publishes with a release: everything that happens before it, the event included. Copies are cheap.
struct Stamp {
  ClockRef base, pending;    // either may be null
  Event event;
  uint32_t all_before = 0;   // ticks of event.agent below this are included for all its threads
  uint32_t warp_before = 0;  // and below this for those of its warp
  bool contains(const Event& other) const;
  void join_into(Clock& clock) const;
  explicit operator bool() const { return bool(event) || base || pending; }
};
Stamp stamp_of(Clock clock);                      // a stamp that publishes a plain clock

// What an agent is, for messages and for the collapse of finished launches.
struct AgentInfo {
  enum class Kind { cta, host, nic } kind = Kind::host;
  int rank = -1;
  StreamId stream = kNoStream;   // of the launch
  uint64_t op = 0;               // the launch's number on its stream
  int64_t index = -1;            // cta: linear index in the grid; nic: the operation's number
  const char* name = "";         // kernel name, "NIC put", ...
  int step = 0;                  // the rank's step when the agent came about (waits.h); new_agent() fills it in
};
AgentId new_agent(const AgentInfo& info);
const AgentInfo& agent_info(AgentId agent);
StreamId new_stream(int rank);

// A NIC or engine operation as an agent with one event: `after` happens before it; the stamp publishes it.
Stamp new_operation(const AgentInfo& info, const Clock& after);

// The clock of a rank's host code. release: what the host has done so far; acquire: what it learns.
Clock host_release(int rank);
void host_acquire(int rank, const Clock& clock);

}  // namespace cuco::emu

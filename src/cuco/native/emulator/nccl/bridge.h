// What this room uses of the core and of the CUDA room, under names that say what NCCL needs it for.
#pragma once

#include "../core/clock.h"
#include "../core/memory.h"
#include "../core/scheduler.h"
#include "../core/settings.h"
#include "../core/words.h"
#include "../cuda/stream.h"
#include "headers.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cuco::nccl {

using cuda::StreamGate;
using cuda::gate_clock;
using cuda::make_gate;
using cuda::open_gate;
using emu::Clock;
using emu::Delivery;
using emu::Event;
using emu::Stamp;

// ---- the run
struct RunShape {
  int ranks, lsa_team;
  ncclGinConnectionType_t gin;  // what the network offers; $CUCO_EMULATED_GIN: full (default), rail or none
};
const RunShape& run_shape();
int host_rank();                // whose host code is running
int current_device();           // CUDA ordinal that the host code has selected
int device_count();
int device_arena(int device);   // the rank whose memory is that device's
uint64_t choose(uint64_t n);    // seeded, in [0, n)
Delivery delivery();
void api_called(const char* name);  // a host call that costs time, for the trace

// ---- ending a run
struct Problem {
  const char* kind;
  const char* rule;
  int rank;
  std::string message;
};
[[noreturn]] void stop_run(const Problem& problem);

// ---- waiting and ordering of host code
void wait_until(std::function<bool()> ready, std::function<std::string()> waiting_for);
void made_progress();
Clock host_knows(int host);                     // what this rank's host code has done and learnt
void host_learns(int host, const Clock& clock);

// ---- memory
struct MemoryInfo {
  char* base = nullptr;       // null: no live device memory
  size_t bytes = 0;           // as asked for
  size_t capacity = 0;        // whole pages: what a window may span
  int arena = -1;
  bool shareable = false;     // from ncclMemAlloc or the driver, not from cudaMalloc
  std::string name;
};
MemoryInfo find_memory(const void* address);
void* user_alloc(int arena, size_t bytes);      // null when the device's memory is exhausted
bool user_free(void* address);
void* internal_alloc(int arena, size_t bytes, const char* what, size_t align = 256);  // zeroed
char* reserve_addresses(size_t bytes);
void map_alias(char* alias, char* memory, size_t bytes);
void unmap_alias(char* alias, size_t bytes);
// The arena address behind an alias.
char* canonical(const void* address);

// ---- words
// plain: ordered by what the device code's instructions say. protocol: NCCL relies on it even where its loads are relaxed,
// so every access acquires and releases.
enum class WordUse { plain, protocol };
void name_words(const void* base, size_t count, size_t word_bytes, WordUse use,
                const std::function<std::string(size_t)>& name);
// Memory of NCCL's own protocols that is not made of words: descriptors.
void own_range(const void* base, size_t bytes);
void word_add(void* word, size_t bytes, uint64_t delta, const Stamp& stamp);
// What was released into a request's slot; its histories end there, because the reader now owns it.
Clock take_released(void* slot, size_t bytes);

// ---- accesses of the collective engine and the NIC, for race detectors
class AgentObserver {
 public:
  virtual ~AgentObserver() = default;
  virtual void access(const Stamp& agent, uint64_t address, size_t bytes, bool write) = 0;
};
void observe_agents(AgentObserver* observer);   // nullptr: none
void touch_memory(const Stamp& agent, const void* address, size_t bytes, bool write);
// An operation of the engine or the NIC as an agent of its own, after everything in `after`. `name` is static. With a
// stream it is that stream's operation `number`, so that one entry of a clock can stand for all up to a number.
Stamp new_agent(int rank, const char* name, uint64_t number, const Clock& after, emu::StreamId stream = emu::kNoStream);
Clock clock_of(const Stamp& stamp);
// What an agent publishes when it promises more, or less, than all it knows.
Stamp publish(const Stamp& agent, Clock knows);

// ---- actors
// Work that the network may put off. Delivery `lazy`: until nothing else can run. `random`: until a round that the seed
// chooses per item. `eager`: not at all.
class NetworkActor : public emu::Actor {
 public:
  explicit NetworkActor(int rank) : Actor(rank) {}
  bool ready() final { return delivery() != Delivery::lazy && due(); }
  bool ready_when_stuck() final { return has_work(); }
  bool idle() final { return !has_work(); }

 protected:
  virtual bool has_work() = 0;
  virtual bool due() = 0;       // some item's time has come
  static uint64_t later();      // a round for a new item
  static bool reached(uint64_t round) { return round <= emu::scheduler().rounds(); }
};

// ---- trace
struct NcclRecord {
  int host = 0;
  cudaStream_t stream = nullptr;
  const char* collective = "";
  const char* dtype = "";
  uint64_t bytes = 0, ordinal = 0, group = 0;
  int comm = 0;
  const std::vector<int>* ranks = nullptr;
  int root = -1, peer = -1;     // ranks of the communicator; -1: none
  const void* send = nullptr;   // what this rank sends; nullptr: nothing
};
void trace_nccl(const NcclRecord& record);

}  // namespace cuco::nccl

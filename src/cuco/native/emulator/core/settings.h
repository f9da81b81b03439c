// What a job asks of the emulator: ranks, seed, the machine's limits, and the policies that a seed perturbs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cuco::emu {

// Limits of one GPU, from the machine file. Defaults: H200 (sm_90).
struct MachineLimits {
  uint32_t sms = 132;
  uint32_t threads_per_sm = 2048;
  uint32_t blocks_per_sm = 32;
  uint32_t registers_per_sm = 65536;
  uint32_t shared_per_sm = 233472;        // bytes
  uint32_t shared_per_block = 232448;     // bytes, static + dynamic, with opt-in
  uint32_t shared_reserved = 1024;        // bytes the system takes per block
  uint32_t threads_per_block = 1024;
  uint32_t clock_mhz = 1980;
  uint64_t memory = 141ull << 30;         // bytes, what cudaMemGetInfo reports; also bounds the arena
};

// Which legal version of a sync word a strong load returns (words.h).
enum class ReadPolicy {
  one_at_a_time,  // the oldest allowed; a spin advances one version at a time: edges and time do not depend on the seed
  newest,         // always the newest: skips intermediate values
  oldest,         // the oldest allowed for as long as anything else can run, then the newest
};

// When the NIC performs what was posted to it. Read by the NIC; `lazy` uses Actor::ready_when_stuck().
enum class Delivery { lazy, eager, random };

struct Settings {
  int ranks = 1;
  uint64_t seed = 0;
  MachineLimits machine;
  ReadPolicy reads = ReadPolicy::one_at_a_time;
  Delivery delivery = Delivery::random;
  bool shuffle = true;            // pick runnable entities in seeded random order; false: in order of creation
  std::vector<int> held_ranks;    // ranks that run only when nothing else can, from the start (Scheduler::hold)
  uint64_t fuel = 1ull << 32;     // progress units (EmuThread::progress) that one GPU thread may spend in a launch
  uint64_t host_switches = 1ull << 40;  // scheduler rounds before the run counts as endless
  bool eager_copies = false;      // asynchronous copies land at once instead of as late as their wait allows
  uint8_t poison = 0xAB;          // fresh device and shared memory
  std::string trace;              // path of the trace to write, "" for none
  bool sliced = false;            // kernels are timing slices; goes into the trace's header
  uint32_t slow_ctas = 0;         // percent: how often a CTA that could run waits for long, or until nothing else can
  bool access_sets = false;       // hooks variant: trace which bytes every CTA reads and writes (access_sets.h)
  int lsa_team = 1;               // goes into the trace's header
};

}  // namespace cuco::emu

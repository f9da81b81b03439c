// Kernel launches: submission, residency by the machine's limits, completion.
#pragma once

#include "../isa/abi.h"
#include "clock.h"
#include "settings.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cuco::emu {

// A kernels .so as loaded into one rank: where its globals live there.
struct RankModule {
  const EmuModule* module = nullptr;
  std::vector<uint64_t> globals;      // address of every EmuModule::globals entry in this rank
};
// Checks the ABI number, allocates and initialises the module's globals in the rank's arena, applies relocations.
// EMU_CONST globals live in the arena too.
RankModule load_module(const EmuModule* module, int rank);

struct GridLaunch {
  uint64_t id = 0;                     // chosen by the caller, unique in the run (the host's launch record, written
                                       // earlier, has it already); 0: submit() picks one
  const RankModule* module = nullptr;
  const EmuKernel* kernel = nullptr;
  int rank = 0;
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  uint32_t dynamic_shared = 0;         // bytes
  uint32_t registers = 32;             // per thread, from ptxas
  std::vector<unsigned char> params;   // EmuKernel::param_bytes
  bool cooperative = false;            // all CTAs resident at once; gets a grid workspace
  int priority = 0;                    // smaller runs first, as in CUDA
  StreamId stream = kNoStream;         // for clocks
  uint64_t op = 0;                     // the launch's number on that stream, rising
  Clock after;                         // what happens before every CTA
  // Called on the scheduler's stack when the last CTA has ended; `done` includes everything that the CTAs did and learnt.
  std::function<void(const Clock& done)> complete;
};

// Why this launch can never run on this machine ("" if it can): block too large, too much shared memory, registers, or a
// cooperative grid that is not co-resident. For CUDA's launch errors.
std::string launch_problem(const GridLaunch& launch);
// CTAs of one SM (occupancy) by threads, blocks, registers and shared memory.
uint32_t ctas_per_sm(const EmuKernel& kernel, uint32_t threads, uint32_t registers, uint32_t dynamic_shared);

// Queues the grid; CTAs dispatch in order into free slots, grids of one rank in order of priority, then submission.
// Returns the launch's id, unique in the run and used in the trace ("id" of the host's launch record).
uint64_t submit(GridLaunch launch);

// CTAs of a rank that are resident now, CTAs without a slot, and launches not yet complete (for reports and checks).
struct Residency { uint32_t ctas, threads; uint64_t waiting_ctas, launches; };
Residency residency(int rank);

// Optional observer of memory accesses in the hooks variant and of bulk copies (race detector, read/write sets).
// `address` is canonical.
class AccessObserver {
 public:
  virtual ~AccessObserver() = default;
  virtual void global_access(EmuThread* self, uint64_t address, uint32_t bytes, EmuAccess access, uint32_t site) = 0;
  virtual void shared_access(EmuThread* self, uint32_t offset, uint32_t bytes, EmuAccess access, uint32_t site) = 0;
  virtual void cta_started(EmuThread* first) = 0;
  virtual void cta_ended(EmuBlock* block) = 0;
};
void observe_accesses(AccessObserver* observer);   // nullptr: none

// Identity of a GPU thread, for messages and observers.
struct ThreadPlace {
  int rank;
  uint64_t launch;
  const char* kernel;
  int64_t cta;
  uint32_t cta_id[3], thread_id[3];
  uint32_t thread;
};
ThreadPlace place_of(const EmuThread* self);
Event event_of(const EmuThread* self);             // the thread's current event
bool happens_before(const Event& event, const EmuThread* self);
EmuThread* current_thread();                       // nullptr outside GPU threads
const EmuModule& module_of(const EmuThread* self);

}  // namespace cuco::emu

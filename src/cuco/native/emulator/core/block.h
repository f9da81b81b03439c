// CTAs and their threads as the core keeps them (internal to the core).
#pragma once

#include "clock.h"
#include "fiber.h"
#include "grid.h"
#include "phase.h"

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

namespace cuco::emu {

struct Block;

// Why a thread does not run.
enum class Wait : uint8_t { none, barrier, warp, active_mask, word, shared_word, mbarrier, yield };

// A copy that the hardware would perform asynchronously.
struct Copy {
  uint64_t dst, src;
  uint32_t bytes, source_bytes;        // the rest of `bytes` is zero-filled
  uint32_t site;
  bool reduces = false;                // dst = op(dst, src) per element
  EmuAtomOp op = EMU_ADD;
  EmuType type = EMU_B32;
  bool source_taken = false, done = false;
  std::vector<unsigned char> taken = {};   // the source, once it has been read
};
using CopyGroup = std::vector<Copy>;

struct CopyQueue {
  CopyGroup open;
  std::deque<CopyGroup> committed;
};

// What a thread polls: see poll.h.
struct Poll {
  uint64_t address = 0;
  uint32_t site = 0;
  uint64_t cycle = ~0ull;       // progress spent by the last iteration
  uint64_t returned_at = 0;     // progress when the load returned
  uint64_t call = 0;            // Extra::strong_calls then
  uint64_t seen = 0;            // serial of the version returned last
  uint64_t free_turns = 0;      // iterations to let through although nothing has changed
  bool spinning = false;        // two iterations of equal cost: a spin
  uint8_t grants = 0;           // of free turns, since the last change
};

// State that few threads need; made on first use.
struct Extra {
  ClockRef pending;                     // learnt since the last block-wide barrier
  Stamp fence;                          // what the last release fence published
  EmuScope fence_scope = EMU_CTA;
  Clock relaxed;                        // learnt by relaxed loads; counts after the next acquire fence
  std::vector<Poll> polls;              // one per (site, address)
  std::unordered_map<uint64_t, uint64_t> seen;   // word -> serial of the newest version this thread has read
  uint64_t strong_calls = 0;
  bool read_clock = false;              // since the last poll: it may time out
  bool released = false;                // from a wait, although nothing new may be there
  Strand strand;                        // its trace events in the current phase
  CopyQueue copies, bulk;
};

struct Thread : EmuThread {
  void* sp = nullptr;
  char* stack = nullptr;
  Thread* next = nullptr;      // in the list of runnable threads or of a barrier's waiters
  Extra* extra = nullptr;
  uint64_t phase_start = 0;    // progress at the phase's begin
  uint64_t wait_address = 0;
  uint32_t wait_site = 0;
  Wait wait = Wait::none;
  uint8_t wait_detail = 0;     // barrier id
  bool done = false;

  Block& cta() const;
  Extra& more() {
    if (!extra) extra = new Extra;
    return *extra;
  }
};

// A FIFO of threads, linked through Thread::next.
struct ThreadList {
  Thread* head = nullptr;
  Thread* tail = nullptr;
  bool empty() const { return !head; }
  void push(Thread* t) {
    t->next = nullptr;
    (tail ? tail->next : head) = t;
    tail = t;
  }
  Thread* pop() {
    Thread* t = head;
    head = t->next;
    if (!head) tail = nullptr;
    return t;
  }
  void splice(ThreadList& other) {
    if (other.empty()) return;
    (tail ? tail->next : head) = other.head;
    tail = other.tail;
    other.head = other.tail = nullptr;
  }
};

// Lanes of a warp that meet: one per mask (and, for activemask, per site).
struct Meeting {
  uint32_t mask = 0, arrived = 0, site = 0;
  EmuWarpFn fn = nullptr;
  void* args[32];
};

struct Warp {
  uint32_t live = 0;             // lanes that have not exited
  uint32_t synced = 0;           // tick of the last full-warp synchronisation: earlier events are known warp-wide
  std::vector<Meeting> meetings;
  std::vector<Meeting> active;   // lanes in activemask, by site
};

struct Barrier {
  ThreadList waiting;
  uint32_t arrived = 0;          // threads, or for counted barriers threads plus the missing lanes of complete warps
  uint32_t count = 0;            // 0: all threads
  uint32_t red_count = 0, red_threads = 0;
  EmuBarRed op = EMU_RED_POPC;
  uint32_t site = 0;
  bool active = false;
  std::vector<uint32_t> lanes;   // counted barriers: lanes of each warp that have arrived
  Clock learnt;                  // counted barriers: what the participants publish
  uint32_t result[2] = {0, 0};   // reductions of the last two generations
  uint32_t generation = 0;
};
constexpr uint32_t kBarriers = 17;

struct MBarrier {
  uint32_t expected = 0, pending = 0, phase = 0;
  int64_t tx = 0;
  Clock learnt;                  // published by the arrivals of all phases so far
  std::vector<Copy> copies;      // bulk copies whose bytes complete here
  std::vector<CopyGroup> arrivals;   // cp.async groups whose completion arrives here
  std::vector<Thread*> waiting;
};

struct SharedPoll { Thread* thread; uint32_t bytes; unsigned char value[16]; };

struct Grid;

struct Block : EmuBlock {
  Grid* grid = nullptr;
  int64_t index = 0;              // linear in the grid
  std::unique_ptr<Thread[]> threads;
  uint32_t nthreads = 0, live = 0, unstarted = 0;   // next thread that has not begun
  ThreadList ready;
  ThreadList yielded;             // run again after progress elsewhere
  uint64_t yielded_at = 0;        // Scheduler::progress() when they yielded
  uint64_t wake_at = 0;           // earliest sleeper, 0 if none
  bool queued = false;            // in the scheduler's list
  bool slow = false;              // there, but runs only when nothing else can (Settings::slow_ctas)
  std::vector<Warp> warps;
  Barrier barriers[kBarriers];
  uint32_t active_barriers = 0;   // bit per barrier with arrivals
  uint32_t active_meetings = 0;   // lanes in activemask
  std::unordered_map<uint64_t, MBarrier> mbarriers;
  std::unordered_map<uint64_t, Clock> shared_clocks;   // released into shared words
  std::vector<SharedPoll> shared_polls;
  CopyQueue late_writes;          // bulk stores whose source has been read
  char* slot = nullptr;           // of shared memory
  StackPool* stacks = nullptr;
  // Happens-before
  AgentId agent = kNoAgent;
  uint32_t tick = 1, all_before = 1;
  ClockRef base;                  // known to every thread
  uint32_t pending_threads = 0;   // threads with Extra::pending
  Clock learnt;                   // by threads that have ended
  std::vector<ClockRef> kept;     // scratch of join_all
  PhaseRecorder phases;

  bool runnable() const { return !ready.empty() || unstarted < nthreads; }
};
inline Block& Thread::cta() const { return *static_cast<Block*>(block); }
inline Thread* thread_of(EmuThread* t) { return static_cast<Thread*>(t); }

struct Grid {
  GridLaunch launch;
  uint64_t id = 0;
  uint64_t ctas = 0, next = 0, ended = 0;
  uint32_t threads = 0, warps = 0;       // per CTA
  uint32_t shared = 0, dynamic_base = 0; // bytes per CTA; where dynamic shared memory begins
  uint64_t workspace = 0;                // cooperative: grid workspace
  char* params = nullptr;
  Clock done;                            // what the ended CTAs did and learnt
  ClockRef after;
};

// ---- running (block.cpp)
extern Thread* running;                       // the GPU thread that runs, or nullptr
void run_block(Block& block);                 // from the scheduler: until none of its threads can run
void make_ready(Thread* t);                   // a blocked thread may run again
void suspend(Thread* t, Wait why, uint32_t site);   // switch to another thread; returns when t has been made ready
void yield_thread(Thread* t, uint32_t site, uint64_t wake_at = 0);
[[noreturn]] void end_thread_now(Thread* t);  // from any depth of its stack

// ---- barriers and warps
void barriers_after_exit(Block& block, Thread* t);   // barrier.cpp
void meetings_after_exit(Block& block, Thread* t);   // warp.cpp
bool release_active_masks(Block& block);             // warp.cpp: when nothing else in the block can run
bool wake_shared_polls(Block& block);                // shared.cpp: polls whose word has changed
void forget_shared(Block& block);

// ---- asynchronous copies (copies.cpp, mbarrier.cpp)
void finish_copies(Block& block, Thread* t);         // a thread ends
void finish_late_writes(Block& block);               // a CTA ends
bool settle_mbarrier(Block& block, uint64_t address);

// ---- happens-before (order.cpp)
Stamp release_stamp(Thread* t);
void learn(Thread* t, const Clock& clock);
void learn(Thread* t, const Stamp& stamp);
void join_all(Block& block);                         // block-wide barrier
void join_threads(Block& block, const std::vector<Thread*>& threads);

// ---- residency (grid.cpp)
void block_ended(Block* block);
bool dispatch_all();                                 // fills free slots; true if a CTA was started
const std::vector<Block*>& resident_blocks();
uint64_t open_grids();
AccessObserver* access_observer();

}  // namespace cuco::emu

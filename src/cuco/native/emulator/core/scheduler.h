// The one seeded scheduler: host fibers, CTAs and actors (stream heads, NICs) on one OS thread, in rounds.
//
// A round runs once everything that is ready, in seeded order. When nothing is ready the run is stuck: in this order,
// polls that a weak store may have satisfied are looked at again, lazy actors act, held ranks are released, pollers get
// stale answers for a number of turns, and sleepers' time comes. If none of that helps, it is a deadlock, and fail()
// explains who waits for what.
#pragma once

#include "random.h"
#include "settings.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cuco::emu {

// Something that acts on its own between fibers: the head of a stream, a NIC. Runs on the scheduler's stack and must
// not block. Registered by its constructor, in order of creation; unregistered by its destructor.
class Actor {
 public:
  explicit Actor(int rank);
  virtual ~Actor();
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;

  virtual bool ready() = 0;                          // cheap; asked once a round
  virtual bool ready_when_stuck() { return false; }  // work it would rather put off for as long as possible
  virtual void step() = 0;                           // one unit of work
  virtual bool idle() = 0;                           // nothing pending: a run may end
  virtual std::string describe() = 0;                // what it waits for, for a deadlock report; "" to stay silent
  int rank() const { return rank_; }

 private:
  int rank_;
};

class Scheduler {
 public:
  explicit Scheduler(const Settings& settings);
  ~Scheduler();

  // A host fiber of a rank, with its own 8 MiB stack. `name` appears in deadlock reports.
  void spawn(int rank, std::string name, std::function<void()> body);

  // Runs until every host fiber has returned and every actor is idle, or fail() was called (then findings() is not
  // empty and false is returned). Call once, from the process's main stack.
  bool run();

  // From a host fiber: suspends it until the predicate holds. `describe` is called for a deadlock report only, and says
  // what is waited for ("cudaStreamSynchronize at host.cu:80").
  void wait_until(std::function<bool()> predicate, std::function<std::string()> describe);
  void yield();                          // let everything else that is ready run once
  int current_rank() const;              // rank of the running host fiber, GPU thread or actor; -1 outside
  bool on_host_fiber() const;
  bool quiet() const;                    // every actor is idle and no grid is open

  // A held rank (its fibers, CTAs and actors) runs only when nothing else can; then it is released for good.
  void hold(int rank);
  void release(int rank);
  bool held(int rank) const;
  std::function<void(int rank)> on_release;   // called when a stuck run releases a held rank

  Random& random() { return random_; }
  uint64_t rounds() const { return rounds_; }
  void made_progress() { progress_++; }  // something changed that a poller may see
  uint64_t progress() const { return progress_; }
  uint64_t now() const { return now_; }  // cycles of the emulated clock: moves with rounds and over idle times
  void advance_clock(uint64_t cycles) { now_ += cycles; }
  void count_round(uint64_t cycles) { rounds_++, now_ += cycles; }

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  Random random_;
  uint64_t rounds_ = 0, progress_ = 0, now_ = 1u << 20;
  std::unique_ptr<Impl> impl_;
};

// The runtime of this process; valid between start() and the end of the process. Call start() first of all.
void start(const Settings& settings);
const Settings& settings();
Scheduler& scheduler();

}  // namespace cuco::emu

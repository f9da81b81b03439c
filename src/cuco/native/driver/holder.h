// Slow ranks: the adversary of code that relies on its peers' pace.
#pragma once

#include "settings_of.h"

#include "../emulator/core/scheduler.h"

#include <vector>

namespace cuco::driver {

// While it is on, freezes ranks until nobody else can go on, lets all run for a few rounds, and freezes again: always the
// ranks that the job names, or each time another part of them. So the others run as far ahead as they can get, at many
// different moments. The number of times is bounded, so that a deadlock is found as in any run.
class Holder : public emu::Actor {
 public:
  explicit Holder(const SlowRanks &slow);

  void start();
  void stop();

  bool ready() override;
  bool idle() override { return true; }
  std::string describe() override { return ""; }
  void step() override;

 private:
  void thaw();
  std::vector<int> choose();

  SlowRanks slow_;
  std::vector<int> frozen_;
  uint64_t next_ = 0;   // round of the next freeze
  int left_ = 0;
  bool on_ = false;
};

}  // namespace cuco::driver

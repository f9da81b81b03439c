#include "holder.h"

namespace cuco::driver {

constexpr int kMostTimes = 256;

Holder::Holder(const SlowRanks &slow) : Actor(-1), slow_(slow) {
  emu::scheduler().on_release = [this](int) { thaw(); };
}

void Holder::start() {
  if (on_) return;
  on_ = true;
  left_ = kMostTimes;
  step();
}

void Holder::stop() {
  on_ = false;
  thaw();
}

bool Holder::ready() { return on_ && left_ > 0 && frozen_.empty() && emu::scheduler().rounds() >= next_; }

void Holder::step() {
  left_--;
  frozen_ = slow_.changing ? choose() : slow_.ranks;
  for (int rank : frozen_) emu::scheduler().hold(rank);
}

void Holder::thaw() {
  for (int rank : frozen_) emu::scheduler().release(rank);
  frozen_.clear();
  next_ = emu::scheduler().rounds() + 1 + emu::scheduler().random().below(slow_.burst);
}

// Some of the ranks, at least one and not all.
std::vector<int> Holder::choose() {
  emu::Random &random = emu::scheduler().random();
  std::vector<int> chosen;
  for (int rank : slow_.ranks)
    if (random.below(2)) chosen.push_back(rank);
  if (chosen.empty()) chosen.push_back(slow_.ranks[random.below(slow_.ranks.size())]);
  if (chosen.size() == slow_.ranks.size() && chosen.size() > 1)
    chosen.erase(chosen.begin() + static_cast<long>(random.below(chosen.size())));
  return chosen;
}

}  // namespace cuco::driver

#include "settings_of.h"

#include <functional>
#include <sstream>
#include <stdexcept>

namespace cuco::driver {

namespace {

uint64_t number(const std::string &text) {
  size_t used = 0;
  uint64_t value = std::stoull(text, &used);
  if (used != text.size()) throw std::runtime_error("'" + text + "' is no number");
  return value;
}

std::vector<int> numbers(const std::string &text) {   // separated by commas
  std::vector<int> values;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) values.push_back(static_cast<int>(number(part)));
  return values;
}

template <typename Value>
Value named(const std::string &text, std::initializer_list<std::pair<const char *, Value>> names) {
  for (const auto &[name, value] : names)
    if (text == name) return value;
  throw std::runtime_error("unknown value '" + text + "'");
}

using Setter = std::function<void(emu::Settings &, const std::string &)>;

template <typename Field>
Setter limit(Field emu::MachineLimits::*field) {
  return [field](emu::Settings &s, const std::string &text) { s.machine.*field = static_cast<Field>(number(text)); };
}

const std::map<std::string, Setter> &setters() {
  using emu::MachineLimits;
  static const std::map<std::string, Setter> table = {
      {"reads",
       [](emu::Settings &s, const std::string &text) {
         s.reads = named<emu::ReadPolicy>(text, {{"history", emu::ReadPolicy::one_at_a_time},
                                                 {"newest", emu::ReadPolicy::newest},
                                                 {"oldest", emu::ReadPolicy::oldest}});
       }},
      {"delivery",
       [](emu::Settings &s, const std::string &text) {
         s.delivery = named<emu::Delivery>(
             text, {{"lazy", emu::Delivery::lazy}, {"eager", emu::Delivery::eager}, {"random", emu::Delivery::random}});
       }},
      {"shuffle", [](emu::Settings &s, const std::string &text) { s.shuffle = number(text) != 0; }},
      {"hold", [](emu::Settings &, const std::string &text) { numbers(text); }},    // these three are the driver's:
      {"stutter", [](emu::Settings &, const std::string &text) { number(text); }},
      {"burst", [](emu::Settings &, const std::string &text) { number(text); }},    // slow_ranks_of reads them
      {"fuel", [](emu::Settings &s, const std::string &text) { s.fuel = number(text); }},
      {"eager_copies", [](emu::Settings &s, const std::string &text) { s.eager_copies = number(text) != 0; }},
      {"sliced", [](emu::Settings &s, const std::string &text) { s.sliced = number(text) != 0; }},
      {"slow_ctas", [](emu::Settings &s, const std::string &text) { s.slow_ctas = static_cast<uint32_t>(number(text)); }},
      {"access_sets", [](emu::Settings &s, const std::string &text) { s.access_sets = number(text) != 0; }},
      {"sms", limit(&MachineLimits::sms)},
      {"threads_per_sm", limit(&MachineLimits::threads_per_sm)},
      {"blocks_per_sm", limit(&MachineLimits::blocks_per_sm)},
      {"registers_per_sm", limit(&MachineLimits::registers_per_sm)},
      {"shared_per_sm", limit(&MachineLimits::shared_per_sm)},
      {"shared_per_block", limit(&MachineLimits::shared_per_block)},
      {"threads_per_block", limit(&MachineLimits::threads_per_block)},
      {"clock_mhz", limit(&MachineLimits::clock_mhz)},
      {"memory", limit(&MachineLimits::memory)},
  };
  return table;
}

}  // namespace

emu::Settings settings_of(const Job &job) {
  emu::Settings settings;
  settings.ranks = job.ranks;
  settings.lsa_team = job.lsa_team;
  settings.seed = job.seed;
  settings.trace = job.trace;
  for (const auto &[key, value] : job.platform) {
    auto setter = setters().find(key);
    if (setter == setters().end()) throw std::runtime_error("job: unknown setting '" + key + "'");
    try {
      setter->second(settings, value);
    } catch (const std::exception &error) {
      throw std::runtime_error("job: setting '" + key + "': " + error.what());
    }
  }
  return settings;
}

SlowRanks slow_ranks_of(const Job &job) {
  SlowRanks slow;
  auto text = [&job](const char *key) {
    auto found = job.platform.find(key);
    return found == job.platform.end() ? std::string() : found->second;
  };
  slow.ranks = numbers(text("hold"));
  if (!text("burst").empty()) slow.burst = number(text("burst"));
  if (slow.burst == 0) slow.burst = 1;
  slow.changing = !text("stutter").empty() && number(text("stutter")) != 0;
  if (slow.changing && slow.ranks.empty())
    for (int rank = 0; rank < job.ranks; rank++) slow.ranks.push_back(rank);
  return slow;
}

}  // namespace cuco::driver

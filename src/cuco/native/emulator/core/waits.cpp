#include "waits.h"

#include "grid.h"
#include "memory.h"
#include "words.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace cuco::emu {

namespace {

struct Wait {
  const EmuModule* module;
  uint32_t site;
  uint64_t address, value;
  int step, writer_step, writer_rank;
  int64_t cta, thread;
  const char* kernel;
};

std::vector<int>& steps() {
  static std::vector<int> all(kMaxRanks, 0);
  return all;
}

// Last accepted update per rank, instruction and word: enough to explain the step that went wrong, and bounded.
using Key = std::tuple<int, const EmuModule*, uint32_t, uint64_t>;
std::map<Key, Wait>& waits() {
  static std::map<Key, Wait> all;
  return all;
}

}  // namespace

void set_step(int rank, int step) { steps()[static_cast<size_t>(rank)] = step; }
int step_of(int rank) { return steps()[static_cast<size_t>(rank)]; }

void note_wait(EmuThread* self, uint32_t site, uint64_t address, uint64_t value, AgentId writer) {
  const AgentInfo& info = agent_info(writer);
  if (info.rank < 0) return;
  const ThreadPlace place = place_of(self);
  const EmuModule& module = module_of(self);
  waits()[{place.rank, &module, site, address}] = {
      &module, site, address, value, step_of(place.rank), info.step, info.rank, place.cta,
      static_cast<int64_t>(place.thread), place.kernel};
}

bool explain_stale_waits(Finding& finding, int rank, int step) {
  bool found = false;
  for (const auto& [key, wait] : waits()) {
    if (std::get<0>(key) != rank || wait.step != step || wait.writer_step >= step) continue;
    const Place place = user_place(*wait.module, wait.site);
    const std::string line = "rank " + std::to_string(rank) + "'s wait for " + name_of_word(wait.address) + " (" +
                             describe(place) + ") accepted the value " + std::to_string(wait.value) +
                             ", which rank " + std::to_string(wait.writer_rank) + " had written in step " +
                             std::to_string(wait.writer_step) + ", not " + std::to_string(step);
    finding.details.push_back(line);
    if (found) continue;
    found = true;
    finding.kind = "stale-signal";
    finding.file = place.file;
    finding.line = place.line;
    finding.cta = wait.cta;
    finding.thread = wait.thread;
    finding.kernel = wait.kernel;
    finding.message += "; " + line;
  }
  return found;
}

}  // namespace cuco::emu

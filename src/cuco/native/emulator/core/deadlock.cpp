// Explains a deadlock: who waits for what, as far as the core can see it.
#include "history.h"
#include "memory.h"
#include "runtime.h"

#include <cstring>
#include <map>

namespace cuco::emu {
namespace {

std::string triple(const uint32_t* v) {
  return "(" + std::to_string(v[0]) + "," + std::to_string(v[1]) + "," + std::to_string(v[2]) + ")";
}

std::string value_of(uint64_t address, uint32_t bytes) {
  uint64_t value = 0;
  std::memcpy(&value, reinterpret_cast<const char*>(address), std::min(bytes, 8u));
  return std::to_string(value);
}

std::string barrier_text(const Thread& t) {
  const Barrier& bar = t.cta().barriers[t.wait_detail];
  const uint32_t wanted = bar.count ? bar.count : t.cta().live;
  const bool cluster = t.wait_detail == EMU_BAR_CLUSTER;
  return (cluster ? std::string("the cluster barrier") : "barrier " + std::to_string(t.wait_detail)) +
         ", which has " + std::to_string(bar.arrived) + " of " + std::to_string(wanted) + " threads";
}

std::string warp_text(const Thread& t) {
  for (const Meeting& meeting : t.cta().warps[t.warp].meetings)
    if (meeting.arrived >> t.lane & 1)
      return "a warp operation that has " + std::to_string(__builtin_popcount(meeting.arrived)) + " of " +
             std::to_string(__builtin_popcount(meeting.mask)) + " lanes";
  return "a warp operation";
}

std::string mbarrier_text(const Thread& t) {
  auto it = t.cta().mbarriers.find(t.wait_address);
  if (it == t.cta().mbarriers.end()) return "an mbarrier";
  const MBarrier& bar = it->second;
  return "an mbarrier in phase " + std::to_string(bar.phase) + " that lacks " + std::to_string(bar.pending) +
         " arrivals and " + std::to_string(bar.tx) + " bytes";
}

std::string word_text(const Thread& t) {
  const Word* word = find_word(t.wait_address);
  const std::string has = value_of(t.wait_address, word ? word->size : 4);
  return name_of_word(t.wait_address) + ", which has the value " + has + " and nobody changes it";
}

// What a thread waits for, without who it is.
std::string wait_text(const Thread& t) {
  const std::string at = t.wait_site ? " in " + describe_site(module_of(&t), t.wait_site) : "";
  switch (t.wait) {
    case Wait::barrier: return at + " for " + barrier_text(t);
    case Wait::warp: return at + " for " + warp_text(t);
    case Wait::active_mask: return at + " in activemask";
    case Wait::word: return at + " for " + word_text(t);
    case Wait::shared_word: return at + " for a shared memory word, which has the value " + value_of(t.wait_address, 4);
    case Wait::mbarrier: return at + " for " + mbarrier_text(t);
    case Wait::yield: return at + " (polls several words or the clock)";
    case Wait::none: break;
  }
  return at + " for its turn";
}

bool is_root(Wait wait) {
  return wait == Wait::word || wait == Wait::yield || wait == Wait::mbarrier || wait == Wait::shared_word;
}

struct Group { const Thread* first; uint32_t count; };

// The threads of a CTA by what they wait for.
std::map<std::string, Group> groups_of(const Block& block) {
  std::map<std::string, Group> groups;
  for (uint32_t i = 0; i < block.unstarted; i++) {
    const Thread& t = block.threads[i];
    if (t.done) continue;
    auto [it, fresh] = groups.emplace(wait_text(t), Group{&t, 0});
    it->second.count++;
  }
  return groups;
}

// Points the finding at the thread that waits for something outside its CTA, if there is one.
void blame(Finding& finding, const Thread& t) {
  const bool better = finding.thread < 0;
  if (!better || !is_root(t.wait)) return;
  const ThreadPlace place = place_of(&t);
  const Place user = user_place(module_of(&t), t.wait_site);
  finding.rank = place.rank;
  finding.cta = place.cta;
  finding.thread = place.thread;
  finding.kernel = place.kernel;
  finding.file = user.file;
  finding.line = user.line;
  if (t.wait == Wait::word) finding.buffer = name_of_word(t.wait_address);
  finding.message = "deadlock: rank " + std::to_string(place.rank) + " kernel " + place.kernel + " block " +
                    triple(place.cta_id) + " thread " + triple(place.thread_id) + " waits" + wait_text(t);
}

void explain_blocks(Finding& finding) {
  std::map<std::string, std::pair<std::string, uint32_t>> similar;   // what -> first block, how many more
  for (const Block* block : resident_blocks()) {
    std::string text;
    for (const auto& [what, group] : groups_of(*block)) {
      blame(finding, *group.first);
      text += (text.empty() ? "" : "; ") + std::to_string(group.count) +
              (group.count == 1 ? " thread (" : " threads (first ") + std::to_string(group.first->linear) + ") waiting" +
                  what;
    }
    const std::string kernel = "rank " + std::to_string(block->grid->launch.rank) + " kernel " +
                               block->grid->launch.kernel->name;
    const std::string first = kernel + " block " + triple(block->ctaid) + ": " + text;
    auto [it, fresh] = similar.emplace(kernel + text, std::make_pair(first, 0));
    if (!fresh) it->second.second++;
  }
  for (const auto& [key, line] : similar)
    finding.details.push_back(
        line.first + (line.second ? " (and " + std::to_string(line.second) + " more blocks alike)" : ""));
}

void explain_waiting_ctas(Finding& finding) {
  for (int rank = 0; rank < settings().ranks; rank++) {
    const Residency r = residency(rank);
    if (r.waiting_ctas)
      finding.details.push_back("rank " + std::to_string(rank) + ": " + std::to_string(r.waiting_ctas) +
                                " blocks have no free slot while " + std::to_string(r.ctas) + " resident blocks wait");
  }
}

}  // namespace

Finding explain_deadlock(const Scheduler::Impl& state) {
  Finding finding{.kind = "deadlock", .rule = "nothing-can-run"};
  explain_blocks(finding);
  explain_waiting_ctas(finding);
  for (const auto& host : state.hosts)
    if (!host->done)
      finding.details.push_back("rank " + std::to_string(host->rank) + " " + host->name + ": waits in " +
                                (host->describe ? host->describe() : std::string("a polling loop")));
  for (Actor* actor : state.actors) {
    const std::string text = actor->idle() ? "" : actor->describe();
    if (!text.empty()) finding.details.push_back("rank " + std::to_string(actor->rank()) + ": " + text);
  }
  bool slots = false;
  for (int rank = 0; rank < settings().ranks; rank++) slots |= residency(rank).waiting_ctas > 0;
  if (slots && finding.thread >= 0) {
    finding.kind = "co-residency";
    finding.message += "; other blocks of the grid have no free slot";
  }
  if (finding.message.empty())
    finding.message =
        "deadlock: nothing can run" + (finding.details.empty() ? std::string() : ": " + finding.details.front());
  return finding;
}

}  // namespace cuco::emu

#include "phase.h"

#include "block.h"
#include "runtime.h"
#include "trace.h"

#include <algorithm>
#include <map>

namespace cuco::emu {

uint64_t switch_count = 0;

namespace {

std::vector<CtaPhases> finished;
std::vector<std::vector<uint64_t>> work_table;

// The counters of the running thread's CTA as they were when a strong load returned to it. One is enough: it is of use
// only as long as no other thread has run.
struct Mark {
  const Thread* thread = nullptr;
  uint64_t switches = 0;
  uint64_t progress = 0;
  std::vector<uint64_t> counters, dynamic;
} mark_;

uint32_t work_index(std::vector<uint64_t> work) {
  static std::map<std::vector<uint64_t>, uint32_t> index;
  auto [it, fresh] = index.emplace(std::move(work), static_cast<uint32_t>(work_table.size()));
  if (fresh) work_table.push_back(it->first);
  return it->second;
}

// Calls f(i) for every basic block of the kernel.
template <class F>
void each_block(const Block& block, F f) {
  const EmuKernel& kernel = *block.grid->launch.kernel;
  for (uint32_t r = 0; r < kernel.nranges; r++)
    for (uint32_t i = 0; i < kernel.ranges[r].count; i++) f(kernel.ranges[r].first + i);
}

uint32_t count_work(const Block& block, const uint64_t* counters, const uint64_t* dynamic) {
  const EmuModule& module = *block.grid->launch.module->module;
  std::vector<uint64_t> work(dynamic, dynamic + module.nclasses);
  each_block(block, [&](uint32_t b) {
    if (!counters[b]) return;
    const uint32_t* classes = module.block_classes + size_t{b} * module.nclasses;
    for (uint32_t c = 0; c < module.nclasses; c++) work[c] += counters[b] * classes[c];
  });
  return work_index(std::move(work));
}

}  // namespace

void PhaseRecorder::begin(Block& block) {
  const EmuModule& module = *block.grid->launch.module->module;
  counters_.assign(module.nblocks, 0);
  dynamic_.assign(module.nclasses, 0);
  block.counters = counters_.data();
  block.dynamic_classes = dynamic_.data();
  done_.clear();
  open_ = FinishedPhase();
  phase_max_ = plain_max_ = 0;
  joins_ = 0;
  plain_ = true;
}

void PhaseRecorder::arrive(Thread* t) {
  const uint64_t spent = t->progress - t->phase_start;
  phase_max_ = std::max(phase_max_, spent);
  t->phase_start = t->progress;
  if (!t->extra || t->extra->strand.events.empty()) return;
  open_.strands.push_back({t->linear, spent, std::move(t->extra->strand.events)});
  t->extra->strand.events.clear();
}

// Phases without events and without remote traffic are joined with their neighbours.
void PhaseRecorder::join(Block& block) {
  if (!tracing()) return;
  if (!plain_) {
    close(block);
    return;
  }
  plain_max_ += phase_max_;
  phase_max_ = 0;
  joins_++;
  at_join_.resize(counters_.size());
  each_block(block, [&](uint32_t b) { at_join_[b] = counters_[b]; });
  at_join_dynamic_ = dynamic_;
}

void PhaseRecorder::close(Block& block) {
  open_.work = count_work(block, counters_.data(), dynamic_.data());
  open_.max_progress = plain_max_ + phase_max_;
  std::sort(open_.strands.begin(), open_.strands.end(), [](const auto& a, const auto& b) { return a.thread < b.thread; });
  std::sort(open_.remote.begin(), open_.remote.end(), [](const auto& a, const auto& b) { return a.peer < b.peer; });
  done_.push_back(std::move(open_));
  open_ = FinishedPhase();
  each_block(block, [&](uint32_t b) { counters_[b] = 0; });
  std::fill(dynamic_.begin(), dynamic_.end(), 0);
  phase_max_ = plain_max_ = 0;
  joins_ = 0;
  plain_ = true;
  mark_.thread = nullptr;
}

// The first event after plain joins: what lies before the last join becomes a phase of its own.
void PhaseRecorder::split_plain(Block& block) {
  plain_ = false;
  if (!joins_) return;
  FinishedPhase before;
  before.work = count_work(block, at_join_.data(), at_join_dynamic_.data());
  before.max_progress = plain_max_;
  done_.push_back(std::move(before));
  each_block(block, [&](uint32_t b) { counters_[b] -= at_join_[b]; });
  for (size_t c = 0; c < dynamic_.size(); c++) dynamic_[c] -= at_join_dynamic_[c];
  plain_max_ = 0;
  joins_ = 0;
  mark_.thread = nullptr;
}

void PhaseRecorder::end(Block& block) {
  if (!tracing()) return;
  close(block);
  finished.push_back({block.grid->id, block.index, std::move(done_)});
  done_.clear();
}

void PhaseRecorder::event(Thread* t, Sync kind, uint32_t word, int64_t value) {
  if (!tracing()) return;
  if (plain_) split_plain(t->cta());
  t->more().strand.events.push_back({t->progress - t->phase_start, kind, word, value});
}

void PhaseRecorder::drop_wait(Thread* t) {
  if (!t->extra || t->extra->strand.events.empty()) return;
  const Sync kind = t->extra->strand.events.back().kind;
  if (kind == Sync::wait_count || kind == Sync::wait_version) t->extra->strand.events.pop_back();
}

void PhaseRecorder::remote(Block& block, int peer, uint64_t bytes, bool write) {
  if (!tracing()) return;
  if (plain_) split_plain(block);
  auto it = std::find_if(open_.remote.begin(), open_.remote.end(), [&](const Remote& r) { return r.peer == peer; });
  if (it == open_.remote.end()) it = open_.remote.insert(it, {peer, 0, 0});
  (write ? it->written : it->read) += bytes;
}

void PhaseRecorder::mark(Block& block, Thread* t) {
  mark_.thread = t;
  mark_.switches = switch_count;
  mark_.progress = t->progress;
  if (!tracing()) return;
  mark_.counters.resize(std::max(mark_.counters.size(), counters_.size()));
  each_block(block, [&](uint32_t b) { mark_.counters[b] = counters_[b]; });
  mark_.dynamic = dynamic_;
}

bool PhaseRecorder::take_back(Block& block, Thread* t, uint32_t iterations) {
  if (mark_.thread != t || mark_.switches != switch_count) return false;
  const uint64_t times = iterations - 1;   // of the last iteration, beyond the last itself
  t->progress = mark_.progress - (t->progress - mark_.progress) * times;
  if (!tracing()) return true;
  each_block(block, [&](uint32_t b) {
    counters_[b] = mark_.counters[b] - (counters_[b] - mark_.counters[b]) * times;
  });
  for (size_t c = 0; c < dynamic_.size(); c++)
    dynamic_[c] = mark_.dynamic[c] - (dynamic_[c] - mark_.dynamic[c]) * times;
  return true;
}

std::vector<CtaPhases>& finished_ctas() { return finished; }
const std::vector<std::vector<uint64_t>>& distinct_work() { return work_table; }

}  // namespace cuco::emu

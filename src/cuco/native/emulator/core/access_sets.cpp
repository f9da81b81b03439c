#include "access_sets.h"

#include "memory.h"
#include "trace.h"

#include <algorithm>
#include <string>

namespace cuco::emu {

void ByteRanges::add(uint64_t begin, uint64_t end) {
  // Threads of a CTA mostly walk upwards: extending the last range keeps the list short.
  if (!ranges_.empty() && begin >= ranges_.back().first && begin <= ranges_.back().second) {
    ranges_.back().second = std::max(ranges_.back().second, end);
    return;
  }
  ranges_.emplace_back(begin, end);
  if (ranges_.size() < limit_) return;
  compact();
  limit_ = std::max<size_t>(4096, 2 * ranges_.size());
}

void ByteRanges::compact() {
  std::sort(ranges_.begin(), ranges_.end());
  size_t last = 0;
  for (size_t i = 1; i < ranges_.size(); i++) {
    if (ranges_[i].first <= ranges_[last].second) {
      ranges_[last].second = std::max(ranges_[last].second, ranges_[i].second);
    } else {
      ranges_[++last] = ranges_[i];
    }
  }
  if (!ranges_.empty()) ranges_.resize(last + 1);
}

const std::vector<std::pair<uint64_t, uint64_t>>& ByteRanges::merged() {
  compact();
  return ranges_;
}

void AccessSets::global_access(EmuThread* self, uint64_t address, uint32_t bytes, EmuAccess access, uint32_t) {
  Sets& sets = open_[self->block];
  if (access != EMU_WRITE) sets.reads.add(address, address + bytes);
  if (access != EMU_READ) sets.writes.add(address, address + bytes);
}

void AccessSets::cta_started(EmuThread* first) { open_[first->block] = {place_of(first), {}, {}}; }

namespace {

// [[buffer, begin, end], ...]; ranges outside every named allocation are left out, they belong to no buffer.
std::string named(ByteRanges& ranges) {
  std::string json = "[";
  for (auto [begin, end] : ranges.merged()) {
    const Allocation* allocation = memory().find(begin);
    if (!allocation || allocation->name.empty()) continue;
    if (json.size() > 1) json += ",";
    json += "[" + json_string(allocation->name) + "," + std::to_string(begin - allocation->address) + "," +
            std::to_string(end - allocation->address) + "]";
  }
  return json + "]";
}

}  // namespace

void AccessSets::cta_ended(EmuBlock* block) {
  auto found = open_.find(block);
  if (found == open_.end()) return;
  Sets& sets = found->second;
  Record record;
  record.raw("set", "[" + std::to_string(sets.place.launch) + "," + std::to_string(sets.place.cta) + "]");
  record.put("rank", sets.place.rank).put("kernel", sets.place.kernel);
  record.put("grid", std::vector<int64_t>{block->nctaid[0], block->nctaid[1], block->nctaid[2]});
  record.put("block", std::vector<int64_t>{block->ntid[0], block->ntid[1], block->ntid[2]});
  record.raw("w", named(sets.writes)).raw("r", named(sets.reads));
  trace_record(record);
  open_.erase(found);
}

}  // namespace cuco::emu

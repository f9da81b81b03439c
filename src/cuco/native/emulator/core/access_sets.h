// Read and write sets per CTA (hooks variant): which bytes of which buffer every CTA of every kernel touches. They tell
// a proposer which CTAs complete which part of a buffer.
#pragma once

#include "grid.h"

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cuco::emu {

// Byte ranges [first, second), merged where they touch.
class ByteRanges {
 public:
  void add(uint64_t begin, uint64_t end);
  const std::vector<std::pair<uint64_t, uint64_t>>& merged();   // sorted, disjoint, not touching

 private:
  void compact();
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;
  size_t limit_ = 4096;   // compact when reached
};

// Writes one trace record per CTA when it ends (docs/trace.md): {"set": [launch, cta], "rank", "kernel", "grid",
// "w": [[buffer, begin, end], ...], "r": [...]}, offsets in bytes from the start of the named allocation.
class AccessSets final : public AccessObserver {
 public:
  void global_access(EmuThread* self, uint64_t address, uint32_t bytes, EmuAccess access, uint32_t site) override;
  void shared_access(EmuThread*, uint32_t, uint32_t, EmuAccess, uint32_t) override {}
  void cta_started(EmuThread* first) override;
  void cta_ended(EmuBlock* block) override;

 private:
  struct Sets {
    ThreadPlace place;
    ByteRanges reads, writes;
  };
  std::unordered_map<const EmuBlock*, Sets> open_;
};

}  // namespace cuco::emu

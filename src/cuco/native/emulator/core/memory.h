// Device memory: one memfd arena per rank at a fixed address, aliases of it (windows in NCCL's flat load/store space),
// pinned host memory, and the table of allocations that says what an address is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cuco::emu {

// Fixed zones of the address space; `rank` follows from the address alone.
constexpr uint64_t kArenaZone = 0x110000000000ull, kArenaStride = 1ull << 37;     // device memory, 128 GiB a rank
constexpr uint64_t kPinnedZone = 0x1a0000000000ull, kPinnedStride = 1ull << 36;   // page-locked host memory
constexpr uint64_t kAliasZone = 0x200000000000ull, kAliasEnd = 0x300000000000ull;
constexpr uint64_t kSharedZone = 0x300000000000ull, kSharedEnd = 0x310000000000ull;  // shared memory of CTAs
constexpr uint64_t kStackZone = 0x310000000000ull, kStackEnd = 0x330000000000ull;    // stacks = local memory
constexpr uint64_t kParamZone = 0x330000000000ull, kParamEnd = 0x338000000000ull;    // kernel parameters
constexpr int kMaxRanks = 64;
constexpr uint64_t kPage = 4096;

enum class MemoryKind { device, window, internal, symbol, pinned };   // window: ncclMemAlloc; internal: NCCL's own

struct Allocation {
  uint64_t address = 0;
  uint64_t bytes = 0;        // as asked for
  int rank = -1;
  MemoryKind kind = MemoryKind::device;
  std::string name;          // for messages: "recv", "devcomm 0 signals"; may be ""
  bool freed = false;        // in quarantine
  uint64_t serial = 0;       // order of allocation
};

class Memory {
 public:
  explicit Memory(int ranks, uint64_t bytes_per_rank, uint8_t poison);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Fresh memory filled with poison (internal: zero), redzones on both sides. 0 when the rank's memory is exhausted.
  // align: power of two; at least 256 is used. bytes 0 is allowed and gets its own page.
  uint64_t allocate(int rank, uint64_t bytes, uint64_t align, MemoryKind kind, std::string name = "");
  // false: not the start of a live allocation. Freed memory is poisoned and kept in quarantine before reuse.
  bool release(uint64_t address);
  void rename(uint64_t address, std::string name);
  uint64_t free_bytes(int rank) const;

  // The allocation that contains address (canonical or alias), or nullptr. Freed ones too while in quarantine.
  const Allocation* find(uint64_t address) const;
  // Whether [address, address + bytes) lies inside one live allocation.
  bool valid(uint64_t address, uint64_t bytes) const;
  // "recv+64", "freed recv+64", "32 bytes after recv", "device memory of rank 1 that was never allocated".
  std::string describe(uint64_t address) const;
  std::vector<const Allocation*> allocations(int rank) const;
  // First allocation (live or quarantined) whose redzone or poison has been overwritten since the last call.
  struct Damage { const Allocation* allocation; int64_t offset; };  // offset from its start; negative: in front of it
  std::vector<Damage> check_redzones();

  // Aliases. Reserve address space once, then map page-aligned pieces of arenas into it. MAP_SHARED of one memfd: a
  // store through an alias is a store to the arena.
  uint64_t reserve_alias(uint64_t bytes, uint64_t align = 1ull << 32);
  void map_alias(uint64_t alias, uint64_t address, uint64_t bytes);
  void unmap_alias(uint64_t alias, uint64_t bytes);
  // The arena address behind an alias; other addresses are returned unchanged. 0 for a hole in the alias zone.
  uint64_t canonical(uint64_t address) const {
    return address - kAliasZone < kAliasEnd - kAliasZone ? resolve_alias(address) : address;
  }

  // Rank of a device address (canonical or alias) or of pinned memory; -1 for anything else.
  int rank_of(uint64_t address) const;
  static bool in_arena(uint64_t address) { return address - kArenaZone < kMaxRanks * kArenaStride; }
  static bool in_pinned(uint64_t address) { return address - kPinnedZone < kMaxRanks * kPinnedStride; }
  static bool in_shared(uint64_t address) { return address - kSharedZone < kSharedEnd - kSharedZone; }
  static bool in_stack(uint64_t address) { return address - kStackZone < kStackEnd - kStackZone; }
  static bool in_params(uint64_t address) { return address - kParamZone < kParamEnd - kParamZone; }
  uint64_t arena_lo(int rank) const { return kArenaZone + kArenaStride * static_cast<uint64_t>(rank); }
  uint64_t arena_hi(int rank) const { return arena_lo(rank) + kArenaStride; }

 private:
  struct Alias { uint64_t end, target; };
  struct Arena;
  uint64_t resolve_alias(uint64_t address) const;
  Arena& arena_for(int rank, MemoryKind kind) const;
  Arena& arena_of(uint64_t address) const;
  std::string describe_gap(uint64_t address) const;
  void retire(Arena& arena);
  std::vector<std::unique_ptr<Arena>> arenas_;   // device arenas by rank, then pinned ones
  std::map<uint64_t, Allocation> table_;         // by address; quarantined ones stay
  std::map<uint64_t, Alias> aliases_;            // by first alias address
  mutable uint64_t alias_lo_ = 1, alias_hi_ = 0, alias_delta_ = 0;   // the alias looked up last
  mutable uint64_t valid_lo_ = 1, valid_hi_ = 0;                     // the live allocation looked up last
  uint64_t next_alias_ = kAliasZone, serial_ = 0;
  int ranks_;
  uint64_t bytes_per_rank_;
  uint8_t poison_;
};
Memory& memory();

}  // namespace cuco::emu

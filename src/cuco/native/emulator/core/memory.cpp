#include "memory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>

namespace cuco::emu {
namespace {

constexpr uint64_t kRedzone = 256;
constexpr uint8_t kRedzoneByte = 0xFD, kFreedByte = 0xDD;
constexpr uint64_t kStep = 2ull << 20;              // an arena becomes accessible in steps
constexpr uint64_t kQuarantineBytes = 64ull << 20;
constexpr size_t kQuarantineBlocks = 4096;

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }
char* pointer(uint64_t address) { return reinterpret_cast<char*>(address); }

[[noreturn]] void cannot(const char* what) {
  std::fprintf(stderr, "cuco: the emulator cannot %s: %s\n", what, std::strerror(errno));
  std::exit(70);
}

bool clean(uint64_t from, uint64_t bytes, uint8_t byte, int64_t& first) {
  const char* p = pointer(from);
  for (uint64_t i = 0; i < bytes; i++)
    if (static_cast<uint8_t>(p[i]) != byte) {
      first = static_cast<int64_t>(i);
      return false;
    }
  return true;
}

}  // namespace

// One rank's device memory or pinned memory: bump allocation, blocks of freed memory reused after quarantine.
struct Memory::Arena {
  uint64_t base = 0, size = 0, cursor = 0, open_end = 0;
  uint64_t used = 0;
  int fd = -1;
  std::deque<uint64_t> quarantine;
  uint64_t quarantined = 0;
  std::multimap<uint64_t, uint64_t> reusable;   // capacity -> address

  Arena(uint64_t base_address, uint64_t bytes, const char* name) : base(base_address), size(bytes) {
    fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(size)) != 0) cannot("create an arena");
    void* p = mmap(pointer(base), size, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fd, 0);
    if (p == MAP_FAILED) cannot("map an arena");
    cursor = open_end = base;
  }
  ~Arena() {
    munmap(pointer(base), size);
    close(fd);
  }
  bool open_until(uint64_t end) {
    if (end > base + size) return false;
    if (end <= open_end) return true;
    const uint64_t target = std::min(base + size, round_up(end, kStep));
    if (mprotect(pointer(open_end), target - open_end, PROT_READ | PROT_WRITE) != 0) cannot("open an arena");
    open_end = target;
    return true;
  }
};

Memory::Memory(int ranks, uint64_t bytes_per_rank, uint8_t poison)
    : ranks_(ranks), bytes_per_rank_(std::min(round_up(bytes_per_rank, kStep), kArenaStride)), poison_(poison) {
  if (ranks < 1 || ranks > kMaxRanks) throw std::invalid_argument("ranks must be 1 to 64");
  for (int r = 0; r < ranks; r++)
    arenas_.push_back(std::make_unique<Arena>(arena_lo(r), bytes_per_rank_, "cuco-device"));
  for (int r = 0; r < ranks; r++)
    arenas_.push_back(
        std::make_unique<Arena>(kPinnedZone + kPinnedStride * static_cast<uint64_t>(r), 16ull << 30, "cuco-pinned"));
}

Memory::~Memory() = default;

Memory::Arena& Memory::arena_for(int rank, MemoryKind kind) const {
  return *arenas_[static_cast<size_t>(kind == MemoryKind::pinned ? ranks_ + rank : rank)];
}

Memory::Arena& Memory::arena_of(uint64_t address) const {
  const int rank = rank_of(address);
  return arena_for(rank, in_pinned(address) ? MemoryKind::pinned : MemoryKind::device);
}

uint64_t Memory::allocate(int rank, uint64_t bytes, uint64_t align, MemoryKind kind, std::string name) {
  Arena& arena = arena_for(rank, kind);
  align = std::max<uint64_t>(align, bytes ? 256 : kPage);
  const uint64_t capacity = round_up(std::max<uint64_t>(bytes, 1), 256);
  uint64_t address = 0;
  for (auto it = arena.reusable.lower_bound(capacity); it != arena.reusable.end() && it->first <= 2 * capacity; ++it)
    if (it->second % align == 0) {
      address = it->second;
      arena.reusable.erase(it);
      table_.erase(address);
      break;
    }
  if (!address) {
    address = round_up(arena.cursor + kRedzone, align);
    if (!arena.open_until(address + capacity + kRedzone)) return 0;
    arena.cursor = address + capacity + kRedzone;
  }
  std::memset(pointer(address - kRedzone), kRedzoneByte, kRedzone);
  std::memset(pointer(address + bytes), kRedzoneByte, capacity - bytes + kRedzone);
  std::memset(pointer(address), kind == MemoryKind::internal ? 0 : poison_, bytes);
  table_[address] = {address, bytes, rank, kind, std::move(name), false, ++serial_};
  arena.used += capacity;
  return address;
}

// Lets the oldest freed blocks be reused while the quarantine is over its limits.
void Memory::retire(Arena& arena) {
  while (arena.quarantined > kQuarantineBytes || arena.quarantine.size() > kQuarantineBlocks) {
    const uint64_t address = arena.quarantine.front();
    arena.quarantine.pop_front();
    const uint64_t capacity = round_up(std::max<uint64_t>(table_[address].bytes, 1), 256);
    arena.quarantined -= capacity;
    arena.reusable.emplace(capacity, address);
  }
}

bool Memory::release(uint64_t address) {
  auto it = table_.find(address);
  if (it == table_.end() || it->second.freed) return false;
  Arena& arena = arena_of(address);
  const uint64_t capacity = round_up(std::max<uint64_t>(it->second.bytes, 1), 256);
  std::memset(pointer(address), kFreedByte, it->second.bytes);
  it->second.freed = true;
  valid_lo_ = 1, valid_hi_ = 0;
  arena.used -= capacity;
  arena.quarantine.push_back(address);
  arena.quarantined += capacity;
  retire(arena);
  return true;
}

void Memory::rename(uint64_t address, std::string name) {
  auto it = table_.find(canonical(address));
  if (it != table_.end()) it->second.name = std::move(name);
}

uint64_t Memory::free_bytes(int rank) const { return bytes_per_rank_ - arena_for(rank, MemoryKind::device).used; }

const Allocation* Memory::find(uint64_t address) const {
  address = canonical(address);
  auto it = table_.upper_bound(address);
  if (it == table_.begin()) return nullptr;
  --it;
  return address - it->second.address < std::max<uint64_t>(it->second.bytes, 1) ? &it->second : nullptr;
}

bool Memory::valid(uint64_t address, uint64_t bytes) const {
  address = canonical(address);
  if (address >= valid_lo_ && address + bytes <= valid_hi_) return true;
  const Allocation* a = find(address);
  if (!a || a->freed || address + bytes > a->address + a->bytes) return false;
  valid_lo_ = a->address;
  valid_hi_ = a->address + a->bytes;
  return true;
}

namespace {
std::string named(const Allocation& a) {
  const std::string what = a.name.empty() ? std::string(a.kind == MemoryKind::pinned ? "pinned host memory"
                                                                                     : "an allocation") +
                                                " of " + std::to_string(a.bytes) + " bytes"
                                          : a.name;
  return (a.freed ? "freed " : "") + what;
}
}  // namespace

std::string Memory::describe_gap(uint64_t address) const {
  auto after = table_.upper_bound(address);
  if (after != table_.begin()) {
    const Allocation& before = std::prev(after)->second;
    const uint64_t distance = address - before.address - before.bytes;
    if (before.rank == rank_of(address) && distance < 65536)
      return std::to_string(distance) + " bytes past the end of " + named(before);
  }
  if (after != table_.end() && after->second.rank == rank_of(address) && after->first - address < 4096)
    return std::to_string(after->first - address) + " bytes in front of " + named(after->second);
  return "memory that was never allocated";
}

std::string Memory::describe(uint64_t given) const {
  const uint64_t address = canonical(given);
  char hex[32];
  std::snprintf(hex, sizeof hex, "0x%llx", static_cast<unsigned long long>(given));
  if (address == 0 && given) return "a hole in the flat window space (" + std::string(hex) + ")";
  if (given < 65536) return given ? "a null pointer + " + std::to_string(given) : "a null pointer";
  if (in_shared(address)) return "shared memory";
  if (in_stack(address)) return "local memory";
  if (in_params(address)) return "kernel parameters";
  const int rank = rank_of(address);
  if (rank < 0 || rank >= ranks_) return "host memory (" + std::string(hex) + ")";
  const std::string where = " of rank " + std::to_string(rank);
  if (const Allocation* a = find(address)) {
    const uint64_t offset = address - a->address;
    return named(*a) + (offset ? "+" + std::to_string(offset) : "") + where;
  }
  return describe_gap(address) + where;
}

std::vector<const Allocation*> Memory::allocations(int rank) const {
  std::vector<const Allocation*> list;
  for (const auto& [address, a] : table_)
    if (a.rank == rank && !a.freed) list.push_back(&a);
  return list;
}

// What is found is repaired, so that it is reported once.
std::vector<Memory::Damage> Memory::check_redzones() {
  std::vector<Damage> found;
  auto check = [&](const Allocation& a, uint64_t from, uint64_t bytes, uint8_t byte) {
    int64_t first;
    if (clean(from, bytes, byte, first)) return;
    found.push_back({&a, static_cast<int64_t>(from - a.address) + first});
    std::memset(pointer(from), byte, bytes);
  };
  for (const auto& [address, a] : table_) {
    const uint64_t capacity = round_up(std::max<uint64_t>(a.bytes, 1), 256);
    check(a, address - kRedzone, kRedzone, kRedzoneByte);
    check(a, address + a.bytes, capacity - a.bytes + kRedzone, kRedzoneByte);
    if (a.freed) check(a, address, a.bytes, kFreedByte);
  }
  return found;
}

uint64_t Memory::reserve_alias(uint64_t bytes, uint64_t align) {
  const uint64_t address = round_up(next_alias_, align);
  next_alias_ = address + round_up(bytes, kPage);
  if (next_alias_ > kAliasEnd) cannot("reserve more window address space");
  void* p = mmap(pointer(address), round_up(bytes, kPage), PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (p == MAP_FAILED) cannot("reserve window address space");
  return address;
}

void Memory::map_alias(uint64_t alias, uint64_t address, uint64_t bytes) {
  const Arena& arena = arena_of(address);
  bytes = round_up(bytes, kPage);
  void* p = mmap(pointer(alias), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, arena.fd,
                 static_cast<off_t>(address - arena.base));
  if (p == MAP_FAILED) cannot("map a window");
  aliases_[alias] = {alias + bytes, address};
}

void Memory::unmap_alias(uint64_t alias, uint64_t bytes) {
  mmap(pointer(alias), round_up(bytes, kPage), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  aliases_.erase(alias);
  alias_lo_ = 1, alias_hi_ = 0;
}

uint64_t Memory::resolve_alias(uint64_t address) const {
  if (address >= alias_lo_ && address < alias_hi_) return address + alias_delta_;
  auto it = aliases_.upper_bound(address);
  if (it == aliases_.begin() || address >= (--it)->second.end) return 0;
  alias_lo_ = it->first;
  alias_hi_ = it->second.end;
  alias_delta_ = it->second.target - it->first;
  return address + alias_delta_;
}

int Memory::rank_of(uint64_t address) const {
  address = canonical(address);
  if (in_arena(address)) return static_cast<int>((address - kArenaZone) / kArenaStride);
  if (in_pinned(address)) return static_cast<int>((address - kPinnedZone) / kPinnedStride);
  return -1;
}

}  // namespace cuco::emu

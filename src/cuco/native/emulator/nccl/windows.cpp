#include "windows.h"

#include "bridge.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace cuco::nccl {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kGranule = size_t{2} << 20;  // windows keep this distance, so that small overruns hit unmapped space
constexpr uint32_t kStride4G = 4;             // 16 GiB of windows per rank and communicator

size_t align_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

std::map<ncclWindow_t, Window*>& handles() {
  static std::map<ncclWindow_t, Window*> known;
  return known;
}

std::set<const Window*>& records() {
  static std::set<const Window*> known;
  return known;
}

}  // namespace

Spaces::Spaces(Clique& clique) : clique_(clique), stride_4g_(kStride4G) {
  const size_t stride = static_cast<size_t>(kStride4G) << 32;
  const int ranks = clique.size(), lsa = clique.lsa_ranks;
  // A peer index that belongs to another team lands up to `others` parts below or above: reserved, never mapped.
  const size_t others = static_cast<size_t>(ranks - lsa + 1);
  for (int team = 0; team < ranks / lsa; team++) {
    char* all = reserve_addresses(stride * (static_cast<size_t>(lsa) + 2 * others));
    reservations_.push_back(all);
    bases_.push_back(all + stride * others);
  }
  free_[0] = stride;
  for (int r = 0; r < ranks; r++)
    tables_.push_back(static_cast<ncclDevCommWindowTable*>(
        internal_alloc(clique.arenas[static_cast<size_t>(r)], sizeof(ncclDevCommWindowTable), "NCCL window table")));
}

Spaces::~Spaces() = default;

size_t Spaces::reserve(size_t span) {
  for (auto& [offset, bytes] : free_) {
    if (bytes < span) continue;
    const size_t found = offset, left = bytes - span;
    free_.erase(found);
    if (left) free_[found + span] = left;
    return found;
  }
  stop_run({"unsupported", "nccl-window-space", host_rank(),
            "the windows of communicator " + std::to_string(clique_.id) + " exceed " +
                std::to_string(kStride4G * 4) + " GiB per rank"});
}

void Spaces::release(size_t offset, size_t span) {
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && offset + span == next->first) {
    span += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += span;
      return;
    }
  }
  free_[offset] = span;
}

void Spaces::map_aliases(const Window& window, bool map) {
  if (window.flags & NCCL_WIN_GIN_ONLY) return;
  for (int r = 0; r < clique_.size(); r++) {
    char* alias = lsa_address(window, r, 0);
    const size_t bytes = align_up(window.sizes[static_cast<size_t>(r)], kPage);
    if (map) map_alias(alias, window.bases[static_cast<size_t>(r)], bytes);
    else unmap_alias(alias, bytes);
  }
}

char* Spaces::lsa_address(const Window& window, int rank, size_t offset) const {
  const size_t part = static_cast<size_t>(clique_.lsa_rank(rank)) * (static_cast<size_t>(stride_4g_) << 32);
  return base(clique_.lsa_team(rank)) + part + window.offset + offset;
}

ncclWindow_vidmem* Spaces::make_handle(Window& window, int rank) {
  auto* handle = static_cast<ncclWindow_vidmem*>(
      internal_alloc(clique_.arenas[static_cast<size_t>(rank)], sizeof(ncclWindow_vidmem), "NCCL window"));
  handle->winHost = &window;
  handle->lsaFlatBase = base(clique_.lsa_team(rank)) + window.offset;
  handle->lsaRank = clique_.lsa_rank(rank);
  handle->worldRank = rank;
  handle->stride4G = stride_4g_;
  handle->winFlags = static_cast<uint32_t>(window.flags);
  for (ncclGinWindow_t& gin : handle->ginWinsDefaultBackend) gin = &window;
  handle->numSegments = 1;
  handles()[handle] = &window;
  return handle;
}

// Keeps the device table that ncclFindWindow searches: chunks of 32 entries, empty ones have size 0.
void Spaces::list(const Window& window, int rank, bool add) {
  ncclDevCommWindowTable* table = tables_[static_cast<size_t>(rank)];
  const ncclWindow_t handle = window.handles[static_cast<size_t>(rank)];
  const ncclWindow_t wanted = add ? nullptr : handle;
  while (true) {
    for (auto& entry : table->entries)
      if (entry.window == wanted) {
        entry = add ? ncclDevCommWindowTable::Entry{reinterpret_cast<uintptr_t>(window.bases[static_cast<size_t>(rank)]),
                                                    window.sizes[static_cast<size_t>(rank)], handle}
                    : ncclDevCommWindowTable::Entry{};
        return;
      }
    if (!table->next) {
      if (!add) return;
      table->next = static_cast<ncclDevCommWindowTable*>(internal_alloc(
          clique_.arenas[static_cast<size_t>(rank)], sizeof(ncclDevCommWindowTable), "NCCL window table"));
    }
    table = table->next;
  }
}

Window& Spaces::add(std::vector<char*> bases, std::vector<size_t> sizes, int flags, const std::string& name) {
  windows_.push_back(std::make_unique<Window>());
  Window& window = *windows_.back();
  window.clique = &clique_;
  window.number = static_cast<int>(windows_.size()) - 1;
  window.name = name.empty() ? "window " + std::to_string(window.number) : "window " + name;
  window.bases = std::move(bases);
  window.sizes = std::move(sizes);
  window.flags = flags;
  window.live.assign(window.bases.size(), true);
  window.span = align_up(*std::max_element(window.sizes.begin(), window.sizes.end()), kGranule) + kGranule;
  window.offset = reserve(window.span);
  records().insert(&window);
  map_aliases(window, true);
  for (int r = 0; r < clique_.size(); r++) window.handles.push_back(make_handle(window, r));
  for (int r = 0; r < clique_.size(); r++) list(window, r, true);
  return window;
}

void Spaces::remove(Window& window, int rank) {
  list(window, rank, false);
  window.live[static_cast<size_t>(rank)] = false;
  ncclWindow_vidmem* handle = window.handles[static_cast<size_t>(rank)];
  handles().erase(handle);
  handle->lsaFlatBase = nullptr;  // kept, but a kernel that still uses it faults
  if (std::find(window.live.begin(), window.live.end(), true) != window.live.end()) return;
  map_aliases(window, false);
  release(window.offset, window.span);
}

Window* find_window(ncclWindow_t handle) {
  auto found = handles().find(handle);
  return found == handles().end() ? nullptr : found->second;
}

Window* find_gin_window(uint64_t handle) {
  auto* window = reinterpret_cast<Window*>(handle);
  return records().contains(window) ? window : nullptr;
}

int window_rank(const Window& window, ncclWindow_t handle) {
  for (size_t r = 0; r < window.handles.size(); r++)
    if (window.handles[r] == handle) return static_cast<int>(r);
  return -1;
}

std::string window_place(const Window& window, size_t offset) {
  return offset ? window.name + "+" + std::to_string(offset) : window.name;
}

}  // namespace cuco::nccl

// Windows: memory that the ranks of a communicator registered together. Every LSA team of a clique has one flat address
// space, rank r's part at base + r * stride; a window sits at the same offset in every part, whatever the ranks' own
// addresses are, by aliasing pages. Parts of other teams, and the space between windows, stay unmapped, so that a wrong
// peer or offset faults.
#pragma once

#include "clique.h"
#include "headers.h"

#include <string>
#include <vector>

namespace cuco::nccl {

struct Window {
  Clique* clique = nullptr;
  int number = 0;                             // in order of registration on its communicator
  std::string name;                           // the buffer's name where the driver gave one, else "window N"
  std::vector<char*> bases;                   // by clique rank: the user's address
  std::vector<size_t> sizes;                  // by clique rank, may differ
  std::vector<ncclWindow_vidmem*> handles;    // by clique rank: what ncclWindow_t points to, in that rank's memory
  std::vector<bool> live;                     // by clique rank: not yet deregistered there
  size_t offset = 0, span = 0;                // in the flat space
  int flags = 0;
};

// The flat spaces of a clique's LSA teams and the windows in them.
class Spaces {
 public:
  explicit Spaces(Clique& clique);
  ~Spaces();
  Spaces(const Spaces&) = delete;

  // Makes a window over memory that every rank offers; aliases it into every team's space unless it is GIN only.
  Window& add(std::vector<char*> bases, std::vector<size_t> sizes, int flags, const std::string& name);
  // One rank gives a window up; the aliases go when the last rank has.
  void remove(Window& window, int rank);

  char* base(int team) const { return bases_[static_cast<size_t>(team)]; }
  uint32_t stride_4g() const { return stride_4g_; }
  ncclDevCommWindowTable* table(int rank) const { return tables_[static_cast<size_t>(rank)]; }
  // The address through which ranks of the same team see `offset` of rank `rank`'s part of a window.
  char* lsa_address(const Window& window, int rank, size_t offset) const;

 private:
  size_t reserve(size_t span);
  void release(size_t offset, size_t span);
  void map_aliases(const Window& window, bool map);
  ncclWindow_vidmem* make_handle(Window& window, int rank);
  void list(const Window& window, int rank, bool add);

  Clique& clique_;
  uint32_t stride_4g_;
  std::vector<char*> reservations_;  // by team: with unmapped parts on both sides
  std::vector<char*> bases_;         // by team: part of LSA rank 0
  std::vector<ncclDevCommWindowTable*> tables_;
  std::map<size_t, size_t> free_;    // offset -> bytes
  std::vector<std::unique_ptr<Window>> windows_;
};

// The record behind a window handle, or behind a GIN window of a descriptor; null when there is none.
Window* find_window(ncclWindow_t handle);
Window* find_gin_window(uint64_t handle);
// The clique rank whose handle this is.
int window_rank(const Window& window, ncclWindow_t handle);

// "window recv+64": how messages name a place in a window.
std::string window_place(const Window& window, size_t offset);

}  // namespace cuco::nccl

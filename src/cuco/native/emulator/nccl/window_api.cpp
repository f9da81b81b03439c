// Memory of the host API: ncclMemAlloc, windows, buffer registration and the host-side pointer queries.
#include "bridge.h"
#include "errors.h"
#include "group.h"
#include "meeting.h"
#include "windows.h"

using namespace cuco::nccl;

namespace cuco::nccl {
ncclGinConnectionType_t gin_support();
}

namespace {

constexpr int kRestricting = NCCL_WIN_GIN_ONLY | NCCL_WIN_CFT_COUNTED;
constexpr int kKnownFlags = NCCL_WIN_COLL_SYMMETRIC | NCCL_WIN_STRICT_ORDERING | kRestricting;

struct WindowOffer {
  char* base;
  size_t bytes;
  int flags;
};

std::shared_ptr<void> combine_window(ncclComm& comm, Meeting& meeting) {
  std::vector<char*> bases;
  std::vector<size_t> sizes;
  const int flags = meeting.offer<WindowOffer>(0).flags;
  auto outcome = std::make_shared<Window*>(nullptr);
  for (int r = 0; r < comm.ranks; r++) {
    const auto& offer = meeting.offer<WindowOffer>(r);
    if ((offer.flags ^ flags) & kRestricting) return outcome;  // every rank gets ncclInvalidArgument
    bases.push_back(offer.base);
    sizes.push_back(offer.bytes);
  }
  *outcome = &comm.clique->spaces->add(bases, sizes, flags, find_memory(bases[0]).name);
  return outcome;
}

class WindowJob : public Job {
 public:
  WindowJob(ncclComm& comm, WindowOffer offer, ncclWindow_t* out)
      : comm_(comm), offer_(std::make_shared<WindowOffer>(offer)), out_(out) {}

  ncclComm* comm() override { return &comm_; }
  void arrive() override {
    meeting_ = join_meeting(comm_, "ncclCommWindowRegister", offer_,
                            [this](Meeting& meeting) { return combine_window(comm_, meeting); });
  }
  bool ready() override { return meeting_->complete; }
  ncclResult_t finish() override {
    leave_meeting(comm_, *meeting_);
    Window* window = *static_cast<Window**>(meeting_->outcome.get());
    if (!window) return reject(ncclInvalidArgument, "Window registration capabilities disagree between ranks");
    *out_ = window->handles[static_cast<size_t>(comm_.rank)];
    return ncclSuccess;
  }
  std::string describe() override { return describe_meeting(comm_, *meeting_); }

 private:
  ncclComm& comm_;
  std::shared_ptr<WindowOffer> offer_;
  ncclWindow_t* out_;
  std::shared_ptr<Meeting> meeting_;
};

// The memory must be one allocation of this rank's device that other devices can map: NCCL takes cuMem (VMM)
// allocations, which ncclMemAlloc makes and cudaMalloc does not.
ncclResult_t check_memory(const ncclComm& comm, const char* base, size_t bytes) {
  const MemoryInfo info = find_memory(base);
  if (!info.base)
    return reject(ncclUnhandledCudaError, "ncclCommWindowRegister: %p is not device memory", static_cast<const void*>(base));
  if (!info.shareable)
    return reject(ncclUnhandledCudaError, "ncclCommWindowRegister: %p was not allocated with ncclMemAlloc or the cuMem "
                                          "API (cudaMalloc memory cannot be a window)", static_cast<const void*>(base));
  if (info.arena != comm.arena)
    return reject(ncclInvalidArgument, "ncclCommWindowRegister: the buffer belongs to another device");
  if ((base - info.base) % NCCL_WIN_REQUIRED_ALIGNMENT != 0)
    return reject(ncclInvalidArgument, "Window address must be suitably aligned.");
  if (bytes > info.capacity - static_cast<size_t>(base - info.base))
    return reject(ncclInvalidArgument, "ncclCommWindowRegister: %zu bytes reach behind the allocation of %zu bytes", bytes,
                  info.bytes);
  return ncclSuccess;
}

ncclResult_t check_flags(int flags, size_t bytes) {
  if (flags & ~kKnownFlags) return reject(ncclInvalidArgument, "ncclCommWindowRegister: unknown window flags 0x%x", flags);
  if ((flags & NCCL_WIN_COLL_SYMMETRIC) && (flags & kRestricting))
    return reject(ncclInvalidArgument,
                  "NCCL_WIN_COLL_SYMMETRIC cannot be combined with window capability-restriction flags");
  if ((flags & NCCL_WIN_CFT_COUNTED) && bytes > (size_t{256} << 30))
    return reject(ncclInvalidArgument, "Window size exceeded limit of 256GB for CFT Counted.");
  if (flags & NCCL_WIN_CFT_COUNTED)
    return reject(ncclInvalidArgument, "User requested COUNTED but the communicator does not support it");
  if ((flags & NCCL_WIN_GIN_ONLY) && gin_support() == NCCL_GIN_CONNECTION_NONE)
    return reject(ncclInvalidArgument, "NCCL_WIN_GIN_ONLY requested but the communicator does not support GIN");
  return ncclSuccess;
}

// The record behind a handle that host code passes, or an error as NCCL words it.
ncclResult_t look_up(ncclWindow_t handle, const char* call, void* out, Window** window) {
  if (ncclResult_t bad = handle ? ncclSuccess : reject(ncclInvalidArgument, "%s : window argument is NULL", call)) return bad;
  if (!out) return reject(ncclInvalidArgument, "%s : outPtr argument is NULL", call);
  *window = find_window(handle);
  if (!*window)
    return reject(ncclInvalidArgument, "Could not find communicator matching window %p", static_cast<void*>(handle));
  return ncclSuccess;
}

}  // namespace

extern "C" {

ncclResult_t ncclMemAlloc(void** ptr, size_t size) {
  api_called("ncclMemAlloc");
  if (!ptr) return reject(ncclUnhandledCudaError, "Cuda failure 'invalid argument'");
  *ptr = nullptr;
  if (size == 0) return ncclSuccess;
  *ptr = user_alloc(device_arena(current_device()), size);
  return *ptr ? ncclSuccess : reject(ncclUnhandledCudaError, "Cuda failure 'out of memory'");
}

ncclResult_t ncclMemFree(void* ptr) {
  api_called("ncclMemFree");
  if (!ptr) return ncclSuccess;
  return user_free(ptr) ? ncclSuccess
                        : reject(ncclUnhandledCudaError, "Cuda failure 'invalid argument': %p is no allocation", ptr);
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int winFlags) {
  api_called("ncclCommWindowRegister");
  if (ncclResult_t bad = check_usable(comm, "ncclCommWindowRegister")) return note_in_group(bad);
  if (ncclResult_t bad = check_pointer(win, "ncclCommWindowRegister", "win")) return note_in_group(bad);
  *win = nullptr;
  if (!buff || size == 0)
    return note_in_group(reject(ncclInvalidArgument, "invalid pointer %p / size %zu", buff, size));
  if (ncclResult_t bad = check_flags(winFlags, size)) return note_in_group(bad);
  if (ncclResult_t bad = check_memory(*comm, static_cast<char*>(buff), size)) return note_in_group(bad);
  return submit(std::make_unique<WindowJob>(*comm, WindowOffer{static_cast<char*>(buff), size, winFlags}, win));
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win) {
  api_called("ncclCommWindowDeregister");
  if (ncclResult_t bad = check_comm(comm, "ncclCommWindowDeregister")) return bad;
  if (!win) return ncclSuccess;
  Window* window = find_window(win);
  if (!window || window->clique != comm->clique.get())
    return reject(ncclInvalidArgument, "ncclCommWindowDeregister: %p is no window of this communicator",
                  static_cast<void*>(win));
  window->clique->spaces->remove(*window, comm->rank);
  return ncclSuccess;
}

ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void** outUserPtr) {
  if (ncclResult_t bad = check_comm(comm, "ncclWinGetUserPtr")) return bad;
  if (ncclResult_t bad = check_pointer(outUserPtr, "ncclWinGetUserPtr", "outUserPtr")) return bad;
  if (ncclResult_t bad = check_pointer(win, "ncclWinGetUserPtr", "win")) return bad;
  const Window* window = find_window(win);
  if (!window) return reject(ncclInternalError, "window has a NULL user pointer");
  *outUserPtr = window->bases[static_cast<size_t>(window_rank(*window, win))];
  return ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle) {
  api_called("ncclCommRegister");
  if (ncclResult_t bad = check_usable(comm, "ncclCommRegister")) return bad;
  if (ncclResult_t bad = check_pointer(handle, "ncclCommRegister", "handle")) return bad;
  *handle = nullptr;
  if (!buff || size == 0) return reject(ncclInvalidArgument, "invalid pointer %p / size %zu", buff, size);
  *handle = new char;
  comm->registrations[*handle]++;
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  api_called("ncclCommDeregister");
  if (ncclResult_t bad = check_comm(comm, "ncclCommRegister")) return bad;
  if (!handle) return ncclSuccess;
  if (!comm->registrations.erase(handle)) return reject(ncclInvalidUsage, "Deregister: Could not find handle");
  delete static_cast<char*>(handle);
  return ncclSuccess;
}

ncclResult_t ncclGetLsaDevicePointer(ncclWindow_t handle, size_t offset, int lsaRank, void** outPtr) {
  Window* window;
  if (ncclResult_t bad = look_up(handle, "ncclGetLsaDevicePointer", outPtr, &window)) return bad;
  const Clique& clique = *window->clique;
  if (lsaRank < 0 || lsaRank >= clique.lsa_ranks)
    return reject(ncclInvalidArgument, "The provided lsaRank %d is not in the valid lsaSize of [0,%d] for the provided "
                                       "window %p.", lsaRank, clique.lsa_ranks, static_cast<void*>(handle));
  if (window->flags & NCCL_WIN_GIN_ONLY)
    return reject(ncclInvalidArgument, "LSA pointer access is disabled because the window was not registered for LSA");
  const int own = window_rank(*window, handle);
  const int peer = own - clique.lsa_rank(own) + lsaRank;
  if (offset >= window->sizes[static_cast<size_t>(own)])
    return reject(ncclInvalidArgument, "offset %zu is outside the window of %zu bytes", offset,
                  window->sizes[static_cast<size_t>(own)]);
  *outPtr = clique.spaces->lsa_address(*window, peer, offset);
  return ncclSuccess;
}

ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t handle, size_t offset, int peer, void** outPtr) {
  Window* window;
  if (ncclResult_t bad = look_up(handle, "ncclGetPeerDevicePointer", outPtr, &window)) return bad;
  const Clique& clique = *window->clique;
  if (peer < 0 || peer >= clique.size())
    return reject(ncclInvalidArgument, "peer %d is not within valid range of ranks %d.", peer, clique.size());
  *outPtr = nullptr;
  const int own = window_rank(*window, handle);
  if (clique.lsa_team(peer) != clique.lsa_team(own)) return ncclSuccess;  // unreachable: null, not an error
  return ncclGetLsaDevicePointer(handle, offset, clique.lsa_rank(peer), outPtr);
}

ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t handle, size_t, void** outPtr) {
  Window* window;
  if (ncclResult_t bad = look_up(handle, "ncclGetLsaMultimemDevicePointer", outPtr, &window)) return bad;
  *outPtr = nullptr;  // no multicast here: null, not an error
  return ncclSuccess;
}

ncclResult_t ncclGetMultimemDevicePointer(ncclWindow_t handle, size_t, ncclMultimemHandle_t multimem, void** outPtr) {
  if (!handle) return reject(ncclInvalidArgument, "ncclGetMultimemDevicePointer : window argument is NULL");
  if (!outPtr) return reject(ncclInvalidArgument, "ncclGetMultimemDevicePointer : outPtr argument is NULL");
  if (!multimem.mcBasePtr) return reject(ncclInvalidArgument, "MCBasePtr %p needs to be valid.", multimem.mcBasePtr);
  Window* window;
  if (ncclResult_t bad = look_up(handle, "ncclGetMultimemDevicePointer", outPtr, &window)) return bad;
  *outPtr = nullptr;
  return ncclSuccess;
}

ncclResult_t ncclGetMultimemDeviceLeInfo(ncclWindow_t, size_t, ncclCftLeId*, size_t*) {
  return reject(ncclInvalidUsage, "CFT access is disabled because the window was not registered for CFT.");
}

ncclResult_t ncclGetCftDeviceLeInfo(ncclWindow_t, size_t, int, ncclTeam_t, ncclCftLeId*, size_t*) {
  return reject(ncclInvalidUsage, "CFT access is disabled because the window was not registered for CFT.");
}

ncclResult_t ncclGetPeerDeviceLeInfo(ncclWindow_t, size_t, int, ncclCftLeId*, size_t*) {
  return reject(ncclInvalidUsage, "CFT access is disabled because the window was not registered for CFT.");
}

}  // extern "C"

CUCO_NCCL_PROFILED(ncclMemAlloc);
CUCO_NCCL_PROFILED(ncclMemFree);
CUCO_NCCL_PROFILED(ncclCommWindowRegister);
CUCO_NCCL_PROFILED(ncclCommWindowDeregister);
CUCO_NCCL_PROFILED(ncclWinGetUserPtr);
CUCO_NCCL_PROFILED(ncclCommRegister);
CUCO_NCCL_PROFILED(ncclCommDeregister);
CUCO_NCCL_PROFILED(ncclGetLsaDevicePointer);
CUCO_NCCL_PROFILED(ncclGetPeerDevicePointer);
CUCO_NCCL_PROFILED(ncclGetLsaMultimemDevicePointer);
CUCO_NCCL_PROFILED(ncclGetMultimemDevicePointer);
CUCO_NCCL_PROFILED(ncclGetMultimemDeviceLeInfo);
CUCO_NCCL_PROFILED(ncclGetCftDeviceLeInfo);
CUCO_NCCL_PROFILED(ncclGetPeerDeviceLeInfo);

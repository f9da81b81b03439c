// The communicator, windows and device communicator of a device-API test program.
#pragma once

#include "check.h"

#include <nccl_device.h>

struct World {
  int rank, ranks;
  ncclComm_t comm;
  cudaStream_t stream;
  ncclCommProperties_t props = NCCL_COMM_PROPERTIES_INITIALIZER;

  World(int rank_, int ranks_, ncclUniqueId id) : rank(rank_), ranks(ranks_) {
    NCCL(ncclCommInitRank(&comm, ranks, id, rank));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    NCCL(ncclCommQueryProperties(comm, &props));
    CHECK(props.deviceApiSupport && props.rank == rank && props.nRanks == ranks, "properties");
  }
  int lsa_size() const { return ranks / props.nLsaTeams; }
  void wait() { CUDA(cudaStreamSynchronize(stream)); }
  void close() {
    NCCL(ncclCommFinalize(comm));
    NCCL(ncclCommDestroy(comm));
    CUDA(cudaStreamDestroy(stream));
  }
};

// A window over fresh memory of `count` elements, all set to `fill`.
template <class T>
struct Shared {
  T* data;
  ncclWindow_t window;
  size_t count;

  Shared(World& world, size_t count_, T fill, int flags = NCCL_WIN_DEFAULT) : count(count_) {
    data = device_array(std::vector<T>(count, fill));
    NCCL(ncclCommWindowRegister(world.comm, data, count * sizeof(T), &window, flags));
    CHECK(window != nullptr, "a window");
  }
  std::vector<T> host() const { return host_array(data, count); }
  void set(const std::vector<T>& values) {
    CUDA(cudaMemcpy(data, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  void close(World& world) {
    NCCL(ncclCommWindowDeregister(world.comm, window));
    NCCL(ncclMemFree(data));
  }
};

struct Devices {
  ncclDevCommRequirements reqs = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
  ncclDevComm comm;
  void open(World& world) { NCCL(ncclDevCommCreate(world.comm, &reqs, &comm)); }
  void close(World& world) { NCCL(ncclDevCommDestroy(world.comm, &comm)); }
};

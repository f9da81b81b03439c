// Barriers over GIN: world, rail, explicit handles, all contexts, and hybrid ones; with full and with rail connections.
#include "world.h"

constexpr int kBlock = 32;

__device__ void put_to_all(const ncclGin& gin, const ncclDevComm& comm, ncclWindow_t send, ncclWindow_t recv, int base) {
  int* mine = static_cast<int*>(ncclGetLocalPointer(send, 0));
  for (int i = threadIdx.x; i < kBlock; i += blockDim.x) mine[i] = base + i;
  __syncthreads();
  for (int peer = 0; peer < comm.nRanks; peer++)
    gin.put(ncclTeamWorld(comm), peer, recv, comm.rank * kBlock * sizeof(int), send, 0, kBlock * sizeof(int),
            ncclGin_None{}, ncclGin_None{}, ncclCoopCta());
}

__device__ void check_all(const ncclDevComm& comm, ncclWindow_t recv, int step, int* bad) {
  const int* here = static_cast<const int*>(ncclGetLocalPointer(recv, 0));
  for (int i = threadIdx.x; i < comm.nRanks * kBlock; i += blockDim.x)
    if (here[i] != 1000 * step + 100 * (i / kBlock) + i % kBlock) atomicAdd(bad, 1);
}

// The barrier's fence makes the peers' puts visible, without any signal of the program's own.
__global__ void world_barrier(ncclDevComm comm, ncclWindow_t send, ncclWindow_t recv, int* bad) {
  ncclGin gin(comm, 0);
  ncclGinBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), gin, ncclTeamTagWorld(), 0);
  barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
  for (int step = 0; step < 3; step++) {
    put_to_all(gin, comm, send, recv, 1000 * step + 100 * comm.rank);
    barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
    check_all(comm, recv, step, bad);
    gin.flush(ncclCoopCta());
    barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel, ncclGinFenceLevel::None);
  }
}

// Puts spread over contexts: only a fence over all contexts covers them.
__global__ void all_contexts(ncclDevComm comm, ncclWindow_t send, ncclWindow_t recv, int* bad) {
  int* mine = static_cast<int*>(ncclGetLocalPointer(send, 0));
  for (int i = threadIdx.x; i < kBlock; i += blockDim.x) mine[i] = 5000 + 100 * comm.rank + i;
  __syncthreads();
  for (int peer = 0; peer < comm.nRanks; peer++) {
    ncclGin gin(comm, peer % comm.ginContextCount);
    gin.put(ncclTeamWorld(comm), peer, recv, comm.rank * kBlock * sizeof(int), send, 0, kBlock * sizeof(int),
            ncclGin_None{}, ncclGin_None{}, ncclCoopCta());
  }
  ncclGinBarrier(ncclCoopCta(), ncclGinAllContexts(comm), ncclTeamTagWorld(), 1);
  check_all(comm, recv, 5, bad);
  ncclGinBarrier(ncclCoopCta(), ncclGinAllContexts(comm), ncclTeamTagWorld(), 1);
}

// Barrier of a requirement list with its own handle.
__global__ void own_handle(ncclDevComm comm, ncclGinBarrierHandle handle, ncclWindow_t send, ncclWindow_t recv, int* bad) {
  ncclGin gin(comm, 2);
  ncclGinBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), gin, ncclTeamWorld(comm), handle, blockIdx.x);
  put_to_all(gin, comm, send, recv, 6000 + 100 * comm.rank);
  barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
  check_all(comm, recv, 6, bad);
  barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
}

// LSA stores inside the domain, puts across, one hybrid barrier for both.
__global__ void hybrid(ncclDevComm comm, ncclWindow_t send, ncclWindow_t recv, int* bad) {
  ncclGin gin(comm, 0);
  ncclBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), ncclTeamTagWorld(), gin, 0);
  barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
  const ncclTeam world = ncclTeamWorld(comm), lsa = ncclTeamLsa(comm);
  for (int step = 0; step < 2; step++) {
    int* mine = static_cast<int*>(ncclGetLocalPointer(send, 0));
    const int base = 1000 * step + 100 * comm.rank;
    for (int i = threadIdx.x; i < kBlock; i += blockDim.x) mine[i] = base + i;
    __syncthreads();
    for (int peer = 0; peer < comm.nRanks; peer++) {
      if (ncclTeamRankIsMember(lsa, world, peer)) {
        int* there = static_cast<int*>(ncclGetPeerPointer(recv, comm.rank * kBlock * sizeof(int), peer));
        for (int i = threadIdx.x; i < kBlock; i += blockDim.x) there[i] = base + i;
      } else {
        gin.put(world, peer, recv, comm.rank * kBlock * sizeof(int), send, 0, kBlock * sizeof(int), ncclGin_None{},
                ncclGin_None{}, ncclCoopCta());
      }
    }
    barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
    check_all(comm, recv, step, bad);
    gin.flush(ncclCoopCta());
    barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
  }
}

// Rail connections: same LSA rank in every domain; then a barrier within the domain spreads it.
__global__ void rails(ncclDevComm comm, ncclWindow_t send, ncclWindow_t recv, int* bad) {
  ncclGin gin(comm, 0);
  const ncclTeam rail = ncclTeamRail(comm);
  int* mine = static_cast<int*>(ncclGetLocalPointer(send, 0));
  for (int i = threadIdx.x; i < kBlock; i += blockDim.x) mine[i] = 100 * comm.rank + i;
  __syncthreads();
  for (int peer = 0; peer < rail.nRanks; peer++)
    gin.put(rail, peer, recv, rail.rank * kBlock * sizeof(int), send, 0, kBlock * sizeof(int), ncclGin_None{},
            ncclGin_None{}, ncclCoopCta());
  {
    ncclGinBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), gin, ncclTeamTagRail(), 1);
    barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
  }
  const int* here = static_cast<const int*>(ncclGetLocalPointer(recv, 0));
  for (int i = threadIdx.x; i < rail.nRanks * kBlock; i += blockDim.x) {
    const int from = ncclTeamRankToWorld(comm, rail, i / kBlock);
    if (here[i] != 100 * from + i % kBlock) atomicAdd(bad, 1);
  }
  ncclBarrierSession<ncclCoopCta> both(ncclCoopCta(), ncclTeamTagWorld(), gin, 0);
  both.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
  ncclBarrier(ncclCoopCta(), ncclTeamTagRail(), gin, 1);
}

extern "C" int rank_main(int rank, int ranks, ncclUniqueId id) {
  World w(rank, ranks, id);
  Shared<int> send(w, kBlock, 0), recv(w, static_cast<size_t>(ranks) * kBlock, -1);
  int* bad = device_array(std::vector<int>{0});
  auto clean = [&](const char* what) {
    w.wait();
    CHECK(host_array(bad, 1)[0] == 0, "%s: %d wrong words", what, host_array(bad, 1)[0]);
  };
  Devices d;
  ncclGinBarrierHandle handle;
  ncclDevResourceRequirements list;
  NCCL(ncclGinBarrierCreateRequirement(w.comm, ncclTeamWorld(w.comm), 1, &handle, &list));
  d.reqs.resourceRequirementsList = &list;
  d.reqs.ginConnectionType = NCCL_GIN_CONNECTION_FULL;
  d.reqs.worldGinBarrierCount = 2;
  d.reqs.barrierCount = 1;
  d.open(w);
  world_barrier<<<1, 64, 0, w.stream>>>(d.comm, send.window, recv.window, bad);
  clean("world barrier");
  all_contexts<<<1, 64, 0, w.stream>>>(d.comm, send.window, recv.window, bad);
  clean("all contexts");
  own_handle<<<1, 64, 0, w.stream>>>(d.comm, handle, send.window, recv.window, bad);
  clean("own handle");
  hybrid<<<1, 64, 0, w.stream>>>(d.comm, send.window, recv.window, bad);
  clean("hybrid barrier");
  d.close(w);

  Devices r;
  r.reqs.ginConnectionType = NCCL_GIN_CONNECTION_RAIL;
  r.reqs.railGinBarrierCount = 2;
  r.reqs.barrierCount = 2;
  r.open(w);
  CHECK(r.comm.ginContextStride == w.lsa_size(), "rail stride");
  rails<<<1, 64, 0, w.stream>>>(r.comm, send.window, recv.window, bad);
  clean("rails");
  r.close(w);
  send.close(w), recv.close(w);
  w.close();
  return failures;
}

// Load/store access inside an LSA team: pointers, windows at different addresses per rank, barriers, cooperative groups,
// teams, LL all-to-all, reduce and copy.
#include "world.h"

constexpr int kCount = 240;

// Every rank stores into every team member's window between two barriers, one barrier per CTA.
__global__ void store_to_peers(ncclDevComm comm, ncclWindow_t window) {
  ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), comm, ncclTeamTagLsa(), blockIdx.x);
  barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
  const int part = kCount / gridDim.x;
  for (int peer = 0; peer < comm.lsaSize; peer++) {
    int* there = static_cast<int*>(ncclGetLsaPointer(window, 0, peer));
    for (int i = threadIdx.x; i < part; i += blockDim.x)
      there[comm.lsaRank * kCount + blockIdx.x * part + i] = 1000 * comm.rank + blockIdx.x * part + i;
  }
  barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
}

// The other ways to a pointer; each thread reads one word through each.
__global__ void pointers(ncclDevComm comm, ncclWindow_t window, void* user, int* result) {
  ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), comm, ncclTeamLsa(comm), comm.lsaBarrier, 0);
  barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
  const int next = (comm.lsaRank + 1) % comm.lsaSize, base = comm.rank - comm.lsaRank;
  if (threadIdx.x == 0) {
    result[0] = *static_cast<int*>(ncclGetPeerPointer(window, 8, base + next));
    result[1] = *static_cast<int*>(ncclGetPeerPointer(window, 8, ncclTeamLsa(comm), next));
    result[2] = *static_cast<int*>(ncclGetLocalPointer(window, 8));
    ncclSymPtr<int> p(window, 8);
    result[3] = *p.lsaPtr(next);
    result[4] = *(p + 1).peerPtr(base + next);
    result[5] = *p.localPtr();
    result[6] = ncclFindWindow(ncclCoopThread(), comm, static_cast<char*>(user) + 100) == window;
  }
  barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
}

// Sums over groups of all kinds: each group's first thread adds what its members wrote after the group's sync.
template <class Coop>
__device__ void group_sum(Coop coop, int* cell, int* scratch) {
  scratch[threadIdx.x] = threadIdx.x;
  coop.sync();
  if (coop.thread_rank() == 0) {
    int sum = 0;
    for (int i = 0; i < coop.size(); i++) sum += scratch[threadIdx.x + i];
    atomicAdd(cell, sum);
  }
  coop.sync();
}

__global__ void coops(int* result) {
  __shared__ int scratch[128];
  group_sum(ncclCoopThread(), result + 0, scratch);
  __syncthreads();
  group_sum(ncclCoopTile<8>(), result + 1, scratch);
  __syncthreads();
  group_sum(ncclCoopWarp(), result + 2, scratch);
  __syncthreads();
  group_sum(ncclCoopCta(), result + 3, scratch);
  __syncthreads();
  const int warp = threadIdx.x / 32;
  group_sum(ncclCoopWarpSpan(warp / 2 * 2, 2, warp / 2), result + 4, scratch);
  __syncthreads();
  if (threadIdx.x % 32 < 16) {
    ncclCoopLanes lanes{0x0000ffffu};
    scratch[threadIdx.x] = 1;
    lanes.sync();
    if (lanes.thread_rank() == 0) {
      int sum = 0;
      for (int i = 0; i < lanes.size(); i++) sum += scratch[threadIdx.x + i];
      atomicAdd(result + 5, sum);
    }
  }
}

__global__ void teams(ncclDevComm comm, int* result) {
  const ncclTeam world = ncclTeamWorld(comm), lsa = ncclTeamLsa(comm), rail = ncclTeamRail(comm);
  result[0] = world.nRanks * 100 + world.rank;
  result[1] = lsa.nRanks * 100 + lsa.rank;
  result[2] = rail.nRanks * 100 + rail.rank;
  result[3] = rail.stride;
  result[4] = ncclTeamRankToWorld(comm, rail, 0);
  result[5] = ncclTeamRankToWorld(comm, lsa, lsa.nRanks - 1);
  result[6] = ncclTeamRankIsMember(lsa, world, comm.nRanks - 1);
  const ncclTeam outer = ncclTeamOuterFactor(world, lsa.nRanks);
  result[7] = outer.nRanks == rail.nRanks && outer.rank == rail.rank && outer.stride == rail.stride;
}

// Warps of one block on barriers of their own; a barrier sync with a timeout that does not strike.
__global__ void warp_barriers(ncclDevComm comm, ncclWindow_t window, int* result) {
  const int warp = threadIdx.x / 32;
  ncclLsaBarrierSession<ncclCoopWarp> barrier(ncclCoopWarp(), comm, ncclTeamTagLsa(), warp);
  for (int step = 0; step < 3; step++) {
    barrier.arrive(ncclCoopWarp(), cuda::memory_order_acq_rel);
    barrier.wait(ncclCoopWarp(), cuda::memory_order_acq_rel);
    int* there = static_cast<int*>(ncclGetLsaPointer(window, 0, (comm.lsaRank + 1) % comm.lsaSize));
    if (threadIdx.x % 32 == 0) there[warp] = 10 * step + warp;
    barrier.sync(ncclCoopWarp(), cuda::memory_order_acq_rel);
    const int* here = static_cast<int*>(ncclGetLocalPointer(window, 0));
    if (threadIdx.x % 32 == 0 && here[warp] == 10 * step + warp) result[warp]++;
  }
  const ncclResult_t code = barrier.sync(ncclCoopWarp(), cuda::memory_order_acq_rel, 1ull << 60);
  if (threadIdx.x % 32 == 0) result[4 + warp] = code;
}

// All ranks of the team exchange one 8-byte element per thread through LL lines, three epochs.
__global__ void low_latency(ncclDevComm comm, ncclLLA2AHandle handle, long* sums) {
  const ncclTeam team = ncclTeamLsa(comm);
  ncclLLA2ASession<ncclCoopCta> session(ncclCoopCta(), comm, team, handle, blockIdx.x, team.nRanks * blockDim.x);
  long total = 0;
  for (int epoch = 0; epoch < 3; epoch++) {
    for (int peer = 0; peer < team.nRanks; peer++)
      session.send(peer, team.rank * blockDim.x + threadIdx.x, long(1000000 * epoch + 1000 * comm.lsaRank + threadIdx.x));
    for (int peer = 0; peer < team.nRanks; peer++) total += session.recv<long>(peer * blockDim.x + threadIdx.x);
    session.endEpoch(ncclCoopCta());
    session.bcast(team.rank * blockDim.x + threadIdx.x, long(threadIdx.x));
    total += session.recvReduce<2, long>(threadIdx.x, team.nRanks, blockDim.x, [](long x) { return x; },
                                         [](long a, long b) { return a + b; });
    session.endEpoch(ncclCoopCta());
  }
  sums[threadIdx.x] = total;
}

// Sums a window over the team into local memory, copies it out to all, and both at once.
__global__ void reduce_copy(ncclDevComm comm, ncclWindow_t from, ncclWindow_t to, ncclWindow_t both, float* local) {
  ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), comm, ncclTeamTagLsa(), 0);
  barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
  const int part = kCount / comm.lsaSize;
  ncclSymPtr<float> source(from, 0), target(both, 0);
  ncclLsaReduceSum(ncclCoopCta(), source, local, kCount, comm);
  __syncthreads();
  ncclLsaCopy(ncclCoopCta(), local + comm.lsaRank * part, to, comm.lsaRank * part * sizeof(float), part, comm);
  ncclLsaReduceSumCopy(ncclCoopCta(), source + comm.lsaRank * part, target + comm.lsaRank * part, part, ncclTeamLsa(comm));
  barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
}

static void host_pointers(World& w, Shared<int>& s) {
  const int lsa = w.lsa_size(), own = w.rank % lsa, other = (own + 1) % lsa;
  void *p = nullptr, *q = nullptr;
  NCCL(ncclGetLsaDevicePointer(s.window, 0, own, &p));
  NCCL(ncclGetPeerDevicePointer(s.window, 0, w.rank, &q));
  CHECK(p == q && p != nullptr, "two ways to one pointer");
  int value = 4711 + w.rank, got = 0;
  CUDA(cudaMemcpy(p, &value, sizeof value, cudaMemcpyHostToDevice));
  CUDA(cudaMemcpy(&got, s.data, sizeof got, cudaMemcpyDeviceToHost));
  CHECK(got == value, "an alias of the user's memory");
  NCCL(ncclGetLsaDevicePointer(s.window, 16, other, &p));
  EXPECT(ncclInvalidArgument, ncclGetLsaDevicePointer(s.window, 0, lsa, &p));
  EXPECT(ncclInvalidArgument, ncclGetLsaDevicePointer(s.window, 0, -1, &p));
  EXPECT(ncclInvalidArgument, ncclGetLsaDevicePointer(s.window, s.count * sizeof(int), own, &p));
  EXPECT(ncclInvalidArgument, ncclGetPeerDevicePointer(s.window, 0, w.ranks, &p));
  EXPECT(ncclInvalidArgument, ncclGetLsaDevicePointer(nullptr, 0, 0, &p));
  if (lsa < w.ranks) {
    NCCL(ncclGetPeerDevicePointer(s.window, 0, (w.rank + lsa) % w.ranks, &p));
    CHECK(p == nullptr, "a rank of another domain has no pointer");
  }
  NCCL(ncclGetLsaMultimemDevicePointer(s.window, 0, &p));
  CHECK(p == nullptr, "no multicast");
  NCCL(ncclWinGetUserPtr(w.comm, s.window, &p));
  CHECK(p == s.data, "user pointer");
}

extern "C" int rank_main(int rank, int ranks, ncclUniqueId id) {
  World w(rank, ranks, id);
  const int lsa = w.lsa_size(), lsa_rank = rank % lsa;
  // Each rank allocates something else first, so that windows lie at different addresses.
  void* ballast;
  NCCL(ncclMemAlloc(&ballast, 4096 * (1 + 3 * rank)));
  Shared<int> window(w, static_cast<size_t>(lsa) * kCount, -1, NCCL_WIN_COLL_SYMMETRIC);
  Shared<float> from(w, kCount, 1.0f + rank), to(w, kCount, 0.0f), both(w, kCount, 0.0f);
  int* result = device_array(std::vector<int>(8, 0));
  float* local = device_array(std::vector<float>(kCount, 0));
  long* sums = device_array(std::vector<long>(32, 0));
  Devices d;
  ncclLLA2AHandle handle;
  ncclDevResourceRequirements low_latency_buffers;
  NCCL(ncclLLA2ACreateRequirement(1, ncclLLA2ACalcSlots(lsa * 32, sizeof(long)), &handle, &low_latency_buffers));
  d.reqs.resourceRequirementsList = &low_latency_buffers;
  d.reqs.lsaBarrierCount = 4;
  d.open(w);
  CHECK(d.comm.lsaSize == lsa && d.comm.lsaRank == lsa_rank && d.comm.ginContextCount == 0, "device communicator");

  store_to_peers<<<4, 64, 0, w.stream>>>(d.comm, window.window);
  w.wait();
  auto got = window.host();
  for (int r = 0; r < lsa; r++)
    for (int i = 0; i < kCount; i++) CHECK(got[r * kCount + i] == 1000 * (rank - lsa_rank + r) + i, "store_to_peers");

  window.set(std::vector<int>{0, 0, 100 + rank, 200 + rank});
  pointers<<<1, 64, 0, w.stream>>>(d.comm, window.window, window.data, result);
  w.wait();
  auto r = host_array(result, 8);
  const int next = rank - lsa_rank + (lsa_rank + 1) % lsa;
  CHECK(r[0] == 100 + next && r[1] == 100 + next && r[2] == 100 + rank && r[3] == 100 + next && r[4] == 200 + next &&
        r[5] == 100 + rank && r[6] == 1, "pointers");

  CUDA(cudaMemset(result, 0, 8 * sizeof(int)));
  coops<<<1, 128, 0, w.stream>>>(result);
  w.wait();
  r = host_array(result, 8);
  const int all = 127 * 128 / 2;
  CHECK(r[0] == all && r[1] == all && r[2] == all && r[3] == all && r[4] == all && r[5] == 64, "cooperative groups");

  teams<<<1, 1, 0, w.stream>>>(d.comm, result);
  w.wait();
  r = host_array(result, 8);
  CHECK(r[0] == ranks * 100 + rank && r[1] == lsa * 100 + lsa_rank && r[2] == ranks / lsa * 100 + rank / lsa &&
        r[3] == lsa && r[4] == lsa_rank && r[5] == rank - lsa_rank + lsa - 1 && r[6] == (rank / lsa == ranks / lsa - 1) &&
        r[7] == 1, "teams");
  const ncclTeam_t rail = ncclTeamRail(w.comm), team = ncclTeamLsa(w.comm);
  CHECK(rail.nRanks == ranks / lsa && rail.rank == rank / lsa && rail.stride == lsa && team.nRanks == lsa &&
        team.rank == lsa_rank && ncclTeamRankToWorld(w.comm, rail, 0) == lsa_rank &&
        ncclTeamRankToLsa(w.comm, ncclTeamWorld(w.comm), rank) == lsa_rank, "teams on the host");

  CUDA(cudaMemset(result, 0, 8 * sizeof(int)));
  window.set(std::vector<int>(4, -1));
  warp_barriers<<<1, 128, 0, w.stream>>>(d.comm, window.window, result);
  w.wait();
  r = host_array(result, 8);
  for (int i = 0; i < 4; i++) CHECK(r[i] == 3 && r[4 + i] == ncclSuccess, "warp barriers");

  low_latency<<<1, 32, 0, w.stream>>>(d.comm, handle, sums);
  w.wait();
  auto s = host_array(sums, 32);
  for (int t = 0; t < 32; t++) {
    long want = 0;
    for (int epoch = 0; epoch < 3; epoch++)
      for (int p = 0; p < lsa; p++) want += 1000000 * epoch + 1000 * p + t + t;
    CHECK(s[t] == want, "LL all-to-all %ld", s[t]);
  }

  reduce_copy<<<1, 64, 0, w.stream>>>(d.comm, from.window, to.window, both.window, local);
  w.wait();
  float want = 0;
  for (int p = 0; p < lsa; p++) want += 1.0f + rank - lsa_rank + p;
  const auto l = host_array(local, kCount), c = to.host(), b = both.host();
  for (int i = 0; i < kCount; i++) CHECK(l[i] == want && c[i] == want && b[i] == want, "reduce and copy");

  host_pointers(w, window);
  d.close(w);
  window.close(w), from.close(w), to.close(w), both.close(w);
  w.close();
  return failures;
}

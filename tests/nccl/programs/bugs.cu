// One bug per build (-DBUG=...), each in a program that is right without it. BUG 0 is the right one.
//   1 no waitSignal            2 source reused before flush       3 flush taken for remote completion
//   4 weak signal on the last put taken to cover earlier puts      5 signal on another context than the data
//   6 no LSA barrier           7 one rank never puts               8 put behind the end of the window
//   9 signal id out of range  10 LSA pointer with a world rank     11 GIN context out of range
//  12 put after deregistration 13 ranks call different collectives 14 one rank does not call a collective
//  15 message without a partner 16 different counts               17 send before receive on both sides
//  18 collective on memory behind an allocation                   19 rank registers a window, another does not
//  20 rail connections, peer outside the rail                     21 kernel beside a collective on another stream
#include "world.h"

#ifndef BUG
#define BUG 0
#endif

constexpr int kCount = 1024;

// Ring shift over GIN: rank r's data arrives at rank r + 1; the receiver adds 1 and stores locally.
__global__ void ring(ncclDevComm comm, ncclWindow_t send, ncclWindow_t recv, int* out) {
  ncclGin gin(comm, BUG == 11 ? 6 : 0);
  const ncclTeam world = ncclTeamWorld(comm);
  const int next = (comm.rank + 1) % comm.nRanks;
  int* mine = static_cast<int*>(ncclGetLocalPointer(send, 0));
  for (int i = threadIdx.x; i < kCount; i += blockDim.x) mine[i] = 10000 * (comm.rank + 1) + i;
  __syncthreads();
  const size_t half = kCount / 2 * sizeof(int);
  const bool silent = BUG == 7 && comm.rank == 1;
  if (threadIdx.x == 0 && !silent) {
    ncclGin other(comm, 1);
    const ncclGin& signaller = BUG == 5 ? other : gin;
    const size_t start = BUG == 8 ? half : 0;
    if (BUG == 4) {
      gin.put(world, next, recv, 0, send, 0, half);
      gin.put(world, next, recv, half, send, half, half, ncclGin_WeakSignalInc{0});
    } else {
      gin.put(world, next, recv, start, send, 0, half);
      gin.put(world, next, recv, start + half, send, half, half);
      signaller.signal(world, next, ncclGin_StrongSignalInc{BUG == 9 ? 7u : 0u});
    }
  }
  if (BUG == 2) {
    __syncthreads();
    for (int i = threadIdx.x; i < kCount; i += blockDim.x) mine[i] = -7;
  }
  if (BUG == 3) {
    gin.flush(ncclCoopCta());
  } else if (BUG != 1) {
    ncclGin waiter(comm, BUG == 5 ? 1 : 0);
    waiter.waitSignal(ncclCoopCta(), 0, 1);
  }
  const int* here = static_cast<const int*>(ncclGetLocalPointer(recv, 0));
  for (int i = threadIdx.x; i < kCount; i += blockDim.x) out[i] = here[i] + 1;
  if (BUG != 3) gin.flush(ncclCoopCta());
}

// Ring shift by loads inside the LSA team.
__global__ void pull(ncclDevComm comm, ncclWindow_t send, int* out) {
  ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), comm, ncclTeamTagLsa(), 0);
  int* mine = static_cast<int*>(ncclGetLocalPointer(send, 0));
  for (int i = threadIdx.x; i < kCount; i += blockDim.x) mine[i] = 10000 * (comm.rank + 1) + i;
  if (BUG != 6) barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
  const int previous = (comm.lsaRank + comm.lsaSize - 1) % comm.lsaSize;
  const int index = BUG == 10 ? (comm.rank + comm.nRanks - 1) % comm.nRanks : previous;
  const int* there = static_cast<const int*>(ncclGetLsaPointer(send, 0, index));
  for (int i = threadIdx.x; i < kCount; i += blockDim.x) out[i] = there[i] + 1;
  barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
}

__global__ void add_one(const int* in, int* out) {
  for (int i = threadIdx.x; i < kCount; i += blockDim.x) out[i] = in[i] + 1;
}

__global__ void to_other_rail(ncclDevComm comm, ncclWindow_t send, ncclWindow_t recv) {
  ncclGin gin(comm, 0);
  if (threadIdx.x == 0) gin.put(ncclTeamWorld(comm), comm.rank ^ 1, recv, 0, send, 0, 64);
}

static void expect(const int* memory, int owner, int plus, const char* what) {
  const auto got = host_array(memory, kCount);
  int wrong = 0;
  for (int i = 0; i < kCount; i++) wrong += got[i] != 10000 * (owner + 1) + i + plus;
  if (wrong) std::printf("WRONG VALUES %s: %d of %d\n", what, wrong, kCount);
  failures += wrong != 0;
}

static void host_bugs(World& w, int* send, int* recv) {
  const int next = (w.rank + 1) % w.ranks, previous = (w.rank + w.ranks - 1) % w.ranks;
  if (BUG == 13) {
    if (w.rank == 0) NCCL(ncclAllGather(send, recv, 4, ncclInt, w.comm, w.stream));
    else NCCL(ncclAllReduce(send, recv, 4, ncclInt, ncclSum, w.comm, w.stream));
  }
  if (BUG == 14 && w.rank != 1) NCCL(ncclAllReduce(send, recv, 4, ncclInt, ncclSum, w.comm, w.stream));
  if (BUG == 15 && w.rank == 0) NCCL(ncclSend(send, 4, ncclInt, next, w.comm, w.stream));
  if (BUG == 16) NCCL(ncclAllReduce(send, recv, w.rank == 0 ? 4 : 5, ncclInt, ncclSum, w.comm, w.stream));
  if (BUG == 17) {
    NCCL(ncclSend(send, 4, ncclInt, next, w.comm, w.stream));
    NCCL(ncclRecv(recv, 4, ncclInt, previous, w.comm, w.stream));
  }
  if (BUG == 18) NCCL(ncclAllGather(send, recv, kCount, ncclInt, w.comm, w.stream));
  if (BUG == 21) {
    cudaStream_t side;
    CUDA(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    int* out = device_array(std::vector<int>(kCount, 0));
    std::vector<int> mine(kCount);
    for (int i = 0; i < kCount; i++) mine[i] = 10000 * (w.rank + 1) + i;
    CUDA(cudaMemcpy(send, mine.data(), kCount * sizeof(int), cudaMemcpyHostToDevice));
    NCCL(ncclGroupStart());
    NCCL(ncclSend(send, kCount, ncclInt, next, w.comm, w.stream));
    NCCL(ncclRecv(recv, kCount, ncclInt, previous, w.comm, w.stream));
    NCCL(ncclGroupEnd());
    add_one<<<1, 64, 0, side>>>(recv, out);  // nothing orders side behind the message
    CUDA(cudaStreamSynchronize(side));
    expect(out, previous, 1, "beside a message");
  }
  w.wait();
}

extern "C" int rank_main(int rank, int ranks, ncclUniqueId id) {
  World w(rank, ranks, id);
  const int previous = (rank + ranks - 1) % ranks, lsa = w.lsa_size();
  Shared<int> send(w, kCount, 0), recv(w, kCount, -1);
  int* out = device_array(std::vector<int>(kCount, 0));
  Devices d;
  d.reqs.ginConnectionType = BUG == 20 ? NCCL_GIN_CONNECTION_RAIL : NCCL_GIN_CONNECTION_FULL;
  d.reqs.ginSignalCount = 2;
  d.reqs.lsaBarrierCount = 1;
  if (BUG == 19 && rank == 1) {
    ncclWindow_t extra;
    NCCL(ncclCommWindowRegister(w.comm, out, 4096, &extra, 0));
  }
  d.open(w);
  if (BUG == 12) recv.close(w);
  if (BUG == 20) to_other_rail<<<1, 32, 0, w.stream>>>(d.comm, send.window, recv.window);
  else if (BUG < 13 && BUG != 6 && BUG != 10) {
    ring<<<1, 128, 0, w.stream>>>(d.comm, send.window, recv.window, out);
    w.wait();
    expect(out, previous, 1, "ring");
  }
  if (BUG == 0 || BUG == 6 || BUG == 10) {
    pull<<<1, 128, 0, w.stream>>>(d.comm, send.window, out);
    w.wait();
    expect(out, rank / lsa * lsa + (rank % lsa + lsa - 1) % lsa, 1, "pull");
  }
  if (BUG >= 13) host_bugs(w, send.data, recv.data);
  w.wait();
  return failures;
}

// Every GIN operation of the device API, at any number of ranks and LSA domains: each rank talks to all others.
#include "world.h"

constexpr int kBlock = 64;  // elements per pair of ranks

// put with a strong signal from one thread per peer, waitSignal, flush.
__global__ void put_signal(ncclDevComm comm, ncclWindow_t send, ncclWindow_t recv) {
  ncclGin gin(comm, 0);
  for (int peer = threadIdx.x; peer < comm.nRanks; peer += blockDim.x)
    gin.put(ncclTeamWorld(comm), peer, recv, comm.rank * kBlock * sizeof(int), send, peer * kBlock * sizeof(int),
            kBlock * sizeof(int), ncclGin_StrongSignalInc{0});
  gin.waitSignal(ncclCoopCta(), 0, comm.nRanks);
  gin.flush(ncclCoopCta());
}

// Whole-CTA put: data written by the CTA's threads, weak signal with Add, local counter.
__global__ void put_counter(ncclDevComm comm, ncclWindow_t send, ncclWindow_t recv, int* result) {
  ncclGin gin(comm, 1);
  int* mine = static_cast<int*>(ncclGetLocalPointer(send, 0));
  for (int i = threadIdx.x; i < comm.nRanks * kBlock; i += blockDim.x) mine[i] = 7000 + comm.rank * 100 + i / kBlock;
  for (int peer = 0; peer < comm.nRanks; peer++)
    gin.put(ncclTeamWorld(comm), peer, recv, comm.rank * kBlock * sizeof(int), send, peer * kBlock * sizeof(int),
            kBlock * sizeof(int), ncclGin_WeakSignalAdd{1, 10}, ncclGin_WeakCounterInc{1}, ncclCoopCta());
  gin.waitCounter(ncclCoopCta(), 1, comm.nRanks);
  for (int i = threadIdx.x; i < comm.nRanks * kBlock; i += blockDim.x) mine[i] = -5;  // sources are free again
  gin.waitSignal(ncclCoopCta(), 1, 10 * comm.nRanks);
  if (threadIdx.x == 0) {
    result[0] = static_cast<int>(gin.readCounter(1));
    result[1] = static_cast<int>(gin.readSignal(1));
    gin.resetCounter(1);
    result[2] = static_cast<int>(gin.readCounter(1));
  }
}

// putValue of 1, 2, 4 and 8 bytes to the next rank.
__global__ void put_values(ncclDevComm comm, ncclWindow_t recv) {
  ncclGin gin(comm, 0);
  const int next = (comm.rank + 1) % comm.nRanks;
  ncclTeam world = ncclTeamWorld(comm);
  if (threadIdx.x == 0) {
    gin.putValue(world, next, recv, 0, uint8_t(0x11 + comm.rank), ncclGin_WeakSignalInc{2});
    gin.putValue(world, next, recv, 2, uint16_t(0x2200 + comm.rank), ncclGin_WeakSignalInc{2});
    gin.putValue(world, next, recv, 4, uint32_t(0x33000000u + comm.rank), ncclGin_WeakSignalInc{2});
    gin.putValue(world, next, recv, 8, uint64_t(0x4400000000000000ull + comm.rank), ncclGin_WeakSignalInc{2});
  }
  gin.waitSignal(ncclCoopCta(), 2, 4);
}

// get from every rank, once with flush and once with flushAsync and wait.
__global__ void get_all(ncclDevComm comm, ncclWindow_t remote, ncclWindow_t local) {
  ncclGin gin(comm, 0);
  ncclTeam world = ncclTeamWorld(comm);
  for (int peer = threadIdx.x; peer < comm.nRanks; peer += blockDim.x)
    gin.get(world, peer, remote, comm.rank * kBlock * sizeof(int), local, peer * kBlock * sizeof(int), kBlock / 2 * sizeof(int));
  gin.flush(ncclCoopCta());
  if (threadIdx.x == 0)
    for (int peer = 0; peer < comm.nRanks; peer++) {
      const size_t half = kBlock / 2 * sizeof(int);
      gin.get(world, peer, remote, comm.rank * kBlock * sizeof(int) + half, local, peer * kBlock * sizeof(int) + half, half);
      ncclGinRequest_t request;
      gin.flushAsync(world, peer, &request);
      gin.wait(request);
    }
}

// Signals in window memory; resetSignal of both kinds; shadows.
__global__ void va_and_shadow(ncclDevComm comm, ncclWindow_t send, ncclWindow_t recv, ncclWindow_t words, int* result) {
  ncclGin gin(comm, 0);
  ncclTeam world = ncclTeamWorld(comm);
  const int next = (comm.rank + 1) % comm.nRanks;
  if (threadIdx.x == 0) {
    gin.put(world, next, recv, 0, send, 0, kBlock * sizeof(int), ncclGin_WeakVASignalInc{words, 8});
    gin.signal(world, next, ncclGin_StrongVASignalAdd{words, 16, 5});
  }
  gin.waitSignal(ncclCoopCta(), words, 8, 1);
  gin.waitSignal(ncclCoopCta(), words, 16, 5);
  if (threadIdx.x == 0) {
    result[0] = static_cast<int>(gin.readSignal(words, 16));
    gin.resetSignal(words, 16);
    result[1] = static_cast<int>(gin.readSignal(words, 16));
    gin.signal(world, next, ncclGin_StrongSignalInc{3});
    gin.signal(world, next, ncclGin_StrongSignalInc{3});
    gin.increaseSignalShadow(3, 1);
  }
  __syncthreads();
  gin.waitSignalMeetShadow(ncclCoopCta(), 3);
  uint32_t before = 99, delta = 99;
  gin.waitSignalFollowShadow(ncclCoopCta(), 3, 1u, &before, &delta);
  if (threadIdx.x == 0) {
    result[2] = static_cast<int>(before);
    result[3] = static_cast<int>(delta);
    result[4] = static_cast<int>(gin.readSignal(3));
  }
}

// After a barrier by the host: reset, count again from 0. The descriptor of the put lives in shared memory.
__global__ void reset_and_again(ncclDevComm comm, int* result) {
  ncclGin gin(comm, 0);
  if (threadIdx.x == 0) {
    gin.resetSignal(0);
    result[0] = static_cast<int>(gin.readSignal(0));
  }
}

__global__ void after_reset(ncclDevComm comm, ncclWindow_t send, ncclWindow_t recv, int* result) {
  __shared__ ncclGinDescriptorSmem descriptor;
  ncclGin gin(comm, 0);
  const int next = (comm.rank + 1) % comm.nRanks;
  gin.put(ncclTeamWorld(comm), next, recv, 0, send, 0, 16, ncclGin_StrongSignalInc{0}, ncclGin_None{}, ncclCoopCta(),
          ncclGin_DescriptorSmem{&descriptor});
  gin.waitSignal(ncclCoopCta(), 0, 1);
  if (threadIdx.x == 0) result[1] = static_cast<int>(gin.readSignal(0));
  gin.flush(ncclCoopCta());
}

// More requests than a queue holds: credits.
__global__ void many(ncclDevComm comm, ncclWindow_t send, ncclWindow_t recv, int count) {
  ncclGin gin(comm, 2);
  const int next = (comm.rank + 1) % comm.nRanks;
  for (int i = threadIdx.x; i < count; i += blockDim.x)
    gin.put(ncclTeamWorld(comm), next, recv, i % kBlock * sizeof(int), send, i % kBlock * sizeof(int), sizeof(int),
            ncclGin_WeakSignalInc{0});
  gin.waitSignal(ncclCoopCta(), 0, count);
  gin.flush(ncclCoopCta());
}

// One context per CTA, each with its own signal space.
__global__ void contexts(ncclDevComm comm, ncclWindow_t send, ncclWindow_t recv) {
  ncclGin gin(comm, blockIdx.x, NCCL_GIN_RESOURCE_SHARING_CTA);
  const int next = (comm.rank + 1) % comm.nRanks;
  const size_t part = kBlock / 4 * sizeof(int);
  gin.put(ncclTeamWorld(comm), next, recv, blockIdx.x * part, send, blockIdx.x * part, part, ncclGin_StrongSignalInc{4},
          ncclGin_None{}, ncclCoopCta());
  gin.waitSignal(ncclCoopCta(), 4, 1);
  gin.flush(ncclCoopCta());
}

// Data on one put, a strong signal alone behind it, from one warp of the block; ncclSymPtr.
__global__ void strong_behind(ncclDevComm comm, ncclWindow_t send, ncclWindow_t recv) {
  ncclGin gin(comm, 3);
  const int next = (comm.rank + 1) % comm.nRanks;
  if (threadIdx.x < 32) {
    ncclSymPtr<int> to(recv, 0), from(send, 0);
    gin.put(ncclTeamWorld(comm), next, to, from, kBlock, ncclGin_None{}, ncclGin_None{}, ncclCoopWarp());
    gin.put(ncclTeamWorld(comm), next, to + kBlock, from + kBlock, kBlock, ncclGin_None{}, ncclGin_None{}, ncclCoopWarp());
    gin.signal(ncclTeamWorld(comm), next, ncclGin_StrongSignalInc{1}, ncclCoopWarp());
  }
  gin.waitSignal(ncclCoopCta(), 1, 1);
  gin.flush(ncclCoopCta());
}

static std::vector<int> pattern(int rank, int ranks) {
  std::vector<int> out;
  for (int block = 0; block < ranks; block++)
    for (int i = 0; i < kBlock; i++) out.push_back(10000 * rank + 100 * block + i);
  return out;
}

static void host_barrier(World& w, Shared<int>& scratch) {
  NCCL(ncclAllReduce(scratch.data, scratch.data, 1, ncclInt, ncclSum, w.comm, w.stream));
  w.wait();
}

extern "C" int rank_main(int rank, int ranks, ncclUniqueId id) {
  World w(rank, ranks, id);
  CHECK(w.props.ginType == NCCL_GIN_TYPE_PROXY && w.props.railedGinType == NCCL_GIN_TYPE_PROXY, "GIN type");
  const size_t n = static_cast<size_t>(ranks) * kBlock;
  Shared<int> send(w, n, 0), recv(w, n + kBlock, -1), barrier(w, 4, 0);
  Shared<uint64_t> words(w, 4, 0, NCCL_WIN_STRICT_ORDERING);
  int* result = device_array(std::vector<int>(8, -1));
  Devices d;
  d.reqs.ginConnectionType = NCCL_GIN_CONNECTION_FULL;
  d.reqs.ginSignalCount = 5;
  d.reqs.ginCounterCount = 2;
  d.open(w);
  CHECK(d.comm.ginContextCount == 4 && d.comm.rank == rank && d.comm.nRanks == ranks, "device communicator");
  const int previous = (rank + ranks - 1) % ranks;

  send.set(pattern(rank, ranks));
  put_signal<<<1, 64, 0, w.stream>>>(d.comm, send.window, recv.window);
  w.wait();
  auto got = recv.host();
  for (int r = 0; r < ranks; r++)
    for (int i = 0; i < kBlock; i++) CHECK(got[r * kBlock + i] == 10000 * r + 100 * rank + i, "put_signal");
  host_barrier(w, barrier);

  put_counter<<<1, 64, 0, w.stream>>>(d.comm, send.window, recv.window, result);
  w.wait();
  got = recv.host();
  for (int r = 0; r < ranks; r++)
    for (int i = 0; i < kBlock; i++) CHECK(got[r * kBlock + i] == 7000 + r * 100 + rank, "put_counter %d", got[r * kBlock + i]);
  auto words_read = host_array(result, 8);
  CHECK(words_read[0] == ranks && words_read[1] == 10 * ranks && words_read[2] == 0, "counter and signal values");
  host_barrier(w, barrier);

  put_values<<<1, 32, 0, w.stream>>>(d.comm, recv.window);
  w.wait();
  unsigned char bytes[16];
  CUDA(cudaMemcpy(bytes, recv.data, 16, cudaMemcpyDeviceToHost));
  uint16_t two;
  uint32_t four;
  uint64_t eight;
  std::memcpy(&two, bytes + 2, 2), std::memcpy(&four, bytes + 4, 4), std::memcpy(&eight, bytes + 8, 8);
  CHECK(bytes[0] == 0x11 + previous && two == 0x2200 + previous && four == 0x33000000u + previous &&
        eight == 0x4400000000000000ull + previous, "putValue");
  host_barrier(w, barrier);

  send.set(pattern(rank, ranks));
  recv.set(std::vector<int>(n, -1));
  host_barrier(w, barrier);
  get_all<<<1, 32, 0, w.stream>>>(d.comm, send.window, recv.window);
  w.wait();
  got = recv.host();
  for (int r = 0; r < ranks; r++)
    for (int i = 0; i < kBlock; i++) CHECK(got[r * kBlock + i] == 10000 * r + 100 * rank + i, "get");
  host_barrier(w, barrier);

  va_and_shadow<<<1, 64, 0, w.stream>>>(d.comm, send.window, recv.window, words.window, result);
  w.wait();
  words_read = host_array(result, 8);
  CHECK(words_read[0] == 5 && words_read[1] == 0, "VA signal");
  CHECK(words_read[2] == 1 && words_read[3] == 1 && words_read[4] == 2, "shadow %d %d %d", words_read[2], words_read[3], words_read[4]);
  CHECK(recv.host()[5] == 10000 * previous + 5, "put with a VA signal");
  host_barrier(w, barrier);

  reset_and_again<<<1, 32, 0, w.stream>>>(d.comm, result);
  host_barrier(w, barrier);
  after_reset<<<1, 32, 0, w.stream>>>(d.comm, send.window, recv.window, result);
  w.wait();
  words_read = host_array(result, 8);
  CHECK(words_read[0] == 0 && words_read[1] == 1, "reset %d %d", words_read[0], words_read[1]);
  host_barrier(w, barrier);

  many<<<1, 32, 0, w.stream>>>(d.comm, send.window, recv.window, 1024);
  w.wait();
  got = recv.host();
  for (int i = 0; i < kBlock; i++) CHECK(got[i] == 10000 * previous + i, "1024 puts");
  host_barrier(w, barrier);

  recv.set(std::vector<int>(n, -1));
  host_barrier(w, barrier);
  contexts<<<4, 32, 0, w.stream>>>(d.comm, send.window, recv.window);
  w.wait();
  got = recv.host();
  for (int i = 0; i < kBlock; i++) CHECK(got[i] == 10000 * previous + i, "four contexts");
  host_barrier(w, barrier);

  recv.set(std::vector<int>(n, -1));
  host_barrier(w, barrier);
  strong_behind<<<1, 64, 0, w.stream>>>(d.comm, send.window, recv.window);
  w.wait();
  got = recv.host();
  for (int i = 0; i < 2 * kBlock; i++) CHECK(got[i] == 10000 * previous + 100 * (i / kBlock) + i % kBlock, "strong signal");
  host_barrier(w, barrier);

  d.close(w);
  send.close(w), recv.close(w), barrier.close(w), words.close(w);
  w.close();
  return failures;
}

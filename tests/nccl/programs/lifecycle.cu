// Communicators from birth to end: configuration, non-blocking, groups, split, shrink, finalize, destroy, abort, revoke.
#include "world.h"

__global__ void nothing() {}

static int sum_on(ncclComm_t comm, int value, cudaStream_t stream) {
  int* memory = device_array(std::vector<int>{value});
  NCCL(ncclAllReduce(memory, memory, 1, ncclInt, ncclSum, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  const int sum = host_array(memory, 1)[0];
  NCCL(ncclMemFree(memory));
  return sum;
}

extern "C" int rank_main(int rank, int ranks, ncclUniqueId id) {
  ncclComm_t comm = nullptr;
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclResult_t code = ncclCommInitRankConfig(&comm, ranks, id, rank, &config);
  CHECK(code == ncclSuccess || code == ncclInProgress, "non-blocking init gives %d", code);
  while (code == ncclInProgress) NCCL(ncclCommGetAsyncError(comm, &code));
  CHECK(code == ncclSuccess && comm, "initialised");
  int number = -1, device = -1, own = -1;
  NCCL(ncclCommCount(comm, &number));
  NCCL(ncclCommUserRank(comm, &own));
  NCCL(ncclCommCuDevice(comm, &device));
  CUDA(cudaGetDevice(&number));
  CHECK(own == rank && device == number, "rank and device");
  CHECK(sum_on(comm, rank, stream) == ranks * (ranks - 1) / 2, "sum");

  // Two halves, in reverse order of rank; then a part of some ranks only.
  ncclComm_t half = nullptr, some = nullptr, fewer = nullptr;
  ncclConfig_t blocking = NCCL_CONFIG_INITIALIZER;
  blocking.blocking = 1;
  code = ncclCommSplit(comm, rank % 2, -rank, &half, &blocking);
  while (code == ncclInProgress) NCCL(ncclCommGetAsyncError(comm, &code));
  NCCL(ncclCommCount(half, &number));
  CHECK(number == (ranks + 1 - rank % 2) / 2, "half has %d", number);
  NCCL(ncclCommUserRank(half, &own));
  CHECK(own == number - 1 - rank / 2, "order by key");
  int members = 0;
  for (int r = rank % 2; r < ranks; r += 2) members += r;
  CHECK(sum_on(half, rank, stream) == members, "sum of a half");
  code = ncclCommSplit(comm, rank == 0 ? NCCL_SPLIT_NOCOLOR : 3, rank, &some, &blocking);
  while (code == ncclInProgress) NCCL(ncclCommGetAsyncError(comm, &code));
  CHECK((some == nullptr) == (rank == 0), "no colour, no communicator");
  if (some) CHECK(sum_on(some, 1, stream) == ranks - 1, "sum of a part");
  if (rank != ranks - 1) {
    int gone[] = {ranks - 1};
    NCCL(ncclCommShrink(comm, gone, 1, &fewer, &blocking, NCCL_SHRINK_DEFAULT));
    NCCL(ncclCommCount(fewer, &number));
    CHECK(number == ranks - 1 && sum_on(fewer, 1, stream) == ranks - 1, "shrunk");
    NCCL(ncclCommDestroy(fewer));
  }

  // Two communicators in one group: windows and collectives of both at once.
  int* memory = device_array(std::vector<int>{rank, rank});
  void* storage;
  NCCL(ncclMemAlloc(&storage, 8192));
  ncclWindow_t first = nullptr, second = nullptr;
  NCCL(ncclGroupStart());
  NCCL(ncclCommWindowRegister(half, storage, 4096, &first, 0));
  NCCL(ncclCommWindowRegister(half, static_cast<char*>(storage) + 4096, 4096, &second, 0));
  CHECK(!first && !second, "windows come at the end of the group");
  NCCL(ncclGroupEnd());
  CHECK(first && second && first != second, "two windows of one group");
  NCCL(ncclGroupStart());
  NCCL(ncclAllReduce(memory, memory, 1, ncclInt, ncclMax, half, stream));
  if (some) NCCL(ncclAllReduce(memory + 1, memory + 1, 1, ncclInt, ncclMin, some, stream));
  NCCL(ncclGroupEnd());
  CUDA(cudaStreamSynchronize(stream));
  const auto got = host_array(memory, 2);
  CHECK(got[0] == (ranks - 1) - ((ranks - 1) % 2 != rank % 2) && got[1] == (rank ? 1 : 0), "group over two communicators");

  uint64_t bytes = 9;
  NCCL(ncclCommMemStats(half, ncclStatGpuMemSuspended, &bytes));
  CHECK(bytes == 0, "not suspended");
  NCCL(ncclCommSuspend(half, NCCL_SUSPEND_MEM));
  EXPECT(ncclInvalidUsage, ncclAllReduce(memory, memory, 1, ncclInt, ncclMax, half, stream));
  NCCL(ncclCommResume(half));

  // Finalize waits for what was issued; then only destruction is allowed.
  NCCL(ncclAllReduce(memory, memory, 1, ncclInt, ncclSum, half, stream));
  NCCL(ncclCommFinalize(half));
  EXPECT(ncclInvalidArgument, ncclCommFinalize(half));
  EXPECT(ncclInvalidUsage, ncclAllReduce(memory, memory, 1, ncclInt, ncclSum, half, stream));
  NCCL(ncclCommDestroy(half));
  if (some) {
    NCCL(ncclCommRevoke(some, NCCL_REVOKE_DEFAULT));
    EXPECT(ncclInvalidUsage, ncclAllReduce(memory, memory, 1, ncclInt, ncclSum, some, stream));
    EXPECT(ncclInvalidArgument, ncclCommRevoke(some, NCCL_REVOKE_DEFAULT));
    NCCL(ncclCommDestroy(some));
  }
  NCCL(ncclCommAbort(comm));
  EXPECT(ncclInvalidArgument, ncclCommCount(comm, &number));

  ncclComm_t alone = nullptr;
  CUDA(cudaGetDevice(&device));
  NCCL(ncclCommInitAll(&alone, 1, &device));
  CHECK(sum_on(alone, 5, stream) == 5, "a communicator of one rank");
  NCCL(ncclCommDestroy(alone));
  EXPECT(ncclInvalidArgument, ncclCommInitAll(nullptr, 1, nullptr));
  EXPECT(ncclInvalidArgument, ncclCommInitAll(&alone, -1, nullptr));
  int wrong[] = {99};
  EXPECT(ncclInvalidArgument, ncclCommInitAll(&alone, 1, wrong));
  return failures;
}

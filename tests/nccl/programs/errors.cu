// Wrong use of the host API gets the code that NCCL gives, and leaves the communicator usable.
#include "world.h"

__global__ void nothing() {}

static void communicators(World& w, ncclUniqueId id) {
  ncclComm_t other = nullptr;
  int number;
  EXPECT(ncclInvalidArgument, ncclCommInitRank(&other, w.ranks, id, w.ranks));
  EXPECT(ncclInvalidArgument, ncclCommInitRank(&other, 0, id, 0));
  EXPECT(ncclInvalidArgument, ncclCommInitRank(&other, w.ranks, id, -1));
  EXPECT(ncclInvalidArgument, ncclCommInitRank(nullptr, 1, id, 0));
  EXPECT(ncclInvalidArgument, ncclCommCount(nullptr, &number));
  EXPECT(ncclInvalidArgument, ncclCommCount(w.comm, nullptr));
  EXPECT(ncclInvalidArgument, ncclCommUserRank(nullptr, &number));
  EXPECT(ncclInvalidArgument, ncclCommCuDevice(nullptr, &number));
  EXPECT(ncclInvalidArgument, ncclGetUniqueId(nullptr));
  EXPECT(ncclInvalidArgument, ncclGetVersion(nullptr));
  EXPECT(ncclSuccess, ncclCommDestroy(nullptr));
  EXPECT(ncclSuccess, ncclCommFinalize(nullptr));
  EXPECT(ncclSuccess, ncclCommAbort(nullptr));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 7;
  EXPECT(ncclInvalidArgument, ncclCommInitRankConfig(&other, w.ranks, id, w.rank, &config));
  ncclConfig_t zero;
  std::memset(&zero, 0, sizeof zero);
  zero.size = sizeof zero;
  EXPECT(ncclInvalidArgument, ncclCommInitRankConfig(&other, w.ranks, id, w.rank, &zero));
  EXPECT(ncclInvalidArgument, ncclCommSplit(w.comm, -2, 0, &other, nullptr));
  int all[] = {w.rank};
  EXPECT(ncclInvalidArgument, ncclCommShrink(w.comm, all, 1, &other, nullptr, NCCL_SHRINK_DEFAULT));
  EXPECT(ncclInvalidArgument, ncclCommShrink(w.comm, all, 0, &other, nullptr, NCCL_SHRINK_DEFAULT));
  NCCL(ncclCommCount(w.comm, &number));
  CHECK(number == w.ranks, "count");
  NCCL(ncclCommUserRank(w.comm, &number));
  CHECK(number == w.rank, "rank");
}

static void calls(World& w, float* memory) {
  const size_t n = 4;
  EXPECT(ncclInvalidArgument, ncclAllReduce(memory, memory, n, ncclFloat, ncclSum, nullptr, w.stream));
  EXPECT(ncclInvalidArgument, ncclAllReduce(memory, memory, n, static_cast<ncclDataType_t>(12), ncclSum, w.comm, w.stream));
  EXPECT(ncclInvalidArgument, ncclAllReduce(memory, memory, n, ncclFloat, static_cast<ncclRedOp_t>(5), w.comm, w.stream));
  EXPECT(ncclInvalidArgument, ncclAllReduce(memory, memory, n, ncclFloat, static_cast<ncclRedOp_t>(-1), w.comm, w.stream));
  EXPECT(ncclInvalidArgument, ncclBroadcast(memory, memory, n, ncclFloat, w.ranks, w.comm, w.stream));
  EXPECT(ncclInvalidArgument, ncclReduce(memory, memory, n, ncclFloat, ncclSum, -1, w.comm, w.stream));
  EXPECT(ncclInvalidArgument, ncclSend(memory, n, ncclFloat, w.ranks, w.comm, w.stream));
  EXPECT(ncclInvalidArgument, ncclRecv(memory, n, ncclFloat, -1, w.comm, w.stream));
  ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
  config.maxCTAs = -3;
  EXPECT(ncclInvalidArgument, ncclAllGatherConfig(memory, memory, n, ncclFloat, w.comm, w.stream, &config));
  EXPECT(ncclInvalidUsage, ncclGroupEnd());
  NCCL(ncclGroupStart());
  EXPECT(ncclInvalidArgument, ncclBroadcast(memory, memory, n, ncclFloat, w.ranks, w.comm, w.stream));
  NCCL(ncclAllReduce(memory, memory, n, ncclFloat, ncclSum, w.comm, w.stream));
  EXPECT(ncclInvalidArgument, ncclGroupEnd());  // the group fails as a whole, on every rank
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  NCCL(ncclGroupStart());
  NCCL(ncclAllReduce(memory, memory, n, ncclFloat, ncclSum, w.comm, w.stream));
  EXPECT(ncclSuccess, ncclGroupSimulateEnd(&info));
  EXPECT(ncclInvalidUsage, ncclGroupSimulateEnd(&info));
  EXPECT(ncclInvalidArgument, ncclRedOpDestroy(ncclSum, w.comm));
  EXPECT(ncclInvalidArgument, ncclRedOpDestroy(static_cast<ncclRedOp_t>(9), w.comm));
}

static void windows(World& w) {
  void *good, *plain;
  ncclWindow_t window = nullptr;
  NCCL(ncclMemAlloc(&good, 1 << 16));
  CUDA(cudaMalloc(&plain, 1 << 16));
  EXPECT(ncclInvalidArgument, ncclCommWindowRegister(nullptr, good, 4096, &window, 0));
  EXPECT(ncclInvalidArgument, ncclCommWindowRegister(w.comm, good, 4096, nullptr, 0));
  EXPECT(ncclInvalidArgument, ncclCommWindowRegister(w.comm, nullptr, 4096, &window, 0));
  EXPECT(ncclInvalidArgument, ncclCommWindowRegister(w.comm, good, 0, &window, 0));
  EXPECT(ncclInvalidArgument, ncclCommWindowRegister(w.comm, static_cast<char*>(good) + 256, 4096, &window, 0));
  EXPECT(ncclInvalidArgument, ncclCommWindowRegister(w.comm, good, 1 << 17, &window, 0));
  EXPECT(ncclUnhandledCudaError, ncclCommWindowRegister(w.comm, plain, 4096, &window, 0));
  EXPECT(ncclUnhandledCudaError, ncclCommWindowRegister(w.comm, &window, 4096, &window, 0));
  EXPECT(ncclInvalidArgument, ncclCommWindowRegister(w.comm, good, 4096, &window, NCCL_WIN_COLL_SYMMETRIC | NCCL_WIN_GIN_ONLY));
  EXPECT(ncclInvalidArgument, ncclCommWindowRegister(w.comm, good, 4096, &window, NCCL_WIN_CFT_COUNTED));
  EXPECT(ncclInvalidArgument, ncclCommWindowRegister(w.comm, good, 4096, &window, 64));
  EXPECT(ncclSuccess, ncclCommWindowDeregister(w.comm, nullptr));
  EXPECT(ncclInvalidArgument, ncclCommWindowDeregister(w.comm, reinterpret_cast<ncclWindow_t>(good)));
  // 4096-aligned parts of one allocation, of another size on every rank
  NCCL(ncclCommWindowRegister(w.comm, static_cast<char*>(good) + 8192, 100 + 4096 * w.rank, &window, 0));
  CHECK(window != nullptr, "a window inside an allocation");
  NCCL(ncclCommWindowDeregister(w.comm, window));
  EXPECT(ncclInvalidArgument, ncclCommWindowDeregister(w.comm, window));
  for (int i = 0; i < 300; i++) {  // registering over and over must not use anything up
    NCCL(ncclCommWindowRegister(w.comm, good, 1 << 16, &window, NCCL_WIN_COLL_SYMMETRIC));
    NCCL(ncclCommWindowDeregister(w.comm, window));
  }
  void* handle = nullptr;
  NCCL(ncclCommRegister(w.comm, plain, 4096, &handle));
  NCCL(ncclCommDeregister(w.comm, handle));
  EXPECT(ncclInvalidUsage, ncclCommDeregister(w.comm, plain));
  NCCL(ncclMemFree(good));
  EXPECT(ncclUnhandledCudaError, ncclMemFree(good));
  CUDA(cudaFree(plain));
}

static void device_communicators(World& w) {
  ncclDevComm dc;
  const ncclDevCommRequirements defaults = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
  ncclDevCommRequirements r = defaults;
  EXPECT(ncclInvalidArgument, ncclDevCommCreate(nullptr, &r, &dc));
  EXPECT(ncclInvalidArgument, ncclDevCommCreate(w.comm, nullptr, &dc));
  EXPECT(ncclInvalidArgument, ncclDevCommCreate(w.comm, &r, nullptr));
  std::memset(&r, 0, sizeof r);
  EXPECT(ncclInvalidUsage, ncclDevCommCreate(w.comm, &r, &dc));
  auto refused = [&](auto change) {
    ncclDevCommRequirements copy = defaults;
    change(copy);
    EXPECT(ncclInvalidArgument, ncclDevCommCreate(w.comm, &copy, &dc));
  };
  refused([](auto& q) { q.ginSignalCount = 1; });
  refused([](auto& q) { q.ginCounterCount = 1; });
  refused([](auto& q) { q.barrierCount = 1; });
  refused([](auto& q) { q.worldGinBarrierCount = 1; });
  refused([](auto& q) { q.railGinBarrierCount = 1; });
  refused([](auto& q) { q.lsaMultimem = true; });
  refused([](auto& q) { q.ginConnectionType = NCCL_GIN_CONNECTION_FULL, q.ginQueueDepth = 16; });
  refused([](auto& q) { q.ginConnectionType = NCCL_GIN_CONNECTION_FULL, q.ginType = NCCL_GIN_TYPE_GDAKI; });
  refused([](auto& q) { q.ginConnectionType = NCCL_GIN_CONNECTION_RAIL, q.worldGinBarrierCount = 1; });
  refused([](auto& q) { q.ginConnectionType = NCCL_GIN_CONNECTION_CUSTOM_STRIDE, q.ginCustomStride = 0; });
  refused([](auto& q) { q.cftCaps = NCCL_CFT; });
  refused([](auto& q) { q.lsaBarrierCount = -1; });
  r = defaults;
  r.lsaBarrierCount = 2;
  NCCL(ncclDevCommCreate(w.comm, &r, &dc));
  NCCL(ncclDevCommDestroy(w.comm, &dc));
  EXPECT(ncclInvalidArgument, ncclDevCommDestroy(w.comm, &dc));
  EXPECT(ncclInvalidArgument, ncclDevCommDestroy(w.comm, nullptr));
  ncclCommProperties_t props;
  std::memset(&props, 0, sizeof props);
  EXPECT(ncclInvalidUsage, ncclCommQueryProperties(w.comm, &props));
}

extern "C" int rank_main(int rank, int ranks, ncclUniqueId id) {
  World w(rank, ranks, id);
  float* memory = device_array(std::vector<float>(64, 1.0f));
  communicators(w, id);
  calls(w, memory);
  windows(w);
  device_communicators(w);
  NCCL(ncclAllReduce(memory, memory, 1, ncclFloat, ncclSum, w.comm, w.stream));
  w.wait();
  CHECK(host_array(memory, 1)[0] == ranks, "still usable after all that");
  CHECK(std::string(ncclGetErrorString(ncclInvalidUsage)).find("invalid usage") == 0, "error text");
  NCCL(ncclCommDestroy(w.comm));
  EXPECT(ncclInvalidArgument, ncclAllReduce(memory, memory, 1, ncclFloat, ncclSum, w.comm, w.stream));
  EXPECT(ncclInvalidArgument, ncclCommDestroy(w.comm));
  return failures;
}

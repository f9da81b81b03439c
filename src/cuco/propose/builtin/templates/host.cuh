// ---- host side: windows, device communicator, and the calls that stand where NCCL's stood ----
struct Region {
  char* base;
  size_t bytes;
};

struct Runtime {
  const cuco_ctx* user = nullptr;  // the driver's context
  cuco_ctx shadow = {};            // what the user's code sees: its allocations become windows, too
  std::vector<Region> regions;     // window i covers regions[i]; the same order on every rank
  Device device = {};
  char* control = nullptr;
  char* staging = nullptr;         // for reductions: peers' contributions
  size_t staging_bytes = 0;
  cudaStream_t side[kEdges] = {};  // exchanges that run beside the caller's stream
  cudaEvent_t fork[kEdges] = {}, join[kEdges] = {};
  bool forked[kEdges] = {};
  unsigned long long* counts[kEdges] = {};  // per chunk: producer CTAs that have published; then steps per CTA
  std::function<void(int edge, const Plan&, const ProducerMap&)> held;  // a producer's launch; edge -1: as the user wrote it
  dim3 held_grid;
  std::vector<Transfer> sends, recvs;      // of the open group
  int group_depth = 0;
};
inline Runtime rt;  // one per rank: every rank has its own copy of this library

inline int fail(int code, const char* message) {
  if (rt.user) rt.user->error(rt.user, message);
  return code;
}
#define CUCO_GEN_NCCL(call) \
  do { ncclResult_t r_ = (call); if (r_ != ncclSuccess) return fail(1000 + int(r_), #call); } while (0)
#define CUCO_GEN_CUDA(call) \
  do { cudaError_t e_ = (call); if (e_ != cudaSuccess) return fail(int(e_), #call); } while (0)

inline void* recording_alloc(const cuco_ctx*, size_t bytes, size_t align) {
  void* p = rt.user->alloc(rt.user, bytes, align < 4096 ? 4096 : align);
  if (p) rt.regions.push_back({(char*)p, bytes});
  return p;
}

// Window and offset of `p`; ncclInvalidArgument if it lies in no registered memory.
inline ncclResult_t locate(const void* p, size_t bytes, int* window, unsigned long long* offset) {
  for (size_t i = 0; i < rt.regions.size(); ++i) {
    const Region& r = rt.regions[i];
    if ((const char*)p >= r.base && (const char*)p + bytes <= r.base + r.bytes) {
      *window = int(i);
      *offset = (unsigned long long)((const char*)p - r.base);
      return ncclSuccess;
    }
  }
  fail(1000 + int(ncclInvalidArgument), "a communicated buffer lies outside every window");
  return ncclInvalidArgument;
}

// Collective. Before the user's own cuco_prepare: memory of our own.
inline int open(const cuco_ctx* ctx) {
  rt = Runtime();
  rt.user = ctx;
  rt.shadow = *ctx;
  rt.shadow.alloc = recording_alloc;
  if (ctx->nranks > kMaxRanks) return fail(int(cudaErrorInvalidValue), "more ranks than this candidate was made for");
  if (kBackends == Backend::Lsa && ctx->lsa_size != ctx->nranks)
    return fail(int(cudaErrorInvalidValue), "an LSA candidate needs all ranks in one NVLink domain");
  size_t largest = 0;
  for (int i = 0; i < ctx->nbuffers; ++i) {
    const cuco_buffer& b = ctx->buffers[i];
    rt.regions.push_back({(char*)b.ptr, b.bytes ? b.bytes : 4096});
    if (b.bytes > largest) largest = b.bytes;
  }
  if (kStaging) {
    rt.staging_bytes = (kStaging == 2 ? ctx->nranks : 1) * (largest + 4096 * size_t(ctx->nranks));
    rt.staging = (char*)recording_alloc(&rt.shadow, rt.staging_bytes, 4096);
    if (!rt.staging) return fail(int(cudaErrorMemoryAllocation), "no memory for staging");
  }
  rt.control = (char*)ctx->alloc(ctx, kControlWords * 8, 4096);
  rt.device.uses = (unsigned long long*)ctx->alloc(ctx, kUsesWords * 8, 256);
  if (!rt.control || !rt.device.uses) return fail(int(cudaErrorMemoryAllocation), "no memory for the control window");
  return 0;
}

inline int create_streams() {
  int least = 0, greatest = 0;
  CUCO_GEN_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  for (int e = 0; e < kEdges; ++e) {
    CUCO_GEN_CUDA(cudaStreamCreateWithPriority(&rt.side[e], cudaStreamNonBlocking, greatest));
    CUCO_GEN_CUDA(cudaEventCreateWithFlags(&rt.fork[e], cudaEventDisableTiming));
    CUCO_GEN_CUDA(cudaEventCreateWithFlags(&rt.join[e], cudaEventDisableTiming));
    rt.counts[e] = (unsigned long long*)rt.user->alloc(rt.user, (kMaxChunks + kMaxCtas) * 8, 256);
    if (!rt.counts[e]) return fail(int(cudaErrorMemoryAllocation), "no memory for chunk counters");
    CUCO_GEN_CUDA(cudaMemsetAsync(rt.counts[e], 0, (kMaxChunks + kMaxCtas) * 8, rt.side[e]));
  }
  return 0;
}

// Collective. After the user's own cuco_prepare: everything that may be sent becomes a window.
inline int connect() {
  if (int code = create_streams()) return code;
  CUCO_GEN_CUDA(cudaMemsetAsync(rt.control, 0, kControlWords * 8, rt.side[0]));
  CUCO_GEN_CUDA(cudaMemsetAsync(rt.device.uses, 0, kUsesWords * 8, rt.side[0]));
  for (int e = 0; e < kEdges; ++e) CUCO_GEN_CUDA(cudaStreamSynchronize(rt.side[e]));
  if (rt.regions.size() > size_t(kMaxWindows)) return fail(int(cudaErrorInvalidValue), "too many buffers to register");
  for (size_t i = 0; i < rt.regions.size(); ++i) {
    CUCO_GEN_NCCL(ncclCommWindowRegister(rt.user->comm, rt.regions[i].base, rt.regions[i].bytes,
                                         &rt.device.windows[i], NCCL_WIN_DEFAULT));
    if (!rt.device.windows[i]) return fail(1000 + int(ncclInvalidUsage), "NCCL gave no window: symmetric memory is not available");
  }
  CUCO_GEN_NCCL(ncclCommWindowRegister(rt.user->comm, rt.control, kControlWords * 8, &rt.device.control, NCCL_WIN_DEFAULT));
  ncclDevCommRequirements reqs = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
  if (kBarriers && kBackends == Backend::Lsa) reqs.lsaBarrierCount = kEdges * kMaxCtas;
  if (kBarriers && kBackends == Backend::Gin) reqs.worldGinBarrierCount = kEdges * kMaxCtas;
  if (kBarriers && kBackends == Backend::Hybrid) reqs.barrierCount = kEdges * kMaxCtas;
  if (kBackends != Backend::Lsa) {
    reqs.ginConnectionType = NCCL_GIN_CONNECTION_FULL;
    reqs.ginContextCount = kMaxContexts;
    reqs.ginSignalCount = kSignals;
    reqs.ginCounterCount = kEdges;
  }
  CUCO_GEN_NCCL(ncclDevCommCreate(rt.user->comm, &reqs, &rt.device.comm));
  return 0;
}

// Collective. The driver has drained every stream before.
inline int close() {
  CUCO_GEN_NCCL(ncclDevCommDestroy(rt.user->comm, &rt.device.comm));
  CUCO_GEN_NCCL(ncclCommWindowDeregister(rt.user->comm, rt.device.control));
  for (size_t i = 0; i < rt.regions.size(); ++i) CUCO_GEN_NCCL(ncclCommWindowDeregister(rt.user->comm, rt.device.windows[i]));
  for (int e = 0; e < kEdges; ++e) {
    CUCO_GEN_CUDA(cudaEventDestroy(rt.fork[e]));
    CUCO_GEN_CUDA(cudaEventDestroy(rt.join[e]));
    CUCO_GEN_CUDA(cudaStreamDestroy(rt.side[e]));
  }
  return 0;
}

// Marks the point of `stream` behind which edge `e` may begin beside it.
inline int fork(int e, cudaStream_t stream) {
  CUCO_GEN_CUDA(cudaEventRecord(rt.fork[e], stream));
  CUCO_GEN_CUDA(cudaStreamWaitEvent(rt.side[e], rt.fork[e], 0));
  rt.forked[e] = true;
  return 0;
}

// Everything that edge `e` does is finished before what `stream` does next.
inline int join(int e, cudaStream_t stream) {
  if (!rt.forked[e]) return 0;
  CUCO_GEN_CUDA(cudaEventRecord(rt.join[e], rt.side[e]));
  CUCO_GEN_CUDA(cudaStreamWaitEvent(stream, rt.join[e], 0));
  rt.forked[e] = false;
  return 0;
}

// Runs a launch that no exchange has taken, as the user wrote it.
inline void release_held() {
  const auto launch = std::move(rt.held);
  rt.held = nullptr;
  if (launch) launch(-1, Plan(), ProducerMap());
}

// Keeps a producer's launch back until the call that sends its result says where to and how much.
template <class Launch>
inline void hold(dim3 grid, Launch launch) {
  release_held();
  rt.held_grid = grid;
  rt.held = launch;
}

// The end of a step: every launch has run, every side stream is joined.
inline int settle(cudaStream_t stream) {
  release_held();
  for (int e = 0; e < kEdges; ++e) {
    if (int code = join(e, stream)) return code;
  }
  return int(cudaGetLastError());
}

// A kernel that stands for the user's own may use as much dynamic shared memory.
inline int inherit(const void* from, const void* to) {
  cudaFuncAttributes attributes;
  CUCO_GEN_CUDA(cudaFuncGetAttributes(&attributes, from));
  CUCO_GEN_CUDA(cudaFuncSetAttribute(to, cudaFuncAttributeMaxDynamicSharedMemorySize, attributes.maxDynamicSharedSizeBytes));
  return 0;
}

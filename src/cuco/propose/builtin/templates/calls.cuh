// ---- the calls ----
#define CUCO_GEN_TRY(call) \
  do { if (ncclResult_t r_ = (call)) return r_; } while (0)

inline size_t element_bytes(ncclDataType_t t) {
  switch (t) {
    case ncclInt8: case ncclUint8: case ncclFloat8e4m3: case ncclFloat8e5m2: return 1;
    case ncclFloat16: case ncclBfloat16: return 2;
    case ncclInt32: case ncclUint32: case ncclFloat32: return 4;
    default: return 8;
  }
}

inline ncclResult_t add_send(const void* p, size_t bytes, int peer) {
  Transfer t{0, bytes, 0, peer, 0};
  if (ncclResult_t r = locate(p, bytes, &t.window, &t.offset)) return r;
  rt.sends.push_back(t);
  return ncclSuccess;
}

inline ncclResult_t add_recv(void* p, size_t bytes, int peer) {
  Transfer t{0, bytes, 0, peer, 0};
  if (ncclResult_t r = locate(p, bytes, &t.window, &t.offset)) return r;
  rt.recvs.push_back(t);
  return ncclSuccess;
}

// Fills the plan's array: empty transfers are left out on both sides, transfers to this rank itself are local copies;
// the k-th of a pair gets the pair's k-th slot of this edge.
template <class Edge>
inline ncclResult_t number(const std::vector<Transfer>& from, Transfer* to, int* n) {
  int next[kMaxRanks] = {};
  *n = 0;
  for (Transfer t : from) {
    if (t.bytes == 0 || t.peer == rt.user->rank) continue;
    if (*n == kMaxTransfers || next[t.peer] == Edge::kSlotCount) {
      fail(1000 + int(ncclInvalidUsage), "more transfers in one group than this candidate was made for");
      return ncclInvalidUsage;
    }
    t.slot = Edge::kSlotBase + next[t.peer]++;
    to[(*n)++] = t;
  }
  return ncclSuccess;
}

inline ncclResult_t launched() { return cudaGetLastError() == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError; }

// What the group collected: transfers to others as a plan, transfers to this rank itself as copies.
struct Collected {
  Plan plan = {};
  std::vector<std::pair<Transfer, Transfer>> own;  // (from, to)
};

template <class Edge>
inline ncclResult_t collected(Collected* c) {
  std::vector<Transfer> in;
  for (const Transfer& t : rt.recvs) if (t.peer == rt.user->rank) in.push_back(t);
  for (const Transfer& t : rt.sends) {
    if (t.peer != rt.user->rank) continue;
    if (c->own.size() == in.size() || in[c->own.size()].bytes != t.bytes) {
      fail(1000 + int(ncclInvalidUsage), "a rank's sends to itself do not match its receives");
      return ncclInvalidUsage;
    }
    c->own.push_back({t, in[c->own.size()]});
  }
  CUCO_GEN_TRY(number<Edge>(rt.sends, c->plan.sends, &c->plan.nsends));
  CUCO_GEN_TRY(number<Edge>(rt.recvs, c->plan.recvs, &c->plan.nrecvs));
  rt.sends.clear();
  rt.recvs.clear();
  return ncclSuccess;
}

inline ncclResult_t copy_own(const Collected& c, cudaStream_t stream) {
  for (const auto& [from, to] : c.own) {
    char* src = rt.regions[from.window].base + from.offset;
    char* dst = rt.regions[to.window].base + to.offset;
    if (from.bytes && src != dst && cudaMemcpyAsync(dst, src, from.bytes, cudaMemcpyDeviceToDevice, stream) != cudaSuccess)
      return ncclUnhandledCudaError;
  }
  return ncclSuccess;
}

template <class Edge>
inline ProducerMap no_producer() {
  return {-1, 0, 1, 0, nullptr, rt.counts[Edge::kId] + kMaxChunks};
}

// EVOLVE-BLOCK-START cuco_gen.calls
// Launches what the group collected, on `caller` or beside it (directive: placement).
template <class Edge>
inline ncclResult_t run_exchange(cudaStream_t caller) {
  release_held();
  Collected c;
  CUCO_GEN_TRY(collected<Edge>(&c));
  CUCO_GEN_TRY(copy_own(c, caller));
  if (c.plan.nsends + c.plan.nrecvs == 0 && Edge::kSync != Sync::Barrier) return ncclSuccess;
  cudaStream_t stream = caller;
  if (Edge::kPlacement != Placement::Deferred) {
    if (fork(Edge::kId, caller)) return ncclUnhandledCudaError;
    stream = rt.side[Edge::kId];
  }
  exchange<Edge><<<Edge::kCtas, Edge::kThreads, 0, stream>>>(rt.device, c.plan, no_producer<Edge>());
  return launched();
}

// What each call contributes to the open exchange. Rank order starts behind this rank, so that no peer is everybody's
// first target.
inline int behind(int i) { return (rt.user->rank + i) % rt.user->nranks; }
inline int before(int i) { return (rt.user->rank + rt.user->nranks - i) % rt.user->nranks; }

inline ncclResult_t collect_all_gather(const void* send, void* recv, size_t bytes) {
  for (int i = 0; i < rt.user->nranks; ++i) {
    CUCO_GEN_TRY(add_send(send, bytes, behind(i)));
    CUCO_GEN_TRY(add_recv((char*)recv + before(i) * bytes, bytes, before(i)));
  }
  return ncclSuccess;
}

inline ncclResult_t collect_all_to_all(const void* send, void* recv, size_t bytes) {
  for (int i = 0; i < rt.user->nranks; ++i) {
    CUCO_GEN_TRY(add_send((const char*)send + behind(i) * bytes, bytes, behind(i)));
    CUCO_GEN_TRY(add_recv((char*)recv + before(i) * bytes, bytes, before(i)));
  }
  return ncclSuccess;
}

inline ncclResult_t collect_broadcast(const void* send, void* recv, size_t bytes, int root) {
  if (rt.user->rank == root) {
    for (int i = 0; i < rt.user->nranks; ++i) CUCO_GEN_TRY(add_send(send, bytes, behind(i)));
  }
  return add_recv(recv, bytes, root);
}

inline ncclResult_t collect_gather(const void* send, void* recv, size_t bytes, int root) {
  CUCO_GEN_TRY(add_send(send, bytes, root));
  if (rt.user->rank != root) return ncclSuccess;
  for (int i = 0; i < rt.user->nranks; ++i) CUCO_GEN_TRY(add_recv((char*)recv + before(i) * bytes, bytes, before(i)));
  return ncclSuccess;
}

inline ncclResult_t collect_scatter(const void* send, void* recv, size_t bytes, int root) {
  if (rt.user->rank == root) {
    for (int i = 0; i < rt.user->nranks; ++i)
      CUCO_GEN_TRY(add_send((const char*)send + behind(i) * bytes, bytes, behind(i)));
  }
  return add_recv(recv, bytes, root);
}
// EVOLVE-BLOCK-END

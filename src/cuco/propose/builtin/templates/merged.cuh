// ---- producer and exchange merged (directive: Persistent or TileFused) ----
// EVOLVE-BLOCK-START cuco_gen.merged
// Persistent: where this CTA stands in the producer's own grid, behind the exchange's CTAs of the same launch.
__device__ inline dim3 producer_cta(dim3 grid, unsigned skip) {
  const unsigned i = blockIdx.x - skip;
  return dim3(i % grid.x, i / grid.x % grid.y, i / grid.x / grid.y);
}

inline unsigned cta_count(dim3 grid) { return grid.x * grid.y * grid.z; }

// TileFused: the producer CTA that finishes a chunk sends it. Whole CTA, after its last store.
template <class Edge>
__device__ inline void send_chunk(const Device& d, const Plan& p, unsigned long long chunk, unsigned long long turn) {
  __shared__ unsigned long long where;
  for (int i = 0; i < p.nsends; ++i) {
    const Transfer& s = p.sends[i];
    const Range piece = chunk_range<Edge>(s.bytes, chunk);
    if (piece.size() == 0) continue;
    const bool lsa = through_lsa<Edge>(d, s.peer);
    if (threadIdx.x == 0) {
      if (lsa) {
        if constexpr (Edge::kBackend != Backend::Gin) wait_at_least(local_word(d, ready_word(s.peer, s.slot)), turn);
      } else {
        if constexpr (Edge::kBackend != Backend::Lsa)
          ncclGin(d.comm, 0).waitSignal(ncclCoopThread(), ready_signal(s.peer, s.slot), turn);
      }
      where = *local_word(d, announce_word(0, s.peer, s.slot));
    }
    __syncthreads();
    if (lsa) {
      if constexpr (Edge::kBackend != Backend::Gin) {
        copy_stripe((char*)ncclGetPeerPointer(d.windows[decode_window(where)], decode_offset(where) + piece.begin, s.peer),
                    (const char*)ncclGetLocalPointer(d.windows[s.window], s.offset + piece.begin), piece.size(), 0, 1);
        __syncthreads();  // every thread's stores are ordered before thread 0's release
        if (threadIdx.x == 0)
          SystemWord(*peer_word(d, arrived_word(d.comm.rank, s.slot), s.peer)).fetch_add(1, cuda::memory_order_release);
      }
    } else {
      if constexpr (Edge::kBackend != Backend::Lsa) issue_put<Edge>(d, s, where, chunk);
    }
    __syncthreads();  // `where` is reused for the next peer
  }
}

// Publishes like `publish`; acq_rel, because the CTA that completes a chunk reads what the others wrote.
template <class Edge>
__device__ inline void publish_and_send(const Device& d, const Plan& p, const ProducerMap& m, dim3 cta, dim3 grid) {
  __shared__ bool mine;
  const unsigned long long step = m.steps[0] + 1;
  const unsigned long long begin = producer_index(m, cta, grid) * m.unit;
  if (begin >= m.total) return;
  const unsigned long long end = begin + m.unit < m.total ? begin + m.unit : m.total;
  const unsigned long long size = chunk_size<Edge>(m.total);
  for (unsigned long long c = begin / size; c <= (end - 1) / size; ++c) {
    __syncthreads();
    if (threadIdx.x == 0) {
      cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> ready(m.ready[c]);
      mine = ready.fetch_add(1, cuda::memory_order_acq_rel) + 1 == step * producers_of<Edge>(m, c);
    }
    __syncthreads();
    if (mine) send_chunk<Edge>(d, p, c, step);
  }
}

// One CTA before the producer: peers may write.
template <class Edge>
__global__ void __launch_bounds__(Edge::kThreads) announce_only(Device d, Plan p) { announce<Edge>(d, p, 0); }

// One CTA after the producer: everything has arrived, every source has been read.
template <class Edge>
__global__ void __launch_bounds__(Edge::kThreads) complete_only(Device d, Plan p, ProducerMap m) {
  complete<Edge>(d, p);
  if (threadIdx.x != 0) return;
  const unsigned long long step = ++m.steps[0];
  if constexpr (Edge::kBackend != Backend::Lsa) {
    for (int c = 0; c < Edge::kContexts; ++c) {
      unsigned long long puts = 0;
      for (int i = 0; i < p.nsends; ++i)
        if (!through_lsa<Edge>(d, p.sends[i].peer)) puts += chunks_on_context<Edge>(p.sends[i].bytes, c);
      if (puts) ncclGin(d.comm, c).waitCounter(ncclCoopThread(), Edge::kId, step * puts);
    }
  }
}
// EVOLVE-BLOCK-END

// ---- the exchange kernel: announce, send, complete ----
// EVOLVE-BLOCK-START cuco_gen.exchange
template <class Edge>
__device__ inline bool through_lsa(const Device& d, int peer) {
  if constexpr (Edge::kBackend == Backend::Lsa) return true;
  if constexpr (Edge::kBackend == Backend::Gin) return false;
  const int first = d.comm.rank - d.comm.lsaRank;
  return peer >= first && peer < first + d.comm.lsaSize;
}

// CTA 0 announces this rank's receives; with Sync::Barrier every CTA does, because its barrier index orders only
// what its own threads wrote.
template <class Edge>
__device__ inline void announce(const Device& d, const Plan& p, int cta) {
  for (int i = threadIdx.x; i < p.nrecvs; i += blockDim.x) {
    const Transfer& r = p.recvs[i];
    unsigned long long turn = 0;
    if (cta == 0) turn = ++d.uses[received_word(r.peer, r.slot)];
    if (through_lsa<Edge>(d, r.peer)) {
      if constexpr (Edge::kBackend != Backend::Gin) lsa_announce(d, r, cta, turn);
    } else {
      if constexpr (Edge::kBackend != Backend::Lsa) gin_announce(d, r, cta, Edge::kSync != Sync::Barrier);
    }
  }
}

// The whole CTA: wait until `s.peer` has announced its buffer; returns the destination.
template <class Edge>
__device__ inline unsigned long long destination(const Device& d, const Transfer& s, int cta) {
  __shared__ unsigned long long where;
  if (threadIdx.x == 0) {
    if constexpr (Edge::kSync != Sync::Barrier) {
      const unsigned long long turn = d.uses[sent_word(cta, s.peer, s.slot)] + 1;
      if (through_lsa<Edge>(d, s.peer)) {
        if constexpr (Edge::kBackend != Backend::Gin) wait_at_least(local_word(d, ready_word(s.peer, s.slot)), turn);
      } else {
        if constexpr (Edge::kBackend != Backend::Lsa) {
          ncclGin(d.comm, 0).waitSignal(ncclCoopThread(), ready_signal(s.peer, s.slot), turn);
        }
      }
      d.uses[sent_word(cta, s.peer, s.slot)] = turn;
    }
    where = *local_word(d, announce_word(Edge::kSync == Sync::Barrier ? cta : 0, s.peer, s.slot));
  }
  __syncthreads();
  const unsigned long long result = where;
  __syncthreads();  // `where` is reused for the next peer
  return result;
}

// How many producer CTAs write into chunk `c` of the first send's source.
template <class Edge>
__host__ __device__ inline unsigned long long producers_of(const ProducerMap& m, unsigned long long c) {
  const Range piece = chunk_range<Edge>(m.total, c);
  return ((piece.end + m.unit - 1) / m.unit - piece.begin / m.unit) * m.multiplicity;
}

// The whole CTA: wait until the producer's CTAs have published everything that bytes [begin, end) need.
// Acquire at device scope: the producer runs on this GPU.
template <class Edge>
__device__ inline void wait_produced(const ProducerMap& m, unsigned long long step, unsigned long long begin,
                                     unsigned long long end) {
  if (m.axis < 0) return;
  if (threadIdx.x == 0) {
    const unsigned long long size = chunk_size<Edge>(m.total);
    for (unsigned long long c = begin / size; c <= (end - 1) / size; ++c) {
      cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> ready(m.ready[c]);
      while (ready.load(cuda::memory_order_acquire) < step * producers_of<Edge>(m, c)) {}
    }
  }
  __syncthreads();
}

// The issuing threads of this CTA put one chunk (directive: issuer); the others pass.
template <class Edge>
__device__ inline void issue_put(const Device& d, const Transfer& s, unsigned long long where,
                                 unsigned long long chunk) {
  if constexpr (Edge::kIssuer == Issuer::Cta) {
    gin_put_chunk<Edge>(d, s, where, chunk, ncclCoopCta());
  } else if constexpr (Edge::kIssuer == Issuer::Warp) {
    if (threadIdx.x < 32) gin_put_chunk<Edge>(d, s, where, chunk, ncclCoopWarp());
  } else if constexpr (Edge::kIssuer == Issuer::WarpSpan) {
    if (threadIdx.x < 32 * Edge::kWidth) gin_put_chunk<Edge>(d, s, where, chunk, ncclCoopWarpSpan(0, Edge::kWidth, 0));
  } else if constexpr (Edge::kIssuer == Issuer::Tile) {
    if (threadIdx.x < Edge::kWidth) gin_put_chunk<Edge>(d, s, where, chunk, ncclCoopTile<Edge::kWidth>());
  } else {
    if (threadIdx.x == 0) gin_put_chunk<Edge>(d, s, where, chunk, ncclCoopThread());
  }
}

// After the last chunk: LSA peers learn that this CTA's stripes are there; GIN sources are flushed, so that the next
// step may overwrite them. (Flush says nothing about arrival: the receiver waits for that.)
template <class Edge>
__device__ inline void finish_sends(const Device& d, const Plan& p, int cta) {
  __syncthreads();  // every thread's stores are ordered before thread 0's release below
  if constexpr (Edge::kBackend != Backend::Gin && Edge::kSync != Sync::Barrier) {
    for (int i = threadIdx.x; i < p.nsends; i += blockDim.x) {
      const Transfer& s = p.sends[i];
      if (!through_lsa<Edge>(d, s.peer)) continue;
      SystemWord(*peer_word(d, arrived_word(d.comm.rank, s.slot), s.peer)).fetch_add(1, cuda::memory_order_release);
    }
  }
  if constexpr (Edge::kBackend != Backend::Lsa) {
    for (int c = 0; c < Edge::kContexts; ++c) ncclGin(d.comm, c).flush(ncclCoopCta());
  }
}

// Chunk `chunk` of one send by this CTA: its stripe on LSA, the whole put on GIN where it is this CTA's turn.
template <class Edge>
__device__ inline void send_piece(const Device& d, const Plan& p, int i, unsigned long long where, const ProducerMap& m,
                                  int cta, unsigned long long step, unsigned long long chunk) {
  const Transfer& s = p.sends[i];
  const Range piece = chunk_range<Edge>(s.bytes, chunk);
  const bool lsa = through_lsa<Edge>(d, s.peer);
  if (piece.size() == 0 || (!lsa && (chunk * p.nsends + i) % Edge::kCtas != (unsigned)cta)) return;
  const unsigned long long first = s.offset - p.sends[0].offset;
  wait_produced<Edge>(m, step, first + piece.begin, first + piece.end);
  if (lsa) {
    if constexpr (Edge::kBackend != Backend::Gin) {
      copy_stripe((char*)ncclGetPeerPointer(d.windows[decode_window(where)], decode_offset(where) + piece.begin, s.peer),
                  (const char*)ncclGetLocalPointer(d.windows[s.window], s.offset + piece.begin), piece.size(), cta,
                  Edge::kCtas);
    }
  } else {
    if constexpr (Edge::kBackend != Backend::Lsa) issue_put<Edge>(d, s, where, chunk);
  }
}

// All CTAs of the exchange: chunk by chunk in the order in which the producer finishes them, peer by peer starting
// behind this rank, so that no peer is everybody's first target.
template <class Edge>
__device__ inline void send(const Device& d, const Plan& p, const ProducerMap& m, int cta, unsigned long long step) {
  __shared__ unsigned long long where[kMaxTransfers];
  unsigned long long most = 0;
  for (int i = 0; i < p.nsends; ++i) {
    const unsigned long long at = destination<Edge>(d, p.sends[i], cta);
    if (threadIdx.x == 0) where[i] = at;
    const unsigned long long n = chunk_count<Edge>(p.sends[i].bytes);
    most = n > most ? n : most;
  }
  __syncthreads();
  for (unsigned long long chunk = 0; chunk < most; ++chunk)
    for (int i = 0; i < p.nsends; ++i) send_piece<Edge>(d, p, i, where[i], m, cta, step, chunk);
  finish_sends<Edge>(d, p, cta);
}

// How often a sender raises the arrival word of one LSA transfer: once per CTA, or per chunk if whoever finishes a
// chunk sends it.
template <class Edge>
__device__ inline unsigned long long arrivals_of(unsigned long long bytes) {
  return Edge::kPlacement == Placement::TileFused ? chunk_count<Edge>(bytes) : Edge::kCtas;
}

// CTA 0, one receive per thread: E2, this rank's outputs are final when the kernel ends.
template <class Edge>
__device__ inline void complete(const Device& d, const Plan& p) {
  for (int i = threadIdx.x; i < p.nrecvs; i += blockDim.x) {
    const Transfer& r = p.recvs[i];
    if (through_lsa<Edge>(d, r.peer)) {
      if constexpr (Edge::kBackend != Backend::Gin) {
        unsigned long long& expected = d.uses[expected_word(r.peer, r.slot, 0)];
        expected += arrivals_of<Edge>(r.bytes);
        wait_at_least(local_word(d, arrived_word(r.peer, r.slot)), expected);
      }
    } else {
      if constexpr (Edge::kBackend != Backend::Lsa) gin_complete<Edge>(d, r);
    }
  }
}

// One barrier index per CTA and edge. Entry: every announce is visible. Exit: every byte has arrived.
template <class Edge>
__device__ inline void world_barrier(const Device& d, int cta) {
  const unsigned index = Edge::kId * kMaxCtas + cta;
  if constexpr (Edge::kBackend == Backend::Lsa) {
    ncclLsaBarrierSession<ncclCoopCta> bar(ncclCoopCta(), d.comm, ncclTeamTagLsa(), index);
    bar.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
  } else if constexpr (Edge::kBackend == Backend::Gin) {
    ncclGinBarrier(ncclCoopCta(), ncclGinAllContexts(d.comm), ncclTeamTagWorld(), index,
                   cuda::memory_order_acq_rel, ncclGinFenceLevel::Put);
  } else {
    ncclBarrierSession<ncclCoopCta> bar(ncclCoopCta(), ncclTeamTagWorld(), ncclGin(d.comm, 0), index);
    bar.sync(ncclCoopCta(), cuda::memory_order_acq_rel, ncclGinFenceLevel::Put);
  }
}

// One step of one edge by CTA `cta` of Edge::kCtas. Each CTA counts its own steps: none reads what another writes.
template <class Edge>
__device__ inline void exchange_cta(const Device& d, const Plan& p, const ProducerMap& m, int cta) {
  unsigned long long step = 0;
  if (m.axis >= 0) {
    step = m.steps[cta] + 1;
    __syncthreads();
    if (threadIdx.x == 0) m.steps[cta] = step;
  }
  if (cta == 0 || Edge::kSync == Sync::Barrier) announce<Edge>(d, p, cta);
  if constexpr (Edge::kSync == Sync::Barrier) world_barrier<Edge>(d, cta);
  send<Edge>(d, p, m, cta, step);
  if constexpr (Edge::kSync == Sync::Barrier) {
    world_barrier<Edge>(d, cta);
  } else {
    if (cta == 0) complete<Edge>(d, p);
  }
}

template <class Edge>
__global__ void __launch_bounds__(Edge::kThreads) exchange(Device d, Plan p, ProducerMap m) {
  exchange_cta<Edge>(d, p, m, blockIdx.x);
}
// EVOLVE-BLOCK-END

// ---- GIN: peers across the network, reached by puts; a signal belongs to (context, id) ----
// EVOLVE-BLOCK-START cuco_gen.gin
__device__ inline void gin_announce(const Device& d, const Transfer& r, int cta, bool signal) {
  ncclGin gin(d.comm, 0);
  const size_t at = announce_word(cta, d.comm.rank, r.slot) * 8;
  const unsigned long long where = encode(r.window, r.offset);
  if (signal) {
    // Weak: the signal needs to cover only this value.
    gin.putValue(ncclTeamWorld(d.comm), r.peer, d.control, at, where,
                 ncclGin_WeakSignalInc{ready_signal(d.comm.rank, r.slot)});
  } else {
    gin.putValue(ncclTeamWorld(d.comm), r.peer, d.control, at, where);
  }
}

// Chunks of one transfer that travel on `context`: chunk i uses context i % Edge::kContexts.
template <class Edge>
__device__ inline unsigned long long chunks_on_context(unsigned long long bytes, int context) {
  const unsigned long long n = chunk_count<Edge>(bytes);
  return n > (unsigned)context ? (n - context + Edge::kContexts - 1) / Edge::kContexts : 0;
}

// What the sender learns of a put's source: merged producers end before their puts do, so they count; others flush.
template <class Edge>
__device__ inline auto local_action() {
  if constexpr (Edge::kPlacement == Placement::TileFused) return ncclGin_WeakCounterInc{unsigned(Edge::kId)};
  else return ncclGin_None{};
}

// What the receiver learns. Weak: it waits for the count of all chunks, and each signal covers its own chunk.
template <class Edge>
__device__ inline auto remote_action(const Device& d, const Transfer& s) {
  if constexpr (Edge::kSync == Sync::Barrier) return ncclGin_None{};
  else return ncclGin_WeakSignalInc{arrived_signal(d.comm.rank, s.slot)};
}

template <class Edge, class Coop>
__device__ inline void gin_put_chunk(const Device& d, const Transfer& s, unsigned long long where,
                                     unsigned long long chunk, Coop coop) {
  const Range piece = chunk_range<Edge>(s.bytes, chunk);
  ncclGin(d.comm, int(chunk % Edge::kContexts))
      .put(ncclTeamWorld(d.comm), s.peer, d.windows[decode_window(where)], decode_offset(where) + piece.begin,
           d.windows[s.window], s.offset + piece.begin, piece.size(), remote_action<Edge>(d, s), local_action<Edge>(), coop);
}

// One thread: wait for all chunks of one receive, context by context.
template <class Edge>
__device__ inline void gin_complete(const Device& d, const Transfer& r) {
  for (int c = 0; c < Edge::kContexts; ++c) {
    const unsigned long long n = chunks_on_context<Edge>(r.bytes, c);
    if (n == 0) continue;
    ncclGin gin(d.comm, c);
    const unsigned id = arrived_signal(r.peer, r.slot);
    if constexpr (Edge::kSync == Sync::SignalShadow) {
      gin.increaseSignalShadow(id, n);
      gin.waitSignalMeetShadow(ncclCoopThread(), id);
    } else {
      unsigned long long& expected = d.uses[expected_word(r.peer, r.slot, c)];
      expected += n;
      gin.waitSignal(ncclCoopThread(), id, expected);
    }
  }
}
// EVOLVE-BLOCK-END

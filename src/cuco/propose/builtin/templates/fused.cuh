// ---- exchanges that overlap their producer; the directive's placement says how ----
// The producer's launch was held (see `hold`); a rank that produced nothing runs the exchange alone.
// EVOLVE-BLOCK-START cuco_gen.fused
template <class Edge>
inline ncclResult_t run_fused(cudaStream_t caller) {
  const auto producer = std::move(rt.held);
  rt.held = nullptr;
  const unsigned long long bytes = rt.sends.empty() ? 0 : rt.sends[0].bytes;
  Collected c;
  CUCO_GEN_TRY(collected<Edge>(&c));
  ProducerMap map = no_producer<Edge>();
  if (producer && producer_map<Edge>(rt.held_grid, bytes, &map)) return ncclInvalidUsage;
  if constexpr (Edge::kPlacement == Placement::Pipelined) {
    // The producer never waits and comes first; the exchange's stream has priority for the first slots that free up.
    if (fork(Edge::kId, caller)) return ncclUnhandledCudaError;
    if (producer) producer(Edge::kId, c.plan, map);
    exchange<Edge><<<Edge::kCtas, Edge::kThreads, 0, rt.side[Edge::kId]>>>(rt.device, c.plan, map);
  } else if constexpr (Edge::kPlacement == Placement::Persistent) {
    if (producer) producer(Edge::kId, c.plan, map);
    else exchange<Edge><<<Edge::kCtas, Edge::kThreads, 0, caller>>>(rt.device, c.plan, map);
  } else {
    if (!producer && c.plan.nsends) return ncclInvalidUsage;
    announce_only<Edge><<<1, Edge::kThreads, 0, caller>>>(rt.device, c.plan);
    if (producer) producer(Edge::kId, c.plan, map);
    complete_only<Edge><<<1, Edge::kThreads, 0, caller>>>(rt.device, c.plan, map);
  }
  CUCO_GEN_TRY(copy_own(c, caller));
  return launched();
}
// EVOLVE-BLOCK-END

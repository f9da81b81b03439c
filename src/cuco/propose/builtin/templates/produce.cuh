// ---- producers: a kernel of the user's that writes what an exchange sends ----
// EVOLVE-BLOCK-START cuco_gen.publish
__device__ inline unsigned long long producer_index(const ProducerMap& m, dim3 cta, dim3 grid) {
  switch (m.axis) {
    case 0: return cta.x;
    case 1: return cta.y;
    case 2: return cta.z;
    default: return cta.x + (unsigned long long)grid.x * (cta.y + (unsigned long long)grid.y * cta.z);
  }
}

// The whole CTA, after its last store: one count for every chunk it writes into. The block barrier orders all threads'
// stores before thread 0's release; device scope, because the exchange runs on this GPU.
template <class Edge>
__device__ inline void publish(const ProducerMap& m, dim3 cta, dim3 grid) {
  __syncthreads();
  if (threadIdx.x + threadIdx.y + threadIdx.z != 0) return;
  const unsigned long long begin = producer_index(m, cta, grid) * m.unit;
  if (begin >= m.total) return;
  const unsigned long long end = begin + m.unit < m.total ? begin + m.unit : m.total;
  const unsigned long long size = chunk_size<Edge>(m.total);
  for (unsigned long long c = begin / size; c <= (end - 1) / size; ++c) {
    cuda::atomic_ref<unsigned long long, cuda::thread_scope_device>(m.ready[c]).fetch_add(1, cuda::memory_order_release);
  }
}
// EVOLVE-BLOCK-END

// Host: the producer's map for one launch; refuses grids and sizes that the traced formula does not cover.
template <class Edge>
inline int producer_map(dim3 grid, unsigned long long bytes, ProducerMap* map) {
  const unsigned long long counts[4] = {grid.x, grid.y, grid.z, (unsigned long long)grid.x * grid.y * grid.z};
  const unsigned long long n = counts[Edge::kAxis];
  const unsigned long long unit = Edge::kUnit ? Edge::kUnit : bytes / n;
  if (unit == 0 || (Edge::kUnit ? n != (bytes + unit - 1) / unit : bytes % n != 0) || chunk_count<Edge>(bytes) > kMaxChunks)
    return fail(int(cudaErrorInvalidValue), "the producer's grid is not one that this candidate was made for");
  unsigned long long* words = rt.counts[Edge::kId];
  *map = {Edge::kAxis, unsigned(counts[3] / n), unit, bytes, words, words + kMaxChunks};
  return 0;
}

// ---- LSA: peers inside this rank's NVLink domain, reached by loads and stores ----
// EVOLVE-BLOCK-START cuco_gen.lsa
__device__ inline unsigned long long* peer_word(const Device& d, size_t word, int peer) {
  return (unsigned long long*)ncclGetPeerPointer(d.control, word * 8, peer);
}

using SystemWord = cuda::atomic_ref<unsigned long long, cuda::thread_scope_system>;

__device__ inline void wait_at_least(unsigned long long* word, unsigned long long least) {
  SystemWord w(*word);
  while (w.load(cuda::memory_order_acquire) < least) {}
}

// The whole CTA copies stripe `part` of `parts` of [0, bytes); 16-byte lanes where both sides allow it.
__device__ inline void copy_stripe(char* dst, const char* src, unsigned long long bytes, int part, int parts) {
  const unsigned long long lane = (unsigned long long)part * blockDim.x + threadIdx.x;
  const unsigned long long lanes = (unsigned long long)parts * blockDim.x;
  unsigned long long vectors = 0;
  if (((size_t(dst) | size_t(src)) & 15) == 0) {
    vectors = bytes / 16;
    for (unsigned long long i = lane; i < vectors; i += lanes) ((int4*)dst)[i] = ((const int4*)src)[i];
  }
  for (unsigned long long i = vectors * 16 + lane; i < bytes; i += lanes) dst[i] = src[i];
}

// One thread: tell `r.peer` where to write, after everything this rank did with that memory before.
__device__ inline void lsa_announce(const Device& d, const Transfer& r, int cta, unsigned long long turn) {
  *peer_word(d, announce_word(cta, d.comm.rank, r.slot), r.peer) = encode(r.window, r.offset);
  SystemWord(*peer_word(d, ready_word(d.comm.rank, r.slot), r.peer)).store(turn, cuda::memory_order_release);
}
// EVOLVE-BLOCK-END

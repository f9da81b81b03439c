// One exchange is a set of point-to-point transfers, matched in call order within each pair of ranks, whatever
// collective they came from. Protocol of one transfer (src -> dst):
//   announce  dst tells src where to write (window, offset); it also says "my buffer is free" (step contract E1)
//   send      src moves the bytes, then raises dst's arrival count
//   complete  dst waits for its arrival count; src has flushed its sources (step contract E2)
// All counts only grow, and what a count must reach is kept on the device, so steps, chains and graph replays agree.
constexpr int kMaxTransfers = 32;  // per exchange and direction; bounds the kernel parameter
constexpr int kMaxWindows = 24;
constexpr int kMaxRanks = 16;

struct Transfer {
  unsigned long long offset;  // bytes from the base of `window`, in this rank's memory
  unsigned long long bytes;
  int window, peer, slot;     // slot: which of the pair's concurrent transfers
};

struct Plan {
  int nsends, nrecvs;
  Transfer sends[kMaxTransfers], recvs[kMaxTransfers];
};

// Which CTA of a producer kernel completes which bytes of the first send's source: CTA index i along `axis` writes
// only inside [i * unit, (i + 1) * unit), and `multiplicity` CTAs share each such interval.
struct ProducerMap {
  int axis;                   // 0 x, 1 y, 2 z, 3 linear index; -1: no producer, everything is ready
  unsigned multiplicity;
  unsigned long long unit, total;
  unsigned long long* ready;  // per chunk: CTAs that have published, over all steps
  unsigned long long* steps;  // per CTA of the exchange: steps it has finished
};

// This rank's view of what the candidate communicates through; passed to kernels by value.
struct Device {
  ncclDevComm comm;
  ncclWindow_t windows[kMaxWindows];
  ncclWindow_t control;               // this rank's announce slots and arrival words, written by peers
  unsigned long long* uses;           // private to this rank: how often each pair's slot was used
};

// Layout of the control window, in 8-byte words. `kSlots` is the number of slots per pair over all edges.
__host__ __device__ constexpr size_t announce_word(int cta, int peer, int slot) {
  return (size_t(cta) * kMaxRanks + peer) * kSlots + slot;
}
__host__ __device__ constexpr size_t ready_word(int peer, int slot) {
  return announce_word(kMaxCtas, 0, 0) + size_t(peer) * kSlots + slot;
}
__host__ __device__ constexpr size_t arrived_word(int peer, int slot) {
  return ready_word(kMaxRanks, 0) + size_t(peer) * kSlots + slot;
}
constexpr size_t kControlWords = arrived_word(kMaxRanks, 0);

// Layout of `uses`: every CTA counts its own sends (no CTA reads what another writes); CTA 0 owns the receives.
__host__ __device__ constexpr size_t sent_word(int cta, int peer, int slot) {
  return (size_t(cta) * kMaxRanks + peer) * kSlots + slot;
}
__host__ __device__ constexpr size_t received_word(int peer, int slot) {
  return sent_word(kMaxCtas, 0, 0) + size_t(peer) * kSlots + slot;
}
__host__ __device__ constexpr size_t expected_word(int peer, int slot, int context) {
  return received_word(kMaxRanks, 0) + (size_t(peer) * kSlots + slot) * kMaxContexts + context;
}
constexpr size_t kUsesWords = expected_word(kMaxRanks, 0, 0);

// GIN signals, the same ids on every context: "your turn to write to me" and "bytes have arrived".
__host__ __device__ constexpr unsigned ready_signal(int peer, int slot) { return peer * kSlots + slot; }
__host__ __device__ constexpr unsigned arrived_signal(int peer, int slot) {
  return (kMaxRanks + peer) * kSlots + slot;
}
constexpr int kSignals = 2 * kMaxRanks * kSlots;

// A destination as one 8-byte value, so that it travels in a single putValue or store.
__device__ inline unsigned long long encode(int window, unsigned long long offset) {
  return (unsigned long long)window << 48 | offset;
}
__device__ inline int decode_window(unsigned long long v) { return int(v >> 48); }
__device__ inline unsigned long long decode_offset(unsigned long long v) { return v & 0xffffffffffffull; }

__device__ inline unsigned long long* local_word(const Device& d, size_t word) {
  return (unsigned long long*)ncclGetLocalPointer(d.control, word * 8);
}

// A transfer travels in at most Edge::kPieces chunks of equal size (the last may be short), whole 256-byte lines each.
template <class Edge>
__host__ __device__ constexpr unsigned long long chunk_size(unsigned long long bytes) {
  const unsigned long long even = (bytes + Edge::kPieces - 1) / Edge::kPieces;
  return even == 0 ? 256 : (even + 255) / 256 * 256;
}
template <class Edge>
__host__ __device__ constexpr unsigned long long chunk_count(unsigned long long bytes) {
  return (bytes + chunk_size<Edge>(bytes) - 1) / chunk_size<Edge>(bytes);
}

struct Range {
  unsigned long long begin, end;
  __host__ __device__ constexpr unsigned long long size() const { return end - begin; }
};
// Bytes of chunk `c` of `bytes`; empty behind the last chunk.
template <class Edge>
__host__ __device__ constexpr Range chunk_range(unsigned long long bytes, unsigned long long c) {
  const unsigned long long size = chunk_size<Edge>(bytes), begin = c * size < bytes ? c * size : bytes;
  return {begin, bytes - begin < size ? bytes : begin + size};
}

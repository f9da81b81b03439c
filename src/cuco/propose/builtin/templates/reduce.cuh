// ---- reductions: contributions travel to the rank that reduces them, which adds them up in rank order ----
// 16-bit floats are summed in float32 and rounded once. (NCCL's rings round at every hop.)
// EVOLVE-BLOCK-START cuco_gen.reduce
template <class T> struct Accumulator { using type = T; };
template <> struct Accumulator<__half> { using type = float; };
template <> struct Accumulator<__nv_bfloat16> { using type = float; };

template <class A>
__device__ inline A combine(A a, A b, ncclRedOp_t op) {
  switch (op) {
    case ncclProd: return a * b;
    case ncclMin: return b < a ? b : a;
    case ncclMax: return a < b ? b : a;
    default: return a + b;  // ncclSum, ncclAvg
  }
}

// out[i] = combination over ranks r of part r; part `rank` is `own`, the others lie `stride` elements apart in `staging`.
template <class T>
__global__ void reduce_parts(T* out, const T* own, const T* staging, size_t n, size_t stride, int rank, int nranks,
                             ncclRedOp_t op) {
  using A = typename Accumulator<T>::type;
  for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
    A sum = A(rank == 0 ? own[i] : staging[i]);
    for (int r = 1; r < nranks; ++r) sum = combine(sum, A(r == rank ? own[i] : staging[r * stride + i]), op);
    if (op == ncclAvg) sum = sum / A(nranks);
    out[i] = T(sum);
  }
}

template <class T>
inline ncclResult_t launch_reduce(void* out, const void* own, size_t n, size_t stride, ncclRedOp_t op, cudaStream_t stream) {
  if (n == 0) return ncclSuccess;
  const size_t blocks = (n + 255) / 256;
  reduce_parts<T><<<unsigned(blocks < 264 ? blocks : 264), 256, 0, stream>>>(
      (T*)out, (const T*)own, (const T*)rt.staging, n, stride, rt.user->rank, rt.user->nranks, op);
  return cudaGetLastError() == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

inline ncclResult_t reduce_into(void* out, const void* own, size_t n, size_t stride, ncclDataType_t type, ncclRedOp_t op,
                                cudaStream_t stream) {
  if (op > ncclAvg) return ncclInvalidArgument;  // user-made reductions are not covered
  switch (type) {
@REDUCE_CASES@
    default: break;
  }
  fail(1000 + int(ncclInvalidArgument), "a reduction over a data type that this candidate was not made for");
  return ncclInvalidArgument;
}

// Segments of an all-reduce: rank r reduces elements [r * segment, ...), the last segments may be short or empty.
inline size_t segment_size(size_t count) {
  const size_t even = (count + rt.user->nranks - 1) / rt.user->nranks;
  return (even + 15) / 16 * 16;  // keeps segments 16-byte aligned for every type
}
inline size_t segment_length(size_t count, int r) {
  const size_t begin = segment_size(count) * r;
  return begin >= count ? 0 : (count - begin < segment_size(count) ? count - begin : segment_size(count));
}
// EVOLVE-BLOCK-END

inline ncclResult_t check_staging(size_t bytes) {
  if (bytes <= rt.staging_bytes) return ncclSuccess;
  fail(1000 + int(ncclInvalidUsage), "a reduction larger than the staging space that cuco_prepare set aside");
  return ncclInvalidUsage;
}

// EVOLVE-BLOCK-START cuco_gen.reduce_calls
// Part r of `send` goes to rank r's staging slot of this rank.
inline ncclResult_t collect_contributions(const void* send, size_t count, size_t stride, size_t element, bool segments) {
  for (int i = 1; i < rt.user->nranks; ++i) {
    const size_t out = segments ? segment_length(count, behind(i)) : count;
    const size_t in = segments ? segment_length(count, rt.user->rank) : count;
    CUCO_GEN_TRY(add_send((const char*)send + behind(i) * stride * element, out * element, behind(i)));
    CUCO_GEN_TRY(add_recv(rt.staging + before(i) * stride * element, in * element, before(i)));
  }
  return ncclSuccess;
}

template <class Edge>
inline ncclResult_t reduce_scatter(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                   cudaStream_t stream) {
  const size_t element = element_bytes(type);
  CUCO_GEN_TRY(check_staging(count * element * rt.user->nranks));
  CUCO_GEN_TRY(collect_contributions(send, count, count, element, false));
  CUCO_GEN_TRY(run_exchange<Edge>(stream));
  return reduce_into(recv, (const char*)send + rt.user->rank * count * element, count, count, type, op, stream);
}

template <class Edge>
inline ncclResult_t reduce_to_root(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                                   cudaStream_t stream) {
  const size_t element = element_bytes(type), stride = (count + 15) / 16 * 16;
  CUCO_GEN_TRY(check_staging(stride * element * rt.user->nranks));
  if (rt.user->rank != root) {
    CUCO_GEN_TRY(add_send(send, count * element, root));
    return run_exchange<Edge>(stream);
  }
  for (int i = 1; i < rt.user->nranks; ++i)
    CUCO_GEN_TRY(add_recv(rt.staging + before(i) * stride * element, count * element, before(i)));
  CUCO_GEN_TRY(run_exchange<Edge>(stream));
  return reduce_into(recv, send, count, stride, type, op, stream);
}

// Reduce-scatter of segments, then all-gather of the reduced segments (edge Second).
template <class Edge, class Second>
inline ncclResult_t all_reduce(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               cudaStream_t stream) {
  const size_t element = element_bytes(type), stride = segment_size(count), mine = rt.user->rank * stride;
  CUCO_GEN_TRY(check_staging(stride * element * rt.user->nranks));
  CUCO_GEN_TRY(collect_contributions(send, count, stride, element, true));
  CUCO_GEN_TRY(run_exchange<Edge>(stream));
  const size_t length = segment_length(count, rt.user->rank);
  CUCO_GEN_TRY(reduce_into((char*)recv + mine * element, (const char*)send + mine * element, length, stride, type, op, stream));
  for (int i = 1; i < rt.user->nranks; ++i) {
    CUCO_GEN_TRY(add_send((char*)recv + mine * element, length * element, behind(i)));
    CUCO_GEN_TRY(add_recv((char*)recv + before(i) * stride * element, segment_length(count, before(i)) * element, before(i)));
  }
  return run_exchange<Second>(stream);
}
// EVOLVE-BLOCK-END

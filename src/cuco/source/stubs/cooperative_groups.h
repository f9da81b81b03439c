// Cooperative groups, declared for reading source with libclang.
#pragma once
namespace cooperative_groups {
#define CUCO_GROUP                                                                                                    \
  __device__ void sync() const; __device__ unsigned long long size() const; __device__ unsigned long long num_threads() const; \
  __device__ unsigned thread_rank() const; __device__ bool is_valid() const; __device__ unsigned group_index_rank() const;   \
  template <class T> __device__ T shfl(T, int) const; template <class T> __device__ T shfl_down(T, int) const;         \
  template <class T> __device__ T shfl_up(T, int) const; template <class T> __device__ T shfl_xor(T, int) const;       \
  __device__ int any(int) const; __device__ int all(int) const; __device__ unsigned ballot(int) const;                 \
  __device__ unsigned meta_group_size() const; __device__ unsigned meta_group_rank() const; __device__ dim3 group_dim() const; \
  __device__ dim3 thread_index() const; __device__ dim3 group_index() const; __device__ dim3 dim_blocks() const;       \
  __device__ unsigned num_blocks() const; __device__ unsigned block_rank() const; __device__ dim3 block_index() const;
struct thread_group { CUCO_GROUP };
struct thread_block : thread_group { CUCO_GROUP };
struct grid_group : thread_group { CUCO_GROUP };
struct cluster_group : thread_group { CUCO_GROUP template <class T> __device__ T *map_shared_rank(T *, int) const; __device__ void barrier_arrive() const; __device__ void barrier_wait() const; };
struct coalesced_group : thread_group { CUCO_GROUP };
template <unsigned N, class P = void> struct thread_block_tile : thread_group { CUCO_GROUP };
#undef CUCO_GROUP
__device__ thread_block this_thread_block();
__device__ grid_group this_grid();
__device__ cluster_group this_cluster();
__device__ coalesced_group coalesced_threads();
template <unsigned N, class G> __device__ thread_block_tile<N, G> tiled_partition(const G &);
template <class G> __device__ thread_group tiled_partition(const G &, unsigned);
template <class G> __device__ coalesced_group labeled_partition(const G &, int);
template <class G> __device__ void sync(const G &);
template <class T> struct plus { __device__ T operator()(T, T) const; };
template <class T> struct less { __device__ T operator()(T, T) const; };
template <class T> struct greater { __device__ T operator()(T, T) const; };
template <class G, class T, class F> __device__ T reduce(const G &, T, F &&);
template <class G, class T> __device__ T inclusive_scan(const G &, T);
template <class G, class T> __device__ T exclusive_scan(const G &, T);
template <class G, class T, class... A> __device__ void memcpy_async(const G &, T *, const T *, A...);
template <class G> __device__ void wait(const G &);
}  // namespace cooperative_groups

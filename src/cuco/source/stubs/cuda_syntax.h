// CUDA's syntax for libclang in host mode: attributes, launch configuration, built-in variables and functions.
// Forced in front of every source that CUCo reads, after the real cuda_runtime.h of the toolkit. Declarations only: the
// result is read, never compiled; nvcc stays the judge of what is valid.
#pragma once
// Library functions are callable from kernels, as nvcc has it.
#if __has_include(<bits/stl_algobase.h>)
#include <bits/stl_algobase.h>
#endif
#pragma clang force_cuda_host_device begin
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#pragma clang force_cuda_host_device end
#include <memory>  // before CUDA makes __noinline__ a macro, which libstdc++ uses as an attribute's name
#include <cuda_runtime.h>

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __managed__
#undef __launch_bounds__
#undef __grid_constant__
#undef __cluster_dims__
#undef __block_size__
#undef __maxnreg__
#undef __forceinline__
#undef __noinline__
#undef __align__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((device))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __grid_constant__
#define __cluster_dims__(...)
#define __block_size__(...)
#define __maxnreg__(...)
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#ifndef __CUDA_ARCH_LIST__
#define __CUDA_ARCH_LIST__ 900
#endif

extern "C" cudaError_t cudaConfigureCall(dim3, dim3, size_t = 0, cudaStream_t = 0);
extern "C" unsigned __cudaPushCallConfiguration(dim3, dim3, size_t = 0, cudaStream_t = 0);

extern const __device__ uint3 threadIdx, blockIdx;
extern const __device__ dim3 blockDim, gridDim;
extern const __device__ int warpSize;

__device__ void __syncthreads();
__device__ int __syncthreads_or(int);
__device__ int __syncthreads_and(int);
__device__ int __syncthreads_count(int);
__device__ void __syncwarp(unsigned = ~0u);
__device__ void __threadfence();
__device__ void __threadfence_block();
__device__ void __threadfence_system();
__device__ void __nanosleep(unsigned);
__device__ void __trap();
__device__ void __brkpt();
__device__ void __prof_trigger(int);
__device__ long long clock64();
__device__ int clock();
__device__ int __popc(unsigned);
__device__ int __popcll(unsigned long long);
__device__ int __ffs(int);
__device__ int __ffsll(long long);
__device__ int __clz(int);
__device__ int __clzll(long long);
__device__ unsigned __brev(unsigned);
__device__ unsigned __activemask();
__device__ unsigned __ballot_sync(unsigned, int);
__device__ int __any_sync(unsigned, int);
__device__ int __all_sync(unsigned, int);
__device__ unsigned __isGlobal(const void *);
__device__ unsigned __isShared(const void *);
__device__ size_t __cvta_generic_to_shared(const void *);
__device__ size_t __cvta_generic_to_global(const void *);
__device__ unsigned __reduce_add_sync(unsigned, unsigned);
__device__ unsigned __reduce_max_sync(unsigned, unsigned);
__device__ unsigned __reduce_min_sync(unsigned, unsigned);
template <class T> __device__ unsigned __match_any_sync(unsigned, T);
template <class T> __device__ unsigned __match_all_sync(unsigned, T, int *);
template <class T> __device__ T __shfl_sync(unsigned, T, int, int = 32);
template <class T> __device__ T __shfl_up_sync(unsigned, T, unsigned, int = 32);
template <class T> __device__ T __shfl_down_sync(unsigned, T, unsigned, int = 32);
template <class T> __device__ T __shfl_xor_sync(unsigned, T, int, int = 32);
template <class T> __device__ T __ldg(const T *);
template <class T> __device__ T __ldcg(const T *);
template <class T> __device__ T __ldca(const T *);
template <class T> __device__ T __ldcs(const T *);
template <class T> __device__ T __ldlu(const T *);
template <class T> __device__ T __ldcv(const T *);
template <class T> __device__ void __stcg(T *, T);
template <class T> __device__ void __stcs(T *, T);
template <class T> __device__ void __stwb(T *, T);
template <class T> __device__ void __stwt(T *, T);

#define CUCO_ATOMIC(name)                                              \
  template <class T, class U> __device__ T name(T *, U);               \
  template <class T, class U> __device__ T name##_block(T *, U);       \
  template <class T, class U> __device__ T name##_system(T *, U)
CUCO_ATOMIC(atomicAdd);
CUCO_ATOMIC(atomicSub);
CUCO_ATOMIC(atomicExch);
CUCO_ATOMIC(atomicMin);
CUCO_ATOMIC(atomicMax);
CUCO_ATOMIC(atomicAnd);
CUCO_ATOMIC(atomicOr);
CUCO_ATOMIC(atomicXor);
CUCO_ATOMIC(atomicInc);
CUCO_ATOMIC(atomicDec);
#undef CUCO_ATOMIC
template <class T, class U, class V> __device__ T atomicCAS(T *, U, V);
template <class T, class U, class V> __device__ T atomicCAS_block(T *, U, V);
template <class T, class U, class V> __device__ T atomicCAS_system(T *, U, V);

__device__ float __fdividef(float, float);
__device__ float __frcp_rn(float);
__device__ float __fsqrt_rn(float);
__device__ float __fmaf_rn(float, float, float);
__device__ float __fadd_rn(float, float);
__device__ float __fmul_rn(float, float);
__device__ float __int_as_float(int);
__device__ float __uint_as_float(unsigned);
__device__ int __float_as_int(float);
__device__ unsigned __float_as_uint(float);
__device__ int __float2int_rn(float);
__device__ double __longlong_as_double(long long);
__device__ long long __double_as_longlong(double);
__device__ unsigned __byte_perm(unsigned, unsigned, unsigned);
__device__ unsigned __umulhi(unsigned, unsigned);
__device__ int __mulhi(int, int);
__device__ int __mul24(int, int);
__device__ int __dp4a(int, int, int);
__host__ __device__ float rsqrtf(float);
__host__ __device__ double rsqrt(double);
__host__ __device__ float __saturatef(float);
template <class T, class U> __host__ __device__ decltype(T() + U()) min(T, U);
template <class T, class U> __host__ __device__ decltype(T() + U()) max(T, U);
__device__ void *__nv_aligned_device_malloc(size_t, size_t);

// What cuda_runtime.h declares for nvcc only: the forms that take a kernel or a symbol as such.
template <class... P, class... A> cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *, void (*)(P...), A &&...);
template <class T> cudaError_t cudaFuncSetAttribute(T *, cudaFuncAttribute, int);
template <class T> cudaError_t cudaFuncSetCacheConfig(T *, cudaFuncCache);
template <class T> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *, T *);
template <class T> cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *, T, int, size_t);
template <class T> cudaError_t cudaOccupancyMaxPotentialBlockSize(int *, int *, T, size_t, int);
template <class T> cudaError_t cudaMemcpyToSymbol(const T &, const void *, size_t, size_t = 0, cudaMemcpyKind = cudaMemcpyHostToDevice);
template <class T> cudaError_t cudaMemcpyFromSymbol(void *, const T &, size_t, size_t = 0, cudaMemcpyKind = cudaMemcpyDeviceToHost);
template <class T> cudaError_t cudaMemcpyToSymbolAsync(const T &, const void *, size_t, size_t = 0, cudaMemcpyKind = cudaMemcpyHostToDevice, cudaStream_t = 0);
template <class T> cudaError_t cudaMemcpyFromSymbolAsync(void *, const T &, size_t, size_t = 0, cudaMemcpyKind = cudaMemcpyDeviceToHost, cudaStream_t = 0);
template <class T> cudaError_t cudaGetSymbolAddress(void **, const T &);
template <class T> cudaError_t cudaGetSymbolSize(size_t *, const T &);
template <class T> cudaError_t cudaMalloc(T **, size_t);
template <class T> cudaError_t cudaHostAlloc(T **, size_t, unsigned);
template <class T> cudaError_t cudaMallocAsync(T **, size_t, cudaStream_t);

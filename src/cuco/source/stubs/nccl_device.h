// The names of NCCL's device API (facts of nccl_device 2.32) for reading source with libclang: host structures are NCCL's
// own, device classes are declared loosely (any arguments), because argument checking is nvcc's business.
#pragma once
#include <nccl.h>
#include "nccl_device/host.h"
#include <cuda/atomic>

struct ncclGinCtx;
struct ncclCoopAny { template <class C> __device__ ncclCoopAny(C); __device__ int thread_rank() const; __device__ int size() const; __device__ int num_threads() const; __device__ void sync(); };
template <int N> struct ncclCoopTile { __device__ int thread_rank() const; __device__ int size() const; __device__ int num_threads() const; __device__ unsigned laneMask() const; __device__ void sync(); };
typedef ncclCoopTile<1> ncclCoopThread;
typedef ncclCoopTile<32> ncclCoopWarp;
struct ncclCoopLanes { unsigned lmask; __device__ ncclCoopLanes(unsigned = ~0u); __device__ int thread_rank() const; __device__ int size() const; __device__ int num_threads() const; __device__ void sync(); };
struct ncclCoopWarpSpan { __device__ ncclCoopWarpSpan(int, int, int); __device__ int thread_rank() const; __device__ int size() const; __device__ int num_threads() const; __device__ void sync(); };
struct ncclCoopCta { __device__ int thread_rank() const; __device__ int size() const; __device__ int num_threads() const; __device__ void sync(); };
template <class... A> __device__ ncclCoopLanes ncclCoopCoalesced(A...);

__device__ ncclTeam ncclTeamWorld(ncclDevComm const &);
__device__ ncclTeam ncclTeamLsa(ncclDevComm const &);
__device__ ncclTeam ncclTeamRail(ncclDevComm const &);
template <class... A> __device__ ncclTeam ncclTeamCft(ncclDevComm const &, A...);
__device__ ncclTeam ncclTeamCftMultimem(ncclDevComm const &);
__device__ int ncclTeamRankToWorld(ncclDevComm const &, ncclTeam, int);
__device__ int ncclTeamRankToLsa(ncclDevComm const &, ncclTeam, int);

__device__ void *ncclGetLocalPointer(ncclWindow_t, size_t);
__device__ void *ncclGetLsaPointer(ncclWindow_t, size_t, int);
__device__ void *ncclGetPeerPointer(ncclWindow_t, size_t, int);
__device__ void *ncclGetPeerPointer(ncclWindow_t, size_t, ncclTeam, int);
__device__ void *ncclGetMultimemPointer(ncclWindow_t, size_t, ncclMultimemHandle);
__device__ void *ncclGetLsaMultimemPointer(ncclWindow_t, size_t, ncclDevComm const &);
template <class... A> __device__ void *ncclGetResourceBufferLocalPointer(A...);
template <class... A> __device__ void *ncclGetResourceBufferLsaPointer(A...);
template <class... A> __device__ void *ncclGetResourceBufferPeerPointer(A...);
template <class... A> __device__ void *ncclGetResourceBufferMultimemPointer(A...);
template <class... A> __device__ void *ncclGetResourceBufferLsaMultimemPointer(A...);
template <class... A> __device__ ncclWindow_t ncclFindWindow(A...);

template <class T> struct ncclSymPtr {
  ncclWindow_t window; size_t offset;
  __host__ __device__ ncclSymPtr(ncclWindow_t = nullptr, size_t = 0);
  template <class U> operator ncclSymPtr<U>() const;
  __device__ ncclSymPtr &operator+=(size_t); __device__ ncclSymPtr &operator-=(size_t);
  __device__ T *localPtr() const; __device__ T *lsaPtr(int) const; __device__ T *peerPtr(int) const;
  __device__ T *peerPtr(ncclTeam, int) const; template <class... A> __device__ T *multimemPtr(A...) const; template <class... A> __device__ T *lsaMultimemPtr(A...) const;
};
template <class T, class I> __host__ __device__ ncclSymPtr<T> operator+(ncclSymPtr<T>, I);

enum ncclGinFenceLevel : uint32_t { None = 0, Put = 1, Get = 2 };
__host__ __device__ ncclGinFenceLevel operator|(ncclGinFenceLevel, ncclGinFenceLevel);
enum ncclGinResourceSharingMode { NCCL_GIN_RESOURCE_SHARING_GPU, NCCL_GIN_RESOURCE_SHARING_CTA, NCCL_GIN_RESOURCE_SHARING_THREAD };
struct ncclGin_None {};
#define CUCO_SIGNAL(name) struct name##Inc { ncclGinSignal_t signal; }; struct name##Add { ncclGinSignal_t signal; uint64_t value; }
CUCO_SIGNAL(ncclGin_StrongSignal); CUCO_SIGNAL(ncclGin_WeakSignal); CUCO_SIGNAL(ncclGin_Signal);
#undef CUCO_SIGNAL
#define CUCO_SIGNAL(name) struct name##Inc { ncclWindow_t signalWindow; size_t signalOffset; }; struct name##Add { ncclWindow_t signalWindow; size_t signalOffset; uint64_t value; }
CUCO_SIGNAL(ncclGin_StrongVASignal); CUCO_SIGNAL(ncclGin_WeakVASignal); CUCO_SIGNAL(ncclGin_VASignal);
#undef CUCO_SIGNAL
struct ncclGin_CounterInc { ncclGinCounter_t counter; };
struct ncclGin_WeakCounterInc { ncclGinCounter_t counter; };
struct ncclGinDescriptorSmem { alignas(64) char bytes[128]; };
struct ncclGin_DescriptorSmem { ncclGinDescriptorSmem *descriptor; };
struct ncclGin_SegmentDevice {}; struct ncclGin_SegmentMixed {}; struct ncclGin_SegmentHostNuma {};

template <unsigned M> struct ncclGin_BackendMask {
  ncclDevComm const &comm; uint32_t nConnections, contextId;
  template <class... A> __device__ ncclGin_BackendMask(ncclDevComm const &, int, A...);
  template <class... A> __device__ void put(A &&...) const;
  template <class... A> __device__ void putValue(A &&...) const;
  template <class... A> __device__ void get(A &&...) const;
  template <class... A> __device__ void signal(A &&...) const;
  template <class... A> __device__ ncclResult_t flush(A &&...) const;
  template <class... A> __device__ void flushAsync(A &&...) const;
  template <class... A> __device__ ncclResult_t wait(A &&...) const;
  template <class... A> __device__ uint64_t readCounter(A &&...) const;
  template <class... A> __device__ ncclResult_t waitCounter(A &&...) const;
  template <class... A> __device__ uint64_t readSignal(A &&...) const;
  template <class... A> __device__ ncclResult_t waitSignal(A &&...) const;
  template <class... A> __device__ ncclResult_t waitSignalMeetShadow(A &&...) const;
  template <class... A> __device__ ncclResult_t waitSignalFollowShadow(A &&...) const;
  template <class... A> __device__ void resetSignal(A &&...) const;
  template <class... A> __device__ void resetCounter(A &&...) const;
  __device__ uint64_t *getSignalShadowPtr(ncclGinSignal_t) const;
  __device__ void increaseSignalShadow(ncclGinSignal_t, uint64_t) const;
};
typedef ncclGin_BackendMask<~0u> ncclGin;
template <unsigned B> struct ncclGin_BackendOne : ncclGin_BackendMask<B> { using ncclGin_BackendMask<B>::ncclGin_BackendMask; };
struct ncclGinAllContexts { __device__ ncclGinAllContexts(ncclDevComm const &); };

#define CUCO_BARRIER(name)                                                                                             \
  template <class Coop> struct name {                                                                                  \
    template <class... A> __device__ name(A &&...); __device__ ~name();                                                \
    template <class... A> __device__ ncclResult_t arrive(A &&...); template <class... A> __device__ ncclResult_t wait(A &&...); \
    template <class... A> __device__ ncclResult_t sync(A &&...);
CUCO_BARRIER(ncclLsaBarrierSession) };
CUCO_BARRIER(ncclGinBarrierSession) };
CUCO_BARRIER(ncclCftBarrierSession) };
CUCO_BARRIER(ncclBarrierSession) __device__ ncclLsaBarrierSession<Coop> &lsaBarrier(); __device__ ncclGinBarrierSession<Coop> &ginBarrier(); };
#undef CUCO_BARRIER
template <class Coop, class... A> __device__ void ncclLsaBarrier(Coop, A &&...);
template <class Coop, class... A> __device__ void ncclGinBarrier(Coop, A &&...);
template <class Coop, class... A> __device__ void ncclBarrier(Coop, A &&...);

template <class Coop> struct ncclLLA2ASession {
  template <class... A> __device__ ncclLLA2ASession(A &&...); __device__ ~ncclLLA2ASession();
  template <class... A> __device__ void send(A &&...); template <class... A> __device__ void bcast(A &&...);
  template <class T, class... A> __device__ T recv(A &&...); template <class... A> __device__ void recvUnrolled(A &&...);
  template <class... A> __device__ auto recvReduce(A &&...) -> int; template <class... A> __device__ void endEpoch(A &&...);
};
#define CUCO_FREE(name) template <class... A> __device__ void name(A &&...)
CUCO_FREE(ncclLsaReduceSum); CUCO_FREE(ncclMultimemReduceSum); CUCO_FREE(ncclLocalReduceSum); CUCO_FREE(ncclLsaCopy);
CUCO_FREE(ncclMultimemCopy); CUCO_FREE(ncclLocalCopy); CUCO_FREE(ncclLsaReduceSumCopy); CUCO_FREE(ncclMultimemReduceSumCopy);
CUCO_FREE(ncclLsaReduceSumMultimemCopy); CUCO_FREE(ncclMultimemReduceSumLsaCopy); CUCO_FREE(ncclLsaReduceLsaCopy);
CUCO_FREE(ncclLsaReduceMultimemCopy); CUCO_FREE(ncclMemFence);
#undef CUCO_FREE

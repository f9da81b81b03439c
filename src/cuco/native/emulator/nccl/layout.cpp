// Compile-time proof that the runtime and NCCL's device headers agree on every layout the emulator fills in or reads.
// A new NCCL release that moves a field stops the build here, with its version named, instead of corrupting a run.
// The expected numbers were measured with the headers of NCCL 2.32.3 on x86-64 (64-bit pointers, little endian).
#include "headers.h"

#include <bit>
#include <cstddef>

#define CUCO_TEXT2(x) #x
#define CUCO_TEXT(x) CUCO_TEXT2(x)
#define CUCO_NCCL_FOUND \
  "NCCL " CUCO_TEXT(NCCL_MAJOR) "." CUCO_TEXT(NCCL_MINOR) "." CUCO_TEXT(NCCL_PATCH)
#define CUCO_ADVICE \
  " differs from NCCL 2.32.3, which the emulator was written for; install nvidia-nccl-cu13==2.32.3 or adapt " \
  "native/emulator/nccl/layout.cpp and its users"
#define CUCO_SIZE(type, bytes) \
  static_assert(sizeof(type) == (bytes), "size of " #type " in " CUCO_NCCL_FOUND CUCO_ADVICE)
#define CUCO_AT(type, field, bytes) \
  static_assert(offsetof(type, field) == (bytes), "offset of " #type "::" #field " in " CUCO_NCCL_FOUND CUCO_ADVICE)

static_assert(sizeof(void*) == 8 && std::endian::native == std::endian::little,
              "the emulator needs a 64-bit little-endian host");
static_assert(NCCL_GIN_PROXY_GFD_VERSION == 2, "GIN proxy descriptor version in " CUCO_NCCL_FOUND CUCO_ADVICE);
static_assert(NCCL_GIN_MAX_CONNECTIONS == 4, "GIN connection limit in " CUCO_NCCL_FOUND CUCO_ADVICE);
static_assert(NCCL_API_MAGIC == 0xcafebeef, "API magic in " CUCO_NCCL_FOUND CUCO_ADVICE);

// The device communicator is a kernel argument: compiled code reads it by offset.
CUCO_SIZE(ncclDevComm, 248);
CUCO_AT(ncclDevComm, rank, 8);
CUCO_AT(ncclDevComm, nRanks_rcp32, 16);
CUCO_AT(ncclDevComm, lsaRank, 20);
CUCO_AT(ncclDevComm, lsaSize_rcp32, 28);
CUCO_AT(ncclDevComm, windowTable, 32);
CUCO_AT(ncclDevComm, resourceWindow, 40);
CUCO_AT(ncclDevComm, resourceWindow_inlined, 48);
CUCO_AT(ncclDevComm, hybridDenseGinBarrier, 64);
CUCO_AT(ncclDevComm, lsaMultimem, 72);
CUCO_AT(ncclDevComm, lsaBarrier, 80);
CUCO_AT(ncclDevComm, railGinBarrier, 88);
CUCO_AT(ncclDevComm, ginConnectionCount, 96);
CUCO_AT(ncclDevComm, ginNetDeviceTypes, 98);
CUCO_AT(ncclDevComm, ginHandles, 104);
CUCO_AT(ncclDevComm, ginSignalCount, 136);
CUCO_AT(ncclDevComm, ginSignalShadows, 144);
CUCO_AT(ncclDevComm, ginContextCount, 152);
CUCO_AT(ncclDevComm, ginConnectionStride, 156);
CUCO_AT(ncclDevComm, ginContextStride, 160);
CUCO_AT(ncclDevComm, ginStrongLegacySignals, 164);
CUCO_AT(ncclDevComm, abortFlag, 168);
CUCO_AT(ncclDevComm, hybridLsaBarrier, 176);
CUCO_AT(ncclDevComm, hybridRailGinBarrier, 184);
CUCO_AT(ncclDevComm, worldGinBarrier, 192);
CUCO_AT(ncclDevComm, ginConnectionStride_rcp32, 200);

// Windows and the window table live in device memory and are read by loadConst().
CUCO_SIZE(ncclWindow_vidmem, 96);
CUCO_AT(ncclWindow_vidmem, lsaFlatBase, 8);
CUCO_AT(ncclWindow_vidmem, lsaRank, 16);
CUCO_AT(ncclWindow_vidmem, worldRank, 20);
CUCO_AT(ncclWindow_vidmem, stride4G, 24);
CUCO_AT(ncclWindow_vidmem, ginOffset4K, 32);
CUCO_AT(ncclWindow_vidmem, ginWinsDefaultBackend, 40);
CUCO_AT(ncclWindow_vidmem, ginMultiSegmentWins, 72);
CUCO_AT(ncclWindow_vidmem, numSegments, 80);
CUCO_SIZE(ncclResourceWindow_vidmem, 16);
CUCO_SIZE(ncclSegmentWindow, 48);
CUCO_SIZE(ncclDevCommWindowTable, 776);
CUCO_AT(ncclDevCommWindowTable, next, 768);

// The proxy context of each (rank, context) and the descriptors that put(), get(), signal() and flush() write.
CUCO_SIZE(ncclGinProxyGpuCtx_t, 80);
CUCO_AT(ncclGinProxyGpuCtx_t, queues, 8);
CUCO_AT(ncclGinProxyGpuCtx_t, pis, 16);
CUCO_AT(ncclGinProxyGpuCtx_t, cis, 24);
CUCO_AT(ncclGinProxyGpuCtx_t, counters, 32);
CUCO_AT(ncclGinProxyGpuCtx_t, signals, 40);
CUCO_AT(ncclGinProxyGpuCtx_t, signalOffsets, 48);
CUCO_AT(ncclGinProxyGpuCtx_t, lastIssuedGet, 56);
CUCO_AT(ncclGinProxyGpuCtx_t, lastVisibleGet, 64);
CUCO_AT(ncclGinProxyGpuCtx_t, flushesAllPutsOnAnySignal, 72);
CUCO_SIZE(ncclGinProxyGfd_t, 128);

// Structures that user code fills in and the host API reads.
CUCO_SIZE(ncclConfig_t, 120);
CUCO_SIZE(ncclCollConfig_t, 72);
CUCO_SIZE(ncclSimInfo_t, 24);
CUCO_SIZE(ncclEncryptionConfig_t, 32);
CUCO_SIZE(ncclDevCommRequirements, 120);
CUCO_SIZE(ncclDevResourceRequirements, 56);
CUCO_SIZE(ncclTeamRequirements, 32);
CUCO_SIZE(ncclCommProperties, 152);
CUCO_SIZE(ncclLsaBarrierHandle, 8);
CUCO_SIZE(ncclGinBarrierHandle, 8);
CUCO_SIZE(ncclLLA2AHandle, 8);

// What the test programs share: checks that count failures and say where, and small device-memory helpers.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

static int failures = 0;

#define CHECK(condition, ...)                                  \
  do {                                                         \
    if (!(condition)) {                                        \
      failures++;                                              \
      std::printf("FAILED line %d: %s: ", __LINE__, #condition); \
      std::printf("" __VA_ARGS__);                             \
      std::printf("\n");                                       \
    }                                                          \
  } while (0)

#define NCCL(call)                                                                                    \
  do {                                                                                                \
    ncclResult_t code_ = (call);                                                                      \
    if (code_ != ncclSuccess) {                                                                       \
      failures++;                                                                                     \
      std::printf("FAILED line %d: %s gives %d (%s)\n", __LINE__, #call, code_, ncclGetLastError(nullptr)); \
    }                                                                                                 \
  } while (0)

#define CUDA(call)                                                                              \
  do {                                                                                          \
    cudaError_t code_ = (call);                                                                 \
    if (code_ != cudaSuccess) {                                                                 \
      failures++;                                                                               \
      std::printf("FAILED line %d: %s gives %s\n", __LINE__, #call, cudaGetErrorString(code_)); \
    }                                                                                           \
  } while (0)

// Expects one particular error code.
#define EXPECT(code, call)                                                                           \
  do {                                                                                               \
    ncclResult_t got_ = (call);                                                                      \
    if (got_ != (code)) {                                                                            \
      failures++;                                                                                    \
      std::printf("FAILED line %d: %s gives %d (%s), expected %s\n", __LINE__, #call, got_,          \
                  ncclGetLastError(nullptr), #code);                                                 \
    }                                                                                                \
  } while (0)

template <class T>
T* device_array(const std::vector<T>& values) {
  T* memory = nullptr;
  NCCL(ncclMemAlloc(reinterpret_cast<void**>(&memory), values.size() * sizeof(T)));
  CUDA(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}

template <class T>
std::vector<T> host_array(const T* memory, size_t count) {
  std::vector<T> values(count);
  CUDA(cudaMemcpy(values.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

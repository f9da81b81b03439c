#include "memory.h"

#include "hash.h"
#include "platform.h"

#include <nccl.h>

#include <algorithm>

namespace cuco::driver {

namespace {

constexpr int kDecoyByte = 0x5a;
constexpr size_t kSmallestBuffer = 4096;   // what a buffer of 0 bytes gets
constexpr size_t kLargestDecoy = 96 * 1024;

void check_nccl(ncclResult_t code, const char *what, int rank) {
  if (code == ncclSuccess) return;
  Finding finding;
  finding.kind = "crash";
  finding.rule = "driver";
  finding.rank = rank;
  finding.message = std::string(what) + ": " + ncclGetErrorString(code);
  platform::fail(finding);
}

}  // namespace

void check_cuda(cudaError_t code, const char *what, int rank) {
  if (code == cudaSuccess) return;
  Finding finding;
  finding.kind = "crash";
  finding.rule = "cuda-error";
  finding.rank = rank;
  finding.message = std::string(what) + ": " + cudaGetErrorString(code);
  platform::fail(finding);
}

Memory::Memory(const Job &job, int rank) {
  uint64_t random = mix(job.seed * 0x9e3779b97f4a7c15ull + static_cast<uint64_t>(rank) + 1);
  for (const Buffer &buffer : job.buffers[rank]) {
    add_decoys(random, job.decoys, buffer.name);
    void *memory = nullptr;
    check_nccl(ncclMemAlloc(&memory, std::max(buffer.bytes, kSmallestBuffer)), "allocating a buffer", rank);
    platform::name_memory(memory, buffer.name);
    if (!job.data && buffer.bytes) platform::not_supplied(memory);
    pointers_.push_back(memory);
    add_decoys(random, job.decoys, buffer.name);
  }
}

Memory::~Memory() {
  for (void *memory : pointers_) ncclMemFree(memory);
  for (const Decoy &decoy : decoys_) ncclMemFree(decoy.memory);
}

void Memory::add_decoys(uint64_t &random, int most, const std::string &beside) {
  if (most <= 0) return;
  random = mix(random + 1);
  for (uint64_t count = random % static_cast<uint64_t>(most + 1); count > 0; count--) {
    random = mix(random + 1);
    size_t bytes = 256 + random % kLargestDecoy;
    void *memory = nullptr;
    if (ncclMemAlloc(&memory, bytes) != ncclSuccess) return;
    cudaMemset(memory, kDecoyByte, bytes);
    decoys_.push_back({memory, bytes, beside});
  }
}

std::string Memory::damage() const {
  std::vector<unsigned char> content;
  for (const Decoy &decoy : decoys_) {
    content.resize(decoy.bytes);
    if (cudaMemcpy(content.data(), decoy.memory, decoy.bytes, cudaMemcpyDeviceToHost) != cudaSuccess)
      return "memory beside '" + decoy.beside + "' cannot be read any more";
    for (size_t i = 0; i < decoy.bytes; i++)
      if (content[i] != kDecoyByte)
        return "memory beside '" + decoy.beside + "' was overwritten at byte " + std::to_string(i);
  }
  return {};
}

}  // namespace cuco::driver

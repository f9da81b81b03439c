// What the driver needs beyond the CUDA runtime and NCCL. platform_emulator.cpp implements it over the emulator's core;
// another testbed brings another file with the same functions. Everything else in this folder is the same for all.
#pragma once

#include "job.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace cuco::driver {

struct Finding {   // contracts.md 5; -1 and empty: unknown
  std::string kind, rule;
  int rank = -1, cta = -1, thread = -1;
  std::string file;
  int line = 0;
  std::string buffer, message;
  std::string object;                 // of a machine fault: the shared object and the place in it, if `file` is empty
  uint64_t offset = 0;
  std::vector<std::string> details;   // who waits for what; further lines
};

namespace platform {

void start(const Job &job);   // once, before any other call

// Runs body(rank) on a host thread of its own per rank, and all the work that they give to streams. Returns when all
// have returned, or when a finding has ended the run.
void run_ranks(int ranks, const std::function<void(int)> &body);

[[noreturn]] void fail(Finding finding);   // from a rank's host thread: ends the run
std::vector<Finding> findings();           // after run_ranks
std::vector<std::pair<std::string, uint64_t>> counters();
void finish();                             // closes the trace

// A copy of the candidate's library that only this rank uses (its statics and __device__ variables are its own).
void *load_library(int rank, const Job &job);
void *symbol(void *library, const char *name);   // nullptr if absent

void barrier();   // of all ranks' host threads
void quiesce();   // returns when nothing that the ranks have issued is under way any more, the network included

// Between true and false the ranks that the job names are slow: they run when nothing else can, and then in short bursts.
// Every rank calls both, the first of each counts.
void perturb(bool on);

// A named moment of a step, when `stream` reaches it.
void mark(cudaStream_t stream, const char *name, uint32_t step);

// Enqueues the hash of `bytes` bytes at `data`; *out is valid when the stream has passed it. `out` must stay valid.
cudaError_t enqueue_hash(cudaStream_t stream, const void *data, size_t bytes, const uint64_t key[2], uint64_t *out);

// What messages and traces call the buffer at `memory`.
void name_memory(const void *memory, const std::string &name);
// This memory will not hold its data in this run (timing of what is sliced): nothing may depend on its content.
void not_supplied(const void *memory);

// While set for the calling rank, calls that synchronise the device end the run with a finding that names them.
void forbid_synchronisation(bool forbidden);

}  // namespace platform

}  // namespace cuco::driver

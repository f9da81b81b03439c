// What ncclDevCommCreate has to allocate: a pure computation from the requirements, so that it can be checked alone.
#pragma once

#include "headers.h"

#include <cstddef>
#include <string>

namespace cuco::nccl {

struct TeamShape {
  int rank, ranks;          // in the communicator
  int lsa_rank, lsa_ranks;  // in the team that can load and store into each other's memory
  ncclGinConnectionType_t gin;  // what the network offers: NONE, RAIL or FULL
};

// Sizes and offsets; offsets count from the start of the resource buffer, signals and counters are per GIN context.
struct ResourcePlan {
  size_t buffer_bytes = 0;
  size_t shadow_offset = 0;  // signal shadows: contexts x signals x 8 bytes, inside the buffer
  int signals = 0;           // user signals first, then barriers and list requests
  int counters = 0;
  int contexts = 0;
  bool gin = false;
  int context_stride = 1;     // world-rank distance of connected GIN peers
  int connection_stride = 1;  // queues exist for ranks at this distance
};

// Why NCCL refuses a request, and with which code. `code` is ncclSuccess when nothing is wrong.
struct Refusal {
  ncclResult_t code = ncclSuccess;
  std::string reason;
};

// Checks the requirements as NCCL 2.32 does (nccl_device_api.md 2.2): magic and version, GIN resources without a
// connection type, connection types the network lacks, world barriers on rail connections, multicast.
Refusal check_requirements(const ncclDevCommRequirements& reqs, const TeamShape& shape);

// Lays out barriers, lists and shadows, and writes every out handle of the lists. `comm` receives the handles of the
// built-in barriers. Call only after check_requirements succeeded.
ResourcePlan plan_resources(const ncclDevCommRequirements& reqs, const TeamShape& shape, ncclDevComm* comm);

}  // namespace cuco::nccl

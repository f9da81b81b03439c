// Checking of ncclConfig_t and ncclCollConfig_t: which values NCCL refuses (facts from NCCL's parseCommConfig) and the
// defaults of what the caller left undefined.
#pragma once

#include "headers.h"

#include <string>

namespace cuco::nccl {

struct CommConfig {
  bool blocking = true;
  int max_ctas = 64;
  int cta_policy = NCCL_CTA_POLICY_DEFAULT;
  int rma_contexts = 1;
  int rma_signals = 64;
};

// Fills `out` from the caller's structure (null: all defaults). Returns an empty string, or what is wrong with it.
std::string read_config(const ncclConfig_t* config, CommConfig* out);

// Checks a per-call configuration against its communicator. Returns an empty string, or what is wrong with it.
std::string check_call_config(const ncclCollConfig_t* config, const CommConfig& comm);

}  // namespace cuco::nccl

// Error names and the rank's last error.
#include "host.h"

#include <cuda_runtime_api.h>

using namespace cuco::cuda;

namespace {

struct Row {
  int code;
  const char* name;
  const char* text;  // nullptr: no words of its own
};
const Row kRows[] = {
#include "error_names.inc"
};

const Row* find(cudaError_t code) {
  for (const Row& row : kRows)
    if (row.code == static_cast<int>(code)) return &row;
  return nullptr;
}

}  // namespace

extern "C" {

const char* cudaGetErrorName(cudaError_t code) {
  const Row* row = find(code);
  return row ? row->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t code) {
  const Row* row = find(code);
  if (!row) return "unrecognized error code";
  return row->text ? row->text : row->name;
}

cudaError_t cudaGetLastError() {
  const cudaError_t code = host().last_error;
  host().last_error = cudaSuccess;
  return code;
}

cudaError_t cudaPeekAtLastError() { return host().last_error; }
}

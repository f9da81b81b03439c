// The candidate as the driver sees it: three functions of a library that is never trusted. Every call is announced (the
// evidence if the process dies in it), exceptions and error codes become findings.
#pragma once

#include "cuco.h"
#include "platform.h"
#include "wire.h"

#include <string>
#include <vector>

namespace cuco::driver {

class Candidate {
 public:
  Candidate(const Job &job, Wire &wire, int rank);
  ~Candidate();
  Candidate(const Candidate &) = delete;

  void load();                                   // finds the three functions, or ends the run
  void bind(ncclComm_t comm, int device, std::vector<void *> pointers);
  void prepare();
  void launch(uint32_t step, cudaStream_t stream);
  void finish();

 private:
  struct Context;   // cuco_ctx and what its callbacks need
  template <typename Call>
  void guarded(const char *what, uint32_t step, Call call);
  [[noreturn]] void fail(const std::string &rule, const std::string &message, const char *kind = "crash");

  static void *allocate(const cuco_ctx *ctx, size_t bytes, size_t align);
  static void report(const cuco_ctx *ctx, const char *message);

  const Job &job_;
  Wire &wire_;
  int rank_;
  Context *context_;
  void *state_ = nullptr;
  int (*prepare_)(const cuco_ctx *, void **) = nullptr;
  int (*launch_)(const cuco_ctx *, void *, cudaStream_t) = nullptr;
  int (*finish_)(const cuco_ctx *, void *) = nullptr;
};

}  // namespace cuco::driver

#include "candidate.h"

#include <cstring>
#include <exception>

namespace cuco::driver {

constexpr int kStagingPoison = 0xa5;   // fresh staging space: neither zero nor a NaN, so that relying on either shows
constexpr int kNcclCodes = 1000;       // error codes from here on are ncclResult_t + 1000

struct Candidate::Context {
  cuco_ctx abi{};   // first: the callbacks get its address
  Candidate *owner = nullptr;
  std::vector<cuco_buffer> buffers;
  std::vector<cuco_param> params;
  std::vector<void *> allocations;
  std::string error;   // what the candidate said through cuco_ctx::error
  bool launching = false;
};

Candidate::Candidate(const Job &job, Wire &wire, int rank) : job_(job), wire_(wire), rank_(rank), context_(new Context) {
  context_->owner = this;
}

Candidate::~Candidate() {
  for (void *allocation : context_->allocations) ncclMemFree(allocation);
  delete context_;
}

void Candidate::fail(const std::string &rule, const std::string &message, const char *kind) {
  Finding finding;
  finding.kind = kind;
  finding.rule = rule;
  finding.rank = rank_;
  finding.message = message;
  platform::fail(finding);
}

void Candidate::load() {
  wire_.send_text(Message::stage, {uint32_t(rank_), 0}, "loading");
  void *library = platform::load_library(rank_, job_);
  const char *names[3] = {"cuco_prepare", "cuco_launch", "cuco_finish"};
  void *found[3];
  for (int i = 0; i < 3; i++) {
    found[i] = platform::symbol(library, names[i]);
    if (!found[i]) fail("missing-function", std::string("the candidate defines no extern \"C\" ") + names[i]);
  }
  std::memcpy(&prepare_, &found[0], sizeof prepare_);
  std::memcpy(&launch_, &found[1], sizeof launch_);
  std::memcpy(&finish_, &found[2], sizeof finish_);
}

void Candidate::bind(ncclComm_t comm, int device, std::vector<void *> pointers) {
  Context &context = *context_;
  const std::vector<Buffer> &buffers = job_.buffers[rank_];
  for (size_t i = 0; i < buffers.size(); i++) {
    cuco_buffer buffer{};
    buffer.name = buffers[i].name.c_str();
    buffer.dtype = buffers[i].dtype;
    buffer.ndim = static_cast<int>(buffers[i].shape.size());
    for (int d = 0; d < buffer.ndim; d++) buffer.shape[d] = buffers[i].shape[d];
    buffer.bytes = buffers[i].bytes;
    buffer.ptr = pointers[i];
    buffer.role = buffers[i].role;
    context.buffers.push_back(buffer);
  }
  for (const Param &param : job_.params) context.params.push_back({param.name.c_str(), param.is_float, param.i, param.f});
  cuco_ctx &abi = context.abi;
  abi.abi = CUCO_ABI;
  abi.struct_bytes = sizeof abi;
  abi.rank = rank_;
  abi.nranks = job_.ranks;
  abi.lsa_rank = rank_ % job_.lsa_team;
  abi.lsa_size = job_.lsa_team;
  abi.device = device;
  abi.comm = comm;
  abi.nbuffers = static_cast<int>(context.buffers.size());
  abi.buffers = context.buffers.data();
  abi.nparams = static_cast<int>(context.params.size());
  abi.params = context.params.data();
  abi.alloc = allocate;
  abi.error = report;
}

void *Candidate::allocate(const cuco_ctx *ctx, size_t bytes, size_t align) {
  Context *context = reinterpret_cast<Context *>(const_cast<cuco_ctx *>(ctx));
  if (context->launching)
    context->owner->fail("synchronising-call", "cuco_launch calls alloc, which synchronises the device; "
                                               "get staging space in cuco_prepare");
  if (align > 4096 && (align & (align - 1))) return nullptr;
  void *memory = nullptr;
  size_t padded = (bytes ? bytes : 1) + (align > 4096 ? align : 0);
  if (ncclMemAlloc(&memory, padded) != ncclSuccess) return nullptr;
  platform::name_memory(memory, "scratch " + std::to_string(context->allocations.size()));
  context->allocations.push_back(memory);
  if (context->owner->job_.data) {
    cudaMemset(memory, kStagingPoison, padded);
    cudaStreamSynchronize(nullptr);   // the stream of cudaMemset here; the candidate's own must not overtake the poison
  }
  uintptr_t at = reinterpret_cast<uintptr_t>(memory);
  if (align > 4096) at = (at + align - 1) & ~(uintptr_t(align) - 1);
  return reinterpret_cast<void *>(at);
}

void Candidate::report(const cuco_ctx *ctx, const char *message) {
  Context *context = reinterpret_cast<Context *>(const_cast<cuco_ctx *>(ctx));
  if (context->error.empty()) context->error = message ? message : "(no message)";
}

template <typename Call>
void Candidate::guarded(const char *what, uint32_t step, Call call) {
  wire_.send_text(Message::stage, {uint32_t(rank_), step}, what);
  int code = 0;
  std::string thrown;
  try {
    code = call();
  } catch (const std::exception &error) {
    thrown = error.what();
  } catch (...) {   // platform::fail does not return through here: it never unwinds
    thrown = "something that is no std::exception";
  }
  if (!thrown.empty()) fail("exception", std::string(what) + " threw: " + thrown);
  const std::string &said = context_->error;
  if (code == 0 && said.empty()) return;
  std::string message = what;
  if (code != 0) message += " returned " + std::to_string(code);
  if (code >= kNcclCodes) {
    message += std::string(" (NCCL: ") + ncclGetErrorString(static_cast<ncclResult_t>(code - kNcclCodes)) + ")";
  } else if (code != 0) {
    message += std::string(" (CUDA: ") + cudaGetErrorString(static_cast<cudaError_t>(code)) + ")";
  }
  if (!said.empty()) message += (code ? "; it said: " : " reported: ") + said;
  bool declined = std::strcmp(what, "cuco_prepare") == 0 && !said.empty();
  fail(declined ? "declined" : "error-code", message, declined ? "unsupported" : "crash");
}

void Candidate::prepare() {
  guarded("cuco_prepare", 0, [this] { return prepare_(&context_->abi, &state_); });
}

void Candidate::launch(uint32_t step, cudaStream_t stream) {
  context_->launching = true;
  platform::forbid_synchronisation(true);
  guarded("cuco_launch", step, [this, stream] { return launch_(&context_->abi, state_, stream); });
  platform::forbid_synchronisation(false);
  context_->launching = false;
}

void Candidate::finish() {
  guarded("cuco_finish", 0, [this] { return finish_(&context_->abi, state_); });
}

}  // namespace cuco::driver

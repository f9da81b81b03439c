#include "rank.h"

namespace cuco::driver {

namespace {

void check_nccl(ncclResult_t code, const char *what, int rank) {
  if (code == ncclSuccess) return;
  Finding finding;
  finding.kind = "crash";
  finding.rule = "nccl-error";
  finding.rank = rank;
  finding.message = std::string(what) + ": " + ncclGetErrorString(code);
  platform::fail(finding);
}

}  // namespace

Rank::Rank(Shared &shared, int rank) : shared_(shared), job_(shared.job), rank_(rank) {}

void Rank::run() {
  check_cuda(cudaSetDevice(device()), "selecting the device", rank_);
  candidate_ = std::make_unique<Candidate>(job_, shared_.wire, rank_);
  candidate_->load();
  if (rank_ == 0) check_nccl(ncclGetUniqueId(&shared_.id), "ncclGetUniqueId", rank_);
  platform::barrier();
  if (rank_ == 0) shared_.wire.send(Message::ready, {});
  connect();
  uint32_t step = 0;
  for (const Segment &part : job_.segments) {
    segment(part, step);
    step += static_cast<uint32_t>(part.count);
  }
  disconnect();
}

void Rank::connect() {
  check_nccl(ncclCommInitRank(&comm_, job_.ranks, shared_.id, rank_), "ncclCommInitRank", rank_);
  memory_ = std::make_unique<Memory>(job_, rank_);
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating the stream", rank_);
  candidate_->bind(comm_, device(), memory_->pointers());
  candidate_->prepare();
  check_cuda(cudaDeviceSynchronize(), "after cuco_prepare", rank_);
  platform::barrier();
}

// Chain: nothing here orders the ranks' steps among each other. Isolated: everybody is quiet before every step.
void Rank::segment(const Segment &part, uint32_t first) {
  uint32_t end = first + static_cast<uint32_t>(part.count);
  if (first == end) return;
  if (part.mode == Mode::chain) {
    platform::barrier();
    platform::perturb(true);
    for (uint32_t step = first; step < end; step++) {
      supply(step);
      one_step(step);
    }
    settle(end - 1);
    return;
  }
  for (uint32_t step = first; step < end; step++) {
    supply(step);
    check_cuda(cudaStreamSynchronize(stream_), "supplying inputs", rank_);
    platform::barrier();
    platform::perturb(true);
    one_step(step);
    settle(step);
  }
}

// Fresh inputs and poison, as stream work of this rank alone.
void Rank::supply(uint32_t step) {
  if (!job_.data) return;
  const std::vector<Buffer> &buffers = job_.buffers[rank_];
  in_use_.push_back(shared_.inputs.of(step));
  for (size_t i = 0; i < buffers.size(); i++) {
    const Buffer &buffer = buffers[i];
    void *to = memory_->pointers()[i];
    if (buffer.bytes == 0) continue;
    if (buffer.is_input())
      check_cuda(cudaMemcpyAsync(to, in_use_.back()->at(rank_, i), buffer.bytes, cudaMemcpyHostToDevice, stream_),
                 "supplying inputs", rank_);
    if (buffer.is_poisoned())
      check_cuda(cudaMemsetAsync(to, buffer.poison, buffer.bytes, stream_), "poisoning outputs", rank_);
  }
}

void Rank::one_step(uint32_t step) {
  platform::mark(stream_, "begin", step);
  candidate_->launch(step, stream_);
  platform::mark(stream_, "end", step);
  if (job_.data && job_.steps[step].checked) collect(step);
}

// The hash of every output right behind the step, and a snapshot where the plan wants one.
void Rank::collect(uint32_t step) {
  const std::vector<Buffer> &buffers = job_.buffers[rank_];
  for (uint32_t i = 0; i < buffers.size(); i++) {
    if (!buffers[i].is_output() || buffers[i].bytes == 0) continue;
    Evidence &item = evidence_.emplace_back();
    item.step = step;
    item.buffer = i;
    const void *from = memory_->pointers()[i];
    check_cuda(platform::enqueue_hash(stream_, from, buffers[i].bytes, job_.steps[step].key, &item.hash),
               "hashing outputs", rank_);
    if (!job_.steps[step].snapshot) continue;
    item.snapshot = Pinned(buffers[i].bytes);
    check_cuda(cudaMemcpyAsync(item.snapshot.data(), from, buffers[i].bytes, cudaMemcpyDeviceToHost, stream_),
               "copying outputs", rank_);
  }
}

// Waits until all ranks are quiet, sends the evidence, and hashes the last step's outputs again: a difference is a write
// after the step had ended.
void Rank::settle(uint32_t last_step) {
  check_cuda(cudaStreamSynchronize(stream_), "waiting for the step's stream", rank_);
  check_cuda(cudaDeviceSynchronize(), "waiting for the device", rank_);
  platform::barrier();
  platform::perturb(false);
  platform::quiesce();
  in_use_.clear();
  std::vector<std::pair<const Evidence *, uint64_t>> again;
  for (const Evidence &item : evidence_)
    if (item.step == last_step) again.emplace_back(&item, 0);
  for (auto &[item, hash] : again)
    check_cuda(platform::enqueue_hash(stream_, memory_->pointers()[item->buffer], job_.buffers[rank_][item->buffer].bytes,
                                      job_.steps[last_step].key, &hash),
               "hashing outputs again", rank_);
  check_cuda(cudaStreamSynchronize(stream_), "hashing outputs again", rank_);
  auto send_hash = [&](const Evidence &item, Moment moment, uint64_t value) {
    shared_.wire.send(Message::hash, {item.step, uint32_t(rank_), item.buffer, static_cast<uint32_t>(moment)}, &value,
                      sizeof value);
  };
  for (const Evidence &item : evidence_) {
    send_hash(item, Moment::in_stream, item.hash);
    if (item.snapshot.size())
      shared_.wire.send(Message::snapshot, {item.step, uint32_t(rank_), item.buffer}, item.snapshot.data(),
                        item.snapshot.size());
  }
  for (auto &[item, hash] : again) send_hash(*item, Moment::quiet, hash);
  evidence_.clear();
  check_decoys();
  platform::barrier();   // nobody starts the next step while peers still take evidence
}

void Rank::check_decoys() {
  std::string damage = memory_->damage();
  if (damage.empty()) return;
  Finding finding;
  finding.kind = "out-of-bounds";
  finding.rule = "decoy";
  finding.rank = rank_;
  finding.message = damage;
  platform::fail(finding);
}

void Rank::disconnect() {
  candidate_->finish();
  check_cuda(cudaDeviceSynchronize(), "after cuco_finish", rank_);
  platform::barrier();
  candidate_.reset();
  memory_.reset();
  check_cuda(cudaStreamDestroy(stream_), "destroying the stream", rank_);
  check_nccl(ncclCommDestroy(comm_), "ncclCommDestroy", rank_);
}

}  // namespace cuco::driver

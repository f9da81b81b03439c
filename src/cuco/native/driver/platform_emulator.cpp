// The driver's platform on the emulator: host threads are fibers, the device is the core, results are exact memory.
#include "platform.h"

#include "hash.h"
#include "holder.h"
#include "names.h"
#include "settings_of.h"

#include "../emulator/core/access_sets.h"
#include "../emulator/core/finding.h"
#include "../emulator/core/memory.h"
#include "../emulator/core/scheduler.h"
#include "../emulator/core/slice.h"
#include "../emulator/core/trace.h"
#include "../emulator/cuda/host.h"
#include "../emulator/cuda/image.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>

namespace cuco::driver::platform {

namespace {

int ranks = 0;

emu::Finding to_core(const Finding &finding) {
  emu::Finding result;
  result.kind = finding.kind;
  result.rule = finding.rule;
  result.rank = finding.rank;
  result.cta = finding.cta;
  result.thread = finding.thread;
  result.file = finding.file;
  result.line = finding.line;
  result.buffer = finding.buffer;
  result.message = finding.message;
  return result;
}

Finding from_core(const emu::Finding &finding) {
  Finding result;
  result.kind = finding.kind;
  result.rule = finding.rule;
  result.rank = finding.rank;
  result.cta = static_cast<int>(finding.cta);
  result.thread = static_cast<int>(finding.thread);
  result.file = finding.file;
  result.line = finding.line;
  result.buffer = finding.buffer;
  result.message = readable(finding.message);
  result.object = finding.object;
  result.offset = finding.offset;
  for (const std::string &detail : finding.details) result.details.push_back(readable(detail));
  return result;
}

// A file of its own in memory: the loader takes equal files for one library, and every rank needs a library of its own.
std::string private_copy(const std::string &path, int rank) {
  int from = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status{};
  if (from < 0 || fstat(from, &status) < 0) throw std::runtime_error(path + " cannot be read");
  int to = memfd_create(("rank" + std::to_string(rank)).c_str(), MFD_CLOEXEC);
  if (to < 0) throw std::runtime_error("no memory for a library");
  for (off_t done = 0; done < status.st_size;) {
    ssize_t sent = sendfile(to, from, &done, static_cast<size_t>(status.st_size - done));
    if (sent <= 0) throw std::runtime_error(path + " cannot be copied");
  }
  close(from);
  return "/proc/self/fd/" + std::to_string(to);
}

void *open_library(const std::string &path) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library) return library;
  const char *why = dlerror();
  throw std::runtime_error(std::string("a library does not load: ") + (why ? why : path.c_str()));
}

std::unique_ptr<Holder> holder;

struct Hashing {
  const void *data;
  size_t bytes;
  uint64_t key[2];
  uint64_t *out;
};

void hash_now(void *argument) {
  Hashing *work = static_cast<Hashing *>(argument);
  *work->out = keyed_hash(work->data, work->bytes, work->key);
  delete work;
}

}  // namespace

void start(const Job &job) {
  ranks = job.ranks;
  emu::start(settings_of(job));
  void *library = open_library(job.kernels_library);
  using Module = const EmuModule *();
  Module *module = reinterpret_cast<Module *>(dlsym(library, "emu_module"));
  if (!module) throw std::runtime_error("the kernels library has no emu_module");
  cuda::use_kernels(module(), job.registers);
  static emu::AccessSets access_sets;
  if (emu::settings().access_sets) emu::observe_accesses(&access_sets);
  const SlowRanks slow = slow_ranks_of(job);
  if (!slow.ranks.empty()) holder = std::make_unique<Holder>(slow);
}

void run_ranks(int count, const std::function<void(int)> &body) {
  for (int rank = 0; rank < count; rank++)
    emu::scheduler().spawn(rank, "the driver of rank " + std::to_string(rank), [rank, &body] { body(rank); });
  emu::scheduler().run();
}

void fail(Finding finding) { emu::fail(to_core(finding)); }

std::vector<Finding> findings() {
  std::vector<Finding> result;
  for (const emu::Finding &finding : emu::findings()) result.push_back(from_core(finding));
  return result;
}

std::vector<std::pair<std::string, uint64_t>> counters() { return {{"rounds", emu::scheduler().rounds()}}; }

void finish() { emu::finish_trace(); }

void *load_library(int rank, const Job &job) { return open_library(private_copy(job.host_library, rank)); }

void *symbol(void *library, const char *name) { return dlsym(library, name); }

void barrier() {
  static int arrived = 0, generation = 0;   // of the ranks' fibers, which run one at a time
  int rank = emu::scheduler().current_rank(), mine = generation;
  emu::trace_host(rank, "barrier", emu::Record().put("id", mine));
  if (++arrived == ranks) {
    arrived = 0;
    generation++;
    return;
  }
  emu::scheduler().wait_until([mine] { return generation != mine; }, [] { return "the driver's barrier of all ranks"; });
}

void quiesce() {
  emu::scheduler().wait_until([] { return emu::scheduler().quiet(); },
                              [] { return "the driver's wait until nothing is under way"; });
}

void perturb(bool on) {
  if (!holder) return;
  if (on) {
    holder->start();
  } else {
    holder->stop();
  }
}

void mark(cudaStream_t stream, const char *name, uint32_t step) {
  const cuda::Stream *found = cuda::find_stream(stream);
  emu::Record record;
  record.put("name", name).put("step", step).put("stream", found ? found->number : 0);
  emu::trace_host(emu::scheduler().current_rank(), "mark", record);
}

cudaError_t enqueue_hash(cudaStream_t stream, const void *data, size_t bytes, const uint64_t key[2], uint64_t *out) {
  return cudaLaunchHostFunc(stream, hash_now, new Hashing{data, bytes, {key[0], key[1]}, out});
}

void name_memory(const void *memory, const std::string &name) {
  emu::memory().rename(reinterpret_cast<uint64_t>(memory), name);
}

void not_supplied(const void *memory) { emu::mark_unfilled(reinterpret_cast<uint64_t>(memory)); }

void forbid_synchronisation(bool forbidden) {
  cuda::host().forbidden = forbidden ? "cuco_launch must not synchronise the device (contract 1)" : "";
}

}  // namespace cuco::driver::platform

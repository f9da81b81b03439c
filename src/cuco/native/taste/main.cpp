// The first taste: runs `ring_step` of a kernels .so (examples/taste/ring.cu) on four ranks for some steps, each rank at
// its own pace, and checks every step's data. Needs neither CUDA nor NCCL.
//
//   taste KERNELS_SO SEED     prints findings as JSON lines; exit 0: all steps right, 1: rejected, 2: bad usage
#include "../emulator/core/finding.h"
#include "../emulator/core/grid.h"
#include "../emulator/core/memory.h"
#include "../emulator/core/scheduler.h"
#include "../emulator/core/waits.h"
#include "../emulator/core/words.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using namespace cuco::emu;

namespace {

constexpr int kRanks = 4, kSteps = 4, kCount = 512, kThreads = 64;

float value(int step, int rank, int i) { return static_cast<float>(1000 * step + 100 * rank + i % 97 + 1); }

struct Rank {
  RankModule module;
  uint64_t send = 0, recv = 0, flags = 0;   // flags: [arrived, free], one word each
  StreamId stream = kNoStream;
};
std::vector<Rank> ranks(kRanks);

template <class T>
void append(std::vector<unsigned char>& params, T v) {
  while (params.size() % sizeof v) params.push_back(0);
  params.insert(params.end(), reinterpret_cast<unsigned char*>(&v), reinterpret_cast<unsigned char*>(&v) + sizeof v);
}

std::vector<unsigned char> parameters(int rank, int step) {
  const Rank &me = ranks[rank], &right = ranks[(rank + 1) % kRanks], &left = ranks[(rank + kRanks - 1) % kRanks];
  std::vector<unsigned char> p;
  for (uint64_t pointer : {me.send, right.recv, me.flags, right.flags, me.flags + 4, left.flags + 4}) append(p, pointer);
  append(p, static_cast<uint32_t>(step));
  append(p, kCount);
  return p;
}

const EmuKernel* ring_step(const EmuModule& module) {
  for (uint32_t i = 0; i < module.nkernels; i++)
    if (std::strcmp(module.kernels[i].name, "ring_step") == 0) return &module.kernels[i];
  return nullptr;
}

// Compares this rank's data of one step; a difference ends the run with the wait that let it happen.
void check(int rank, int step) {
  const int left = (rank + kRanks - 1) % kRanks;
  const float* got = reinterpret_cast<const float*>(ranks[rank].recv);
  for (int i = 0; i < kCount; i++) {
    if (got[i] == value(step, left, i)) continue;
    Finding finding;
    finding.kind = "wrong-result";
    finding.rule = "data-of-step";
    finding.rank = rank;
    finding.buffer = "recv+" + std::to_string(4 * i);
    const bool older = step > 1 && got[i] == value(step - 1, left, i);
    finding.message = "step " + std::to_string(step) + ": recv[" + std::to_string(i) + "] is " + std::to_string(got[i]) +
                      (older ? ", the data of step " + std::to_string(step - 1) : std::string(", not yet written")) +
                      "; rank " + std::to_string(left) + " sends " + std::to_string(value(step, left, i));
    explain_stale_waits(finding, rank, step);
    fail(finding);
  }
}

// One rank's host code: fresh data, poison, launch, wait, check. Nothing waits for the other ranks but the kernel.
void run_rank(int rank) {
  Rank& me = ranks[rank];
  const EmuKernel* kernel = ring_step(*me.module.module);
  for (int step = 1; step <= kSteps; step++) {
    for (int i = 0; i < kCount; i++) reinterpret_cast<float*>(me.send)[i] = value(step, rank, i);
    set_step(rank, step);
    GridLaunch launch;
    launch.module = &me.module;
    launch.kernel = kernel;
    launch.rank = rank;
    launch.block[0] = kThreads;
    launch.params = parameters(rank, step);
    launch.stream = me.stream;
    launch.op = static_cast<uint64_t>(step);
    launch.after = host_release(rank);
    bool done = false;
    launch.complete = [&](const Clock& clock) {
      host_acquire(rank, clock);
      done = true;
      scheduler().made_progress();
    };
    submit(std::move(launch));
    scheduler().wait_until([&] { return done; }, [&] { return "the kernel of step " + std::to_string(step); });
    check(rank, step);
    std::memset(reinterpret_cast<void*>(me.recv), 0xff, kCount * sizeof(float));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: taste KERNELS_SO SEED\n");
    return 2;
  }
  void* library = dlopen(argv[1], RTLD_NOW);
  auto table = library ? reinterpret_cast<const EmuModule* (*)()>(dlsym(library, "emu_module")) : nullptr;
  if (!table || !ring_step(*table())) {
    std::fprintf(stderr, "taste: %s has no kernel ring_step\n", argv[1]);
    return 2;
  }
  Settings settings;
  settings.ranks = kRanks;
  settings.seed = std::strtoull(argv[2], nullptr, 10);
  start(settings);
  install_fault_handler();
  for (int r = 0; r < kRanks; r++) {
    Rank& me = ranks[r];
    me.module = load_module(table(), r);
    me.send = memory().allocate(r, kCount * 4, 256, MemoryKind::device, "send");
    me.recv = memory().allocate(r, kCount * 4, 256, MemoryKind::window, "recv");
    me.flags = memory().allocate(r, 8, 256, MemoryKind::window, "flags");
    std::memset(reinterpret_cast<void*>(me.flags), 0, 8);
    me.stream = new_stream(r);
    scheduler().spawn(r, "host of rank " + std::to_string(r), [r] { run_rank(r); });
  }
  for (int r = 0; r < kRanks; r++) {
    name_words(ranks[r].flags, 4, "the flag 'arrived'");
    name_words(ranks[r].flags + 4, 4, "the flag 'free'");
  }
  const bool good = scheduler().run();
  for (const Finding& finding : findings()) std::printf("%s\n", to_json(finding).c_str());
  return good && findings().empty() ? 0 : 1;
}

// Runs test programs on the emulator without the driver: every rank gets a copy of the host library and calls its
//   extern "C" int rank_main(int rank, int ranks, ncclUniqueId id)
// Arguments: HOST.so KERNELS.so RANKS LSA_TEAM SEED lazy|eager|random [TRACE]. Prints one line "rank R returned N" per
// rank and one JSON object per finding; exit status 0 when all returned 0 and nothing was found, 1 otherwise.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include <nccl.h>

#include "../../../src/cuco/native/emulator/core/finding.h"
#include "../../../src/cuco/native/emulator/core/scheduler.h"
#include "../../../src/cuco/native/emulator/core/trace.h"
#include "../../../src/cuco/native/emulator/cuda/image.h"

using RankMain = int (*)(int, int, ncclUniqueId);

namespace {

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "harness: %s\n", what.c_str());
  std::exit(70);
}

// The loader takes equal files for one library; every rank needs one of its own.
void* load_private(const char* path) {
  const int from = open(path, O_RDONLY | O_CLOEXEC), to = memfd_create("rank", MFD_CLOEXEC);
  if (from < 0 || to < 0) die(std::string(path) + " cannot be read");
  char buffer[1 << 16];
  for (ssize_t n; (n = read(from, buffer, sizeof buffer)) > 0;)
    if (write(to, buffer, static_cast<size_t>(n)) != n) die("a copy of a library fails");
  close(from);
  void* library = dlopen(("/proc/self/fd/" + std::to_string(to)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) die(dlerror());
  return library;
}

ncclUniqueId& shared_id() {
  static ncclUniqueId id = [] {
    ncclUniqueId fresh;
    ncclGetUniqueId(&fresh);
    return fresh;
  }();
  return id;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) die("usage: HOST.so KERNELS.so RANKS LSA_TEAM SEED DELIVERY [TRACE]");
  cuco::emu::Settings settings;
  settings.ranks = std::atoi(argv[3]);
  settings.lsa_team = std::atoi(argv[4]);
  settings.seed = std::strtoull(argv[5], nullptr, 10);
  const std::string delivery = argv[6];
  settings.delivery = delivery == "lazy"    ? cuco::emu::Delivery::lazy
                      : delivery == "eager" ? cuco::emu::Delivery::eager
                                            : cuco::emu::Delivery::random;
  if (argc > 7) settings.trace = argv[7];
  cuco::emu::start(settings);
  void* kernels = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  if (!kernels) die(dlerror());
  auto module = reinterpret_cast<const EmuModule* (*)()>(dlsym(kernels, "emu_module"));
  if (!module) die("no emu_module in the kernels library");
  cuco::cuda::use_kernels(module(), {});
  std::map<int, int> results;
  for (int rank = 0; rank < settings.ranks; rank++)
    cuco::emu::scheduler().spawn(rank, "rank " + std::to_string(rank), [&, rank] {
      void* library = load_private(argv[1]);
      auto entry = reinterpret_cast<RankMain>(dlsym(library, "rank_main"));
      if (!entry) die("no rank_main in the host library");
      results[rank] = entry(rank, settings.ranks, shared_id());
    });
  cuco::emu::scheduler().run();
  cuco::emu::finish_trace();
  bool good = cuco::emu::findings().empty() && static_cast<int>(results.size()) == settings.ranks;
  for (const auto& [rank, code] : results) {
    std::printf("rank %d returned %d\n", rank, code);
    good = good && code == 0;
  }
  for (const auto& finding : cuco::emu::findings()) std::printf("%s\n", cuco::emu::to_json(finding).c_str());
  std::fflush(stdout);
  _exit(good ? 0 : 1);
}

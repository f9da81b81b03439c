// A runner for the tests of libcudart: every rank loads its own copy of a host library and calls int run(rank, ranks).
// main HOST_SO KERNELS_SO RANKS SEED TRACE [KERNEL=REGISTERS...]; prints what the ranks returned, then findings as JSON.
#include "cuda/runtime.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

namespace emu = cuco::emu;

namespace {

void* open_or_exit(const std::string& path, int flags) {
  void* library = dlopen(path.c_str(), flags);
  if (!library) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(3);
  }
  return library;
}

int run_rank(const std::string& host, int rank, int ranks) {
  const std::string copy = host + "." + std::to_string(getpid()) + "." + std::to_string(rank);
  std::filesystem::copy_file(host, copy, std::filesystem::copy_options::overwrite_existing);
  void* library = open_or_exit(copy, RTLD_NOW | RTLD_LOCAL);
  std::filesystem::remove(copy);
  auto* run = reinterpret_cast<int (*)(int, int)>(dlsym(library, "run"));
  return run ? run(rank, ranks) : -1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  emu::Settings settings;
  settings.ranks = settings.lsa_team = std::atoi(argv[3]);
  settings.seed = std::strtoull(argv[4], nullptr, 10);
  settings.trace = argv[5];
  emu::start(settings);
  void* kernels = open_or_exit(argv[2], RTLD_NOW | RTLD_LOCAL);
  std::map<std::string, int> registers;
  for (int i = 6; i < argc; i++)
    if (char* equals = std::strchr(argv[i], '=')) registers[std::string(argv[i], equals)] = std::atoi(equals + 1);
  cuco::cuda::use_kernels(reinterpret_cast<const EmuModule* (*)()>(dlsym(kernels, "emu_module"))(), registers);

  std::vector<int> results(static_cast<size_t>(settings.ranks), -2);
  for (int rank = 0; rank < settings.ranks; rank++)
    emu::scheduler().spawn(rank, "host", [&, rank] {
      results[static_cast<size_t>(rank)] = run_rank(argv[1], rank, settings.ranks);
      cuco::cuda::drain_streams();
    });
  emu::scheduler().run();
  for (const int result : results) std::printf("%d\n", result);
  for (const emu::Finding& finding : emu::findings()) std::printf("%s\n", emu::to_json(finding).c_str());
  std::fflush(stdout);
  return 0;
}

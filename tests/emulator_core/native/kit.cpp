#include "kit.h"

#include <cstdlib>
#include <deque>

namespace kit {

int failures = 0;
Options options;

namespace {

const EmuSite kSites[] = {
    {0, 0, "", "", "", ""},
    {10, 41, "/nccl/include/nccl_device/signal.h", "waitSignal", "kernel@/x/program.cu:17", "ld.acquire.sys.u32"},
    {11, 18, "/x/program.cu", "kernel", "", "st.release.sys.u32"},
    {12, 19, "/x/program.cu", "kernel", "", "atom.add"},
    {13, 20, "/x/program.cu", "kernel", "", "atom.cas"},
    {14, 21, "/x/program.cu", "kernel", "", "bar.sync 0"},
    {15, 22, "/x/program.cu", "kernel", "", "ld.acquire.sys.u32"},
    {16, 23, "/x/program.cu", "kernel", "", "wgmma.mma_async"},
    {17, 24, "/x/program.cu", "kernel", "", "mbarrier"},
    {18, 25, "/x/program.cu", "kernel", "", "cp.async"},
};
const char* const kClasses[] = {"int"};
const uint32_t kWork[kBlocks] = {1, 2, 3, 4, 5, 6, 7, 8};
const EmuRange kRanges[] = {{0, kBlocks}};

struct RankState { RankModule module; StreamId stream = 0; uint64_t op = 0, pending = 0; Clock clock; };
std::deque<RankState> state;

}  // namespace

EmuKernel kernel(const char* name, EmuEntry entry, uint32_t static_shared) {
  EmuKernel k{};
  k.name = name;
  k.entry = entry;
  k.static_shared = static_shared;
  k.dynamic_align = 16;
  k.nranges = 1;
  k.ranges = kRanges;
  k.may_block = 1;
  return k;
}

const EmuModule* module_with(std::vector<EmuKernel> kernels) {
  static std::vector<EmuKernel> kept;
  static EmuModule module{};
  kept = std::move(kernels);
  module.abi = EMU_ABI;
  module.source = "program.cu";
  module.nkernels = static_cast<uint32_t>(kept.size());
  module.kernels = kept.data();
  module.nsites = std::size(kSites);
  module.sites = kSites;
  module.nclasses = 1;
  module.class_names = kClasses;
  module.nblocks = kBlocks;
  module.block_classes = kWork;
  module.block_weight = kWork;
  return &module;
}

void launch_bytes(const Launch& what, std::vector<unsigned char> params) {
  const int rank = scheduler().current_rank();
  RankState& s = state[static_cast<size_t>(rank)];
  GridLaunch g;
  g.module = &s.module;
  for (uint32_t i = 0; i < s.module.module->nkernels; i++)
    if (!std::strcmp(s.module.module->kernels[i].name, what.name)) g.kernel = &s.module.module->kernels[i];
  g.rank = rank;
  g.grid[0] = what.grid;
  g.block[0] = what.block;
  g.registers = what.registers;
  g.dynamic_shared = what.shared;
  g.cooperative = what.cooperative;
  g.params = std::move(params);
  g.stream = s.stream;
  g.op = ++s.op;
  const uint64_t op = g.op;
  scheduler().wait_until([&s] { return s.pending == 0; }, [] { return std::string("the stream"); });
  s.clock.join(host_release(rank));
  g.after = s.clock;
  s.pending = op;
  g.complete = [&s](const Clock& done) {
    s.clock.join(done);
    s.pending = 0;
  };
  const uint32_t id = trace_kernel(s.module.module, g.kernel, g.registers);
  Record record;
  record.put("stream", 0).put("kernel", id).put("grid", std::vector<int64_t>{what.grid, 1, 1});
  record.put("block", std::vector<int64_t>{what.block, 1, 1}).put("smem", what.shared);
  g.id = op * static_cast<uint64_t>(settings().ranks) + static_cast<uint64_t>(rank);
  record.put("id", g.id);
  trace_host(rank, "launch", record);
  submit(std::move(g));
}

void synchronize() {
  const int rank = scheduler().current_rank();
  RankState& s = state[static_cast<size_t>(rank)];
  scheduler().wait_until([&s] { return s.pending == 0; }, [] { return std::string("cudaStreamSynchronize"); });
  host_acquire(rank, s.clock);
}

bool run(const Settings& settings, const EmuModule* module, void (*host)(int rank)) {
  start(settings);
  for (int r = 0; r < settings.ranks; r++) {
    state.emplace_back();
    state.back().module = load_module(module, r);
    state.back().stream = new_stream(r);
    scheduler().spawn(r, "main", [host, r] { host(r); });
  }
  return scheduler().run();
}

void check(bool ok, const char* what, int line) {
  if (ok) return;
  failures++;
  std::fprintf(stderr, "line %d: %s does not hold\n", line, what);
}

const Finding* only_finding() { return findings().size() == 1 ? &findings().front() : nullptr; }

Settings settings_for(int ranks) {
  Settings s;
  s.ranks = ranks;
  s.seed = options.seed;
  s.reads = options.reads;
  s.trace = options.trace;
  s.machine.memory = 1ull << 30;
  return s;
}

std::map<std::string, Test>& tests() {
  static std::map<std::string, Test> all;
  return all;
}
Register::Register(const char* name, Test test) { tests()[name] = test; }

}  // namespace kit

// usage: program TEST [SEED [POLICY [TRACE]]]; prints findings as JSON lines; exit status 0 if every check holds
int main(int argc, char** argv) {
  if (argc < 2 || !kit::tests().count(argv[1])) {
    for (const auto& [name, test] : kit::tests()) std::printf("%s\n", name.c_str());
    return argc < 2 ? 0 : 2;
  }
  if (argc > 2) kit::options.seed = std::strtoull(argv[2], nullptr, 10);
  if (argc > 3) kit::options.reads = static_cast<cuco::emu::ReadPolicy>(std::atoi(argv[3]));
  if (argc > 4) kit::options.trace = argv[4];
  kit::tests()[argv[1]]();
  for (const cuco::emu::Finding& f : cuco::emu::findings()) std::printf("%s\n", cuco::emu::to_json(f).c_str());
  return kit::failures ? 1 : 0;
}

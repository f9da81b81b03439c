// Memory, faults, residency, asynchronous copies, printf.
#include "kit.h"

#include <algorithm>

using namespace kit;

namespace {

uint64_t at(const void* p) { return reinterpret_cast<uint64_t>(p); }

// ---- allocations, redzones, quarantine, aliases
void memory_host(int) {
  auto* a = device<uint32_t>(100, 7, "recv");
  CHECK(memory().describe(at(a) + 64) == "recv+64 of rank 0");
  CHECK(memory().describe(at(a) + 404) == "4 bytes past the end of recv of rank 0");
  CHECK(memory().valid(at(a), 400) && !memory().valid(at(a), 401) && !memory().valid(at(a) - 1, 1));
  CHECK(memory().check_redzones().empty());
  a[100] = 1;
  const auto damage = memory().check_redzones();
  CHECK(damage.size() == 1 && damage[0].allocation->name == "recv" && damage[0].offset == 400);
  CHECK(memory().check_redzones().empty());
  CHECK(memory().release(at(a)) && !memory().release(at(a)) && !memory().release(at(a) + 4));
  CHECK(memory().find(at(a)) && memory().find(at(a))->freed && !memory().valid(at(a), 4));
  const uint64_t b = memory().allocate(0, 0, 4096, MemoryKind::window, "empty");
  CHECK(b && b % 4096 == 0 && b != at(a));
  CHECK(memory().allocate(0, 1ull << 40, 256, MemoryKind::device) == 0);

  const uint64_t window = memory().allocate(0, 8192, 4096, MemoryKind::window, "window");
  const uint64_t flat = memory().reserve_alias(4ull << 32);
  memory().map_alias(flat + (2ull << 32), window, 8192);
  auto* through = reinterpret_cast<uint32_t*>(flat + (2ull << 32) + 4096);
  *through = 99;
  CHECK(*reinterpret_cast<uint32_t*>(window + 4096) == 99);
  CHECK(memory().canonical(at(through)) == window + 4096 && memory().rank_of(at(through)) == 0);
  CHECK(memory().canonical(flat + 64) == 0 && memory().valid(at(through), 4096) && !memory().valid(at(through), 4097));
}
void memory_test() { CHECK(run(settings_for(2), module_with({}), [](int rank) { if (rank == 0) memory_host(0); })); }

// ---- faults of GPU threads and of host code become findings
enum class Fault { null, wild, divide, stack, host, shared, strong };
struct FaultParams { Fault kind; volatile int* p; };   // p is null, which the compiler must not know
Fault wanted;
volatile int sink;
uint64_t deep(uint64_t n) {
  volatile char frame[512];
  frame[n % 512] = 1;
  return n == 0 ? frame[0] : deep(n - 1) + static_cast<uint64_t>(frame[n % 512]);
}
void faulty(EmuThread* t, const char* p) {
  const FaultParams& a = args<FaultParams>(p);
  if (t->linear != 5 || t->block->ctaid[0] != 2) return;
  if (a.kind == Fault::null) *a.p = 1;
  if (a.kind == Fault::wild) sink = *reinterpret_cast<volatile int*>(memory().arena_lo(0) + (512ull << 20));
  if (a.kind == Fault::divide) sink = 7 / sink;
  if (a.kind == Fault::stack) sink = static_cast<int>(deep(1000000));
  if (a.kind == Fault::shared) emu_hook_shared(t, at(t->block->shared) + 64, 4, EMU_READ, 2);
  if (a.kind == Fault::strong) ld(t, reinterpret_cast<uint32_t*>(0x1234));
}
void faulty_host(int) {
  if (wanted == Fault::host) *reinterpret_cast<volatile int*>(16 + sink) = 1;
  launch({.name = "faulty", .grid = 4, .block = 64, .shared = 64}, FaultParams{wanted, nullptr});
  synchronize();
}
template <Fault kind>
void fault_test() {
  wanted = kind;
  CHECK(!run(settings_for(1), module_with({kernel("faulty", faulty)}), faulty_host));
  const Finding* f = only_finding();
  const bool crash = kind == Fault::divide || kind == Fault::stack || kind == Fault::host;
  CHECK(f && f->kind == (crash ? "crash" : "out-of-bounds") && f->rank == 0);
  if (kind == Fault::host) return;
  CHECK(f && f->cta == 2 && f->thread == 5 && f->kernel == "faulty");
  if (kind == Fault::stack) CHECK(f && f->rule == "stack-overflow");
  if (kind == Fault::wild) CHECK(f && f->buffer == "memory that was never allocated of rank 0");
}

// ---- residency: two CTAs fit by registers; the third never gets a slot, so waiting for it cannot end
void meet(EmuThread* t, const char* p) {
  auto* count = reinterpret_cast<uint32_t*>(args<uint64_t>(p));
  if (t->linear == 0) {
    add(t, count, 1);
    wait_at_least(t, count, t->block->nctaid[0]);
  }
  sync(t);
}
template <uint32_t ctas>
void residency_test() {
  Settings s = settings_for(1);
  s.machine.sms = 1;
  const bool fits = run(s, module_with({kernel("meet", meet)}), [](int) {
    launch({.name = "meet", .grid = ctas, .block = 256, .registers = 128}, at(device<uint32_t>(1)));
    synchronize();
  });
  CHECK(fits == (ctas <= 2));
  if (ctas > 2) CHECK(only_finding() && only_finding()->kind == "co-residency");
  GridLaunch g;
  const EmuKernel k = kernel("meet", meet);
  g.kernel = &k;
  g.block[0] = 256;
  g.registers = 128;
  g.grid[0] = 3;
  g.cooperative = true;
  CHECK(ctas_per_sm(k, 256, 128, 0) == 2 && ctas_per_sm(k, 256, 32, 0) == 8 && ctas_per_sm(k, 32, 32, 100000) == 2);
  CHECK(launch_problem(g).find("only 2 fit") != std::string::npos);
}

// ---- mbarrier, cp.async, bulk copies: right with their waits, old data without
struct CopyParams { const uint32_t* from; uint32_t* out; uint32_t waits; };
void copying(EmuThread* t, const char* p) {
  const CopyParams& a = args<CopyParams>(p);
  auto* shared = reinterpret_cast<uint32_t*>(t->block->shared);
  const uint64_t bar = at(shared) + 4096;
  shared[t->linear] = shared[256 + t->linear] = 1;
  if (t->linear == 0) emu_mbar_init(t, bar, 1, 8);
  sync(t);
  emu_cp_async(t, at(shared + t->linear), at(a.from + t->linear), 4, 4, 9);
  emu_cp_async_commit(t, 9);
  if (t->linear == 0) {
    emu_mbar_arrive(t, bar, 1, 1024, 0, EMU_MODE(EMU_RELEASE, EMU_CTA, EMU_SHARED), 8);
    emu_cp_bulk(t, at(shared + 256), at(a.from), 1024, bar, 9);
  }
  if (a.waits) {
    emu_cp_async_wait(t, 0, 9);
    while (!emu_mbar_test(t, bar, 0, 1, 1, EMU_MODE(EMU_ACQUIRE, EMU_CTA, EMU_SHARED), 8)) spend(t, 0);
  }
  const uint32_t got = shared[t->linear] + shared[256 + t->linear];
  a.out[t->linear] = got;
}
void copies_test() {
  CHECK(run(settings_for(1), module_with({kernel("copying", copying, 8192)}), [](int) {
    const auto* from = device<uint32_t>(256, 50);
    auto* out = device<uint32_t>(256);
    for (uint32_t waits : {1u, 0u}) {
      launch({.name = "copying", .block = 256}, CopyParams{from, out, waits});
      synchronize();
      const uint32_t expected = waits ? 100 : 2;
      CHECK(std::count(out, out + 256, expected) == 256);
    }
  }));
}
// Stores by bulk copy: the source may be reused after .read, the data is there after the full wait.
void storing(EmuThread* t, const char* p) {
  const CopyParams& a = args<CopyParams>(p);
  auto* shared = reinterpret_cast<uint32_t*>(t->block->shared);
  if (t->linear) return;
  for (uint32_t i = 0; i < 64; i++) shared[i] = i + 1;
  emu_cp_bulk(t, at(a.out), at(shared), 256, 0, 9);
  emu_cp_bulk_commit(t, 9);
  if (a.waits) emu_cp_bulk_wait(t, 0, 1, 9);
  for (uint32_t i = 0; i < 64; i++) shared[i] = 0;
  emu_cp_bulk_wait(t, 0, 0, 9);
  if (a.out[5] != (a.waits ? 6u : 0u)) emu_trap(t, 9, "wrong");
}
void stores_test() {
  CHECK(run(settings_for(1), module_with({kernel("storing", storing, 1024)}), [](int) {
    for (uint32_t waits : {1u, 0u}) {
      launch({.name = "storing"}, CopyParams{nullptr, device<uint32_t>(64), waits});
      synchronize();
    }
  }));
}

// ---- printf
void printing(EmuThread* t, const char*) {
  struct alignas(8) { int32_t a; uint32_t pad; double b; const char* s; long long l; int c; } v{-5, 0, 2.5, "x",
      1ll << 40, 'z'};
  char text[8] = "local";
  v.s = text;
  if (t->linear == 0) {
    const int n = emu_vprintf(t, "%03d|%6.2f|%s|%lld|%c|100%%\n", reinterpret_cast<const char*>(&v), 1);
    if (n != 5) emu_trap(t, 1, "count");
  }
}
void printf_test() {
  CHECK(run(settings_for(1), module_with({kernel("printing", printing)}), [](int) {
    launch({.name = "printing"}, 0);
    synchronize();
  }));
}

Register r1("memory", memory_test), r2("fault-null", fault_test<Fault::null>), r3("fault-wild", fault_test<Fault::wild>),
    r4("fault-divide", fault_test<Fault::divide>), r5("fault-stack", fault_test<Fault::stack>),
    r6("fault-host", fault_test<Fault::host>), r7("fault-shared", fault_test<Fault::shared>),
    r8("fault-strong", fault_test<Fault::strong>), r9("fits", residency_test<2>), r10("does-not-fit", residency_test<3>),
    r11("copies", copies_test), r12("bulk-stores", stores_test), r13("printf", printf_test);

}  // namespace

// Sync words: histories, spins, ordering, trace.
#include "kit.h"

using namespace kit;

namespace {

constexpr int kRanks = 4;
constexpr uint32_t kSteps = 6;

// What the ranks share: each rank's inbox words and data, addressed by rank.
struct World { uint32_t* inbox[kRanks]; uint32_t* count[kRanks]; uint32_t* data[kRanks]; };
World world;
struct Params { World w; uint32_t rank, first; };

// A ring with a flat barrier: every step, each CTA works, tells all peers, and waits for all of them.
void ring(EmuThread* t, const char* p) {
  const Params& a = args<Params>(p);
  const uint32_t cta = t->block->ctaid[0];
  for (uint32_t step = a.first; step < a.first + kSteps; step++) {
    spend(t, 2, 1 + t->linear % 3 + a.rank + step % 2);
    const uint32_t next = (a.rank + 1) % kRanks;
    uint32_t* slot = a.w.data[next] + (step % 2) * 1024 + cta * t->block->ntid[0] + t->linear;
    emu_remote(t, reinterpret_cast<uint64_t>(slot), 4, EMU_WRITE, 6);
    *slot = step * 1000 + a.rank;
    sync(t);
    if (t->linear < kRanks)
      st(t, a.w.inbox[t->linear] + cta * 16 + a.rank, step + 1);
    if (t->linear < kRanks) wait_at_least(t, a.w.inbox[a.rank] + cta * 16 + t->linear, step + 1);
    sync(t);
    const uint32_t from = (a.rank + kRanks - 1) % kRanks;
    const uint32_t got = a.w.data[a.rank][(step % 2) * 1024 + cta * t->block->ntid[0] + t->linear];
    if (got != step * 1000 + from) emu_trap(t, 6, "stale data");
    // One counter per rank collects the CTAs of all ranks.
    if (t->linear == 0) {
      for (int r = 0; r < kRanks; r++) add(t, a.w.count[r], 1);
      wait_at_least(t, a.w.count[a.rank], (step + 1) * kRanks * t->block->nctaid[0], 6);
    }
    sync(t);
  }
}

void ring_host(int rank) {
  world.inbox[rank] = device<uint32_t>(1024, 0, "inbox");
  world.count[rank] = device<uint32_t>(1, 0, "count");
  world.data[rank] = device<uint32_t>(4096, 0, "data");
  static int ready = 0;
  ready++;
  scheduler().made_progress();
  scheduler().wait_until([] { return ready == kRanks; }, [] { return std::string("the others"); });
  for (uint32_t first = 0; first < 2 * kSteps; first += kSteps)
    launch({.name = "ring", .grid = 8, .block = 64}, Params{world, static_cast<uint32_t>(rank), first});
  synchronize();
}
void ring_test() { CHECK(run(settings_for(kRanks), module_with({kernel("ring", ring)}), ring_host)); }

// ---- what a thread that polls one word sees: with one_at_a_time every value, otherwise fewer
struct Two { uint32_t* flag; uint32_t* log; uint32_t* data; };
void counting(EmuThread* t, const char* p) {
  const Two& a = args<Two>(p);
  if (t->block->ctaid[0] == 0) {
    if (t->linear == 0)
      for (uint32_t i = 1; i <= 20; i++) st(t, a.flag, i);
  } else if (t->linear == 0) {
    uint32_t last = 0;
    while (last < 20) {
      const uint32_t value = ld(t, a.flag);
      spend(t, 0);
      if (value < last) emu_trap(t, 6, "went back");
      if (value != last) a.log[value] = 1;
      last = value;
    }
  }
}
void counting_host(int) {
  const Two a{device<uint32_t>(1), device<uint32_t>(32), nullptr};
  launch({.name = "counting", .grid = 2}, a);
  synchronize();
  uint32_t seen = 0;
  for (uint32_t i = 1; i <= 20; i++) seen += a.log[i];
  std::printf("seen %u\n", seen);
  CHECK(a.log[20] == 1);
  if (options.reads == ReadPolicy::one_at_a_time) CHECK(seen == 20);
  if (options.reads == ReadPolicy::oldest) CHECK(seen == 1);
}
void counting_test() { CHECK(run(settings_for(1), module_with({kernel("counting", counting)}), counting_host)); }

// ---- a wait that is satisfied already, in a loop of constant cost, is no deadlock
void idle_waits(EmuThread* t, const char* p) {
  const Two& a = args<Two>(p);
  if (t->linear) return;
  st(t, a.flag, 1u);
  for (uint32_t i = 0; i < 300; i++) {
    wait_at_least(t, a.flag, 1);
    a.log[0]++;
  }
}
void idle_test() {
  CHECK(run(settings_for(1), module_with({kernel("idle", idle_waits)}), [](int) {
    const Two a{device<uint32_t>(1), device<uint32_t>(32), nullptr};
    launch({.name = "idle"}, a);
    synchronize();
    CHECK(a.log[0] == 300);
  }));
}

// ---- locks by compare-and-swap, among CTAs and their warps
void locked(EmuThread* t, const char* p) {
  const Two& a = args<Two>(p);
  if (t->lane) return;
  while (cas(t, a.flag, 0, 1) != 0) spend(t, 1);
  const uint32_t old = *a.data;
  emu_nanosleep(t, 100, 6);
  *a.data = old + 1;
  st(t, a.flag, 0u);
}
void lock_test() {
  CHECK(run(settings_for(1), module_with({kernel("locked", locked)}), [](int) {
    const Two a{device<uint32_t>(1), nullptr, device<uint32_t>(1)};
    launch({.name = "locked", .grid = 20, .block = 96}, a);
    synchronize();
    CHECK(*a.data == 60);
  }));
}

// ---- a flag written by a plain store, two words polled in turn, a wait with a timeout
void odd_waits(EmuThread* t, const char* p) {
  const Two& a = args<Two>(p);
  if (t->linear) return;
  if (t->block->ctaid[0] == 0) {
    a.flag[0] = 1;                                     // weak
    while (ld(t, a.flag + 1) == 0 || ld(t, a.flag + 2, EMU_ACQUIRE, 6) == 0) spend(t, 0);
    const uint64_t begin = emu_clock(t, 6);
    while (ld(t, a.flag + 3) == 0 && emu_clock(t, 6) - begin < 1000000000) spend(t, 0);
    a.log[0] = 1;
  } else {
    wait_at_least(t, a.flag, 1);
    st(t, a.flag + 2, 1u);
    emu_nanosleep(t, 1000, 6);
    st(t, a.flag + 1, 1u);
  }
}
void odd_test() {
  CHECK(run(settings_for(1), module_with({kernel("odd", odd_waits)}), [](int) {
    const Two a{device<uint32_t>(4), device<uint32_t>(1), nullptr};
    launch({.name = "odd", .grid = 2}, a);
    synchronize();
    CHECK(a.log[0] == 1);
  }));
}

// ---- deadlocks are explained
void stuck(EmuThread* t, const char* p) {
  const Two& a = args<Two>(p);
  if (t->linear == 0) wait_at_least(t, a.flag, 2);
  sync(t);
}
void stuck_test() {
  CHECK(!run(settings_for(2), module_with({kernel("stuck", stuck)}), [](int rank) {
    const Two a{device<uint32_t>(1, 1, "flags"), nullptr, nullptr};
    name_words(reinterpret_cast<uint64_t>(a.flag), 4, "signal 3 of context 0");
    if (rank == 1) launch({.name = "stuck", .grid = 3, .block = 256}, a);
    synchronize();
  }));
  const Finding* f = only_finding();
  CHECK(f && f->kind == "deadlock" && f->rank == 1 && f->thread == 0 && f->line == 17 && f->file == "/x/program.cu");
  CHECK(f && f->buffer == "signal 3 of context 0 of rank 1");
  CHECK(f && f->message.find("waitSignal called at program.cu:17") != std::string::npos);
  CHECK(f && f->message.find("has the value 1") != std::string::npos);
  CHECK(f && f->details.size() == 2 && f->details[0].find("255 threads") != std::string::npos &&
        f->details[0].find("2 more blocks alike") != std::string::npos);
}

// ---- additions: all or nothing of what concurrent adders did before
void adders(EmuThread* t, const char* p) {
  const Two& a = args<Two>(p);
  const uint32_t cta = t->block->ctaid[0];
  if (t->linear) return;
  if (cta < 3) {
    a.data[cta] = 7;
    add(t, a.flag, 1, EMU_RELEASE);
    return;
  }
  const Event* writers = reinterpret_cast<const Event*>(a.log);
  const uint32_t want = cta == 3 ? 3 : 2;
  wait_at_least(t, a.flag, want);
  emu_nanosleep(t, 100000, 6);
  (void)writers;
}
void adders_test() {
  CHECK(run(settings_for(1), module_with({kernel("adders", adders)}), [](int) {
    const Two a{device<uint32_t>(1), device<uint32_t>(1), device<uint32_t>(4)};
    launch({.name = "adders", .grid = 5}, a);
    synchronize();
    CHECK(*a.flag == 3);
  }));
}

Register r1("ring", ring_test), r2("counting", counting_test), r3("idle-waits", idle_test), r4("lock", lock_test),
    r5("odd-waits", odd_test), r6("deadlock", stuck_test), r7("adders", adders_test);

}  // namespace

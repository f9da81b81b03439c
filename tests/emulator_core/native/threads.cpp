// Threads, barriers, warps.
#include "kit.h"

#include <numeric>

using namespace kit;

namespace {

struct Buffer { uint32_t* out; uint32_t n; };

// ---- block-wide barriers: neighbours exchange through shared memory, some threads leave early
void exchange(EmuThread* t, const char* p) {
  auto* shared = reinterpret_cast<uint32_t*>(t->block->shared);
  const uint32_t n = t->block->ntid[0];
  if (t->linear % 7 == 3) return;                       // exits before the first barrier
  shared[t->linear] = t->linear + 1;
  sync(t);
  uint32_t sum = 0;
  for (uint32_t i = 0; i < n; i++) sum += i % 7 == 3 ? 0 : shared[i];
  sync(t);
  if (t->linear % 5 == 0) return;
  shared[t->linear] = sum;
  sync(t);
  args<Buffer>(p).out[t->block->ctaid[0] * n + t->linear] = shared[t->linear];
}

void barriers_host(int) {
  auto* out = device<uint32_t>(4 * 250);
  launch({.name = "exchange", .grid = 4, .block = 250}, Buffer{out, 250});
  synchronize();
  uint32_t sum = 0;
  for (uint32_t i = 0; i < 250; i++) sum += i % 7 == 3 ? 0 : i + 1;
  for (uint32_t i = 0; i < 1000; i++) CHECK(out[i] == ((i % 250) % 7 == 3 || (i % 250) % 5 == 0 ? 0 : sum));
}
void barriers() { CHECK(run(settings_for(1), module_with({kernel("exchange", exchange, 1024)}), barriers_host)); }

// ---- reductions, named barriers with counts, arrive without waiting
void reduce(EmuThread* t, const char* p) {
  uint32_t* out = args<Buffer>(p).out;
  const uint32_t odd = emu_bar_red(t, 0, 0, EMU_RED_POPC, t->linear & 1, 5);
  const uint32_t all = emu_bar_red(t, 0, 0, EMU_RED_AND, t->linear < 96, 5);
  const uint32_t any = emu_bar_red(t, 0, 0, EMU_RED_OR, t->linear == 63, 5);
  if (t->linear == 0) out[0] = odd, out[1] = all, out[2] = any;
  auto* shared = reinterpret_cast<uint32_t*>(t->block->shared);
  for (uint32_t round = 0; round < 10; round++) {        // warps 0, 1 produce, warp 2 consumes
    if (t->warp < 2) {
      shared[t->linear] = round * 100 + t->linear;
      emu_bar_arrive(t, 1, 96, 5);
      emu_bar_sync(t, 2, 96, 5);
    } else {
      emu_bar_sync(t, 1, 96, 5);
      out[4 + t->lane] += shared[t->lane] + shared[32 + t->lane];
      emu_bar_arrive(t, 2, 96, 5);
    }
  }
}
void named_host(int) {
  auto* out = device<uint32_t>(64);
  launch({.name = "reduce", .block = 96}, Buffer{out, 0});
  synchronize();
  CHECK(out[0] == 48 && out[1] == 1 && out[2] == 1);
  for (uint32_t l = 0; l < 32; l++) CHECK(out[4 + l] == 45 * 200 + 10 * (2 * l + 32));
}
void named() { CHECK(run(settings_for(1), module_with({kernel("reduce", reduce, 512)}), named_host)); }

// ---- warp operations: full, divergent, with exited lanes; activemask
struct Shuffle { uint32_t value, from, result; };
void shuffle(void* const a[32], uint32_t lanes) {
  for (uint32_t l = 0; l < 32; l++)
    if (lanes >> l & 1) {
      auto* s = static_cast<Shuffle*>(a[l]);
      s->result = lanes >> s->from & 1 ? static_cast<Shuffle*>(a[s->from])->value : ~0u;
    }
}
uint32_t shfl(EmuThread* t, uint32_t value, uint32_t from, uint32_t mask) {
  Shuffle s{value, from, 0};
  emu_warp_call(t, shuffle, &s, mask, 5);
  return s.result;
}
void warps_kernel(EmuThread* t, const char* p) {
  uint32_t* out = args<Buffer>(p).out + t->linear * 4;
  out[0] = shfl(t, t->linear, (t->lane + 1) & 31, ~0u);
  if (t->lane < 8) {
    out[1] = shfl(t, t->linear * 10, t->lane ^ 1, 0xff);
    out[2] = emu_activemask(t);
  } else if (t->lane >= 30) {
    return;
  } else {
    out[1] = shfl(t, t->linear * 10, 9, 0x3fffff00);
  }
  emu_warp_call(t, nullptr, nullptr, ~0u, 5);            // the exited lanes are not waited for
  out[3] = emu_activemask(t);
}
void warps_host(int) {
  auto* out = device<uint32_t>(64 * 4);
  launch({.name = "warps", .block = 64}, Buffer{out, 0});
  synchronize();
  for (uint32_t i = 0; i < 64; i++) {
    const uint32_t lane = i & 31, base = i & ~31u;
    CHECK(out[i * 4] == base + ((lane + 1) & 31));
    if (lane < 8) CHECK(out[i * 4 + 1] == (i ^ 1) * 10 && out[i * 4 + 2] == 0xff);
    else if (lane < 30) CHECK(out[i * 4 + 1] == (base + 9) * 10);
    if (lane < 30) CHECK(out[i * 4 + 3] == 0x3fffffff);
  }
}
void warps() { CHECK(run(settings_for(1), module_with({kernel("warps", warps_kernel)}), warps_host)); }

// ---- misuse is named
void diverged(EmuThread* t, const char*) {
  if (t->lane) emu_warp_call(t, nullptr, nullptr, ~0u, 5);
  else shfl(t, 0, 0, ~0u);
}
void mixed_counts(EmuThread* t, const char*) { emu_bar_sync(t, 1, t->warp ? 64 : 96, 5); }
void leave(EmuThread* t, const char*) {
  if (t->linear) sync(t);
  emu_exit(t);
}
void diverged_warp() {
  CHECK(!run(settings_for(1), module_with({kernel("diverged", diverged)}), [](int) {
    launch({.name = "diverged"}, 0);
    synchronize();
  }));
  CHECK(only_finding() && only_finding()->rule == "warp-divergence" && only_finding()->line == 21);
}
void barrier_counts() {
  CHECK(!run(settings_for(1), module_with({kernel("mixed", mixed_counts)}), [](int) {
    launch({.name = "mixed", .block = 64}, 0);
    synchronize();
  }));
  CHECK(only_finding() && only_finding()->rule == "barrier-count");
}
void exits() {
  CHECK(run(settings_for(1), module_with({kernel("leave", leave)}), [](int) {
    launch({.name = "leave", .grid = 50, .block = 128}, 0);
    synchronize();
  }));
}

Register r1("barriers", barriers), r2("named-barriers", named), r3("warps", warps), r4("diverged-warp", diverged_warp),
    r5("barrier-counts", barrier_counts), r6("exits", exits);

}  // namespace

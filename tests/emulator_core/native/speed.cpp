// Figures, not verdicts: printed for people, asserted nowhere.
#include "kit.h"

#include <ctime>
#include <sys/resource.h>

using namespace kit;

namespace {

double seconds_of(const Launch& what, uint64_t param) {
  const std::clock_t begin = std::clock();   // processor time: the machine may be busy with other things
  launch(what, param);
  synchronize();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

void nothing(EmuThread* t, const char*) { spend(t, 0); }
void barriers(EmuThread* t, const char* p) {
  for (uint64_t i = args<uint64_t>(p); i-- > 0;) sync(t);
}
void take_lane_zero(void* const a[32], uint32_t lanes) {
  for (int l = 0; l < 32; l++)
    if (lanes >> l & 1) *static_cast<uint32_t*>(a[l]) = 1;
}
void shuffles(EmuThread* t, const char* p) {
  uint32_t v = 0;
  for (uint64_t i = args<uint64_t>(p); i-- > 0;) emu_warp_call(t, take_lane_zero, &v, ~0u, 5);
}

void speed() {
  CHECK(run(settings_for(1), module_with({kernel("nothing", nothing), kernel("barriers", barriers), kernel("shuffles",
      shuffles)}),
            [](int) {
              double s = seconds_of({.name = "nothing", .grid = 40000, .block = 256}, 0);
              std::printf("run to completion: %.1f M threads/s\n", 40000 * 256 / s / 1e6);
              for (uint32_t block : {256u, 1024u}) {
                s = seconds_of({.name = "barriers", .grid = 1, .block = block}, 20000);
                std::printf("barrier, %u threads: %.1f ns per thread\n", block, s * 1e9 / 20000 / block);
              }
              s = seconds_of({.name = "shuffles", .grid = 1, .block = 256}, 20000);
              std::printf("shuffle: %.1f ns per lane\n", s * 1e9 / 20000 / 256);
            }));
}

// 4 ranks of 132 SMs with 2,048 blocked threads each.
uint32_t* gates[4];
void hold_all(EmuThread* t, const char* p) {
  sync(t);
  if (t->linear == 0) wait_at_least(t, reinterpret_cast<uint32_t*>(args<uint64_t>(p)), 1);
  sync(t);
}
void crowd() {
  CHECK(run(settings_for(4), module_with({kernel("hold", hold_all)}), [](int rank) {
    gates[rank] = device<uint32_t>(1);
    launch({.name = "hold", .grid = 264, .block = 1024}, reinterpret_cast<uint64_t>(gates[rank]));
    scheduler().wait_until([rank] { return residency(rank).ctas == 264; }, [] { return std::string("residency"); });
    for (int i = 0; i < 4; i++) scheduler().yield();
    agent_store(reinterpret_cast<uint64_t>(gates[rank]), 1, 4, stamp_of(host_release(rank)));
    synchronize();
  }));
  rusage use;
  getrusage(RUSAGE_SELF, &use);
  std::printf("%ld MB\n", use.ru_maxrss / 1024);
  CHECK(use.ru_maxrss < 5l << 20);
}

Register r1("speed", speed), r2("crowd", crowd);

}  // namespace

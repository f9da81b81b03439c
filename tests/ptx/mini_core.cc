// A small, independent implementation of isa/abi.h for the translator's tests: one CTA after another on ucontext
// fibers, sequentially consistent memory, asynchronous copies done at once. The real core is tested elsewhere.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <ucontext.h>
#include <vector>

#include "abi.h"
#include "atomics.h"

namespace {

struct Fiber {
  EmuThread view{};
  ucontext_t context{};
  char* stack = nullptr;
  bool done = false, waiting = false;
};
struct Rendezvous {
  EmuWarpFn fn = nullptr;
  uint32_t mask = 0, arrived = 0;
  void* args[32] = {};
};
struct Bar {
  uint32_t arrived = 0, generation = 0, popc = 0, total = 0, result = 0, result_total = 0;
};
struct MBarrier {
  uint32_t expected = 0, pending = 0, phase = 0;
  int64_t transactions = 0;
};

ucontext_t main_context;
EmuBlock block;
std::vector<Fiber> fibers;
std::vector<char*> stacks;  // reused from CTA to CTA
constexpr size_t kStack = 1 << 16;
size_t current;
Bar bars[17];
std::vector<std::vector<Rendezvous>> warps;
std::string failure, printed, events;
const EmuModule* module_;
const EmuKernel* kernel_;
const char* params_;
uint64_t clock_;

[[noreturn]] void fail(const char* format, ...) {
  char text[512];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  failure = text;
  setcontext(&main_context);
  abort();
}

void yield() {
  size_t self = current, next = current;
  for (size_t n = 1; n <= fibers.size(); n++) {
    size_t k = (self + n) % fibers.size();
    if (!fibers[k].done && !fibers[k].waiting) {
      next = k;
      break;
    }
  }
  if (next == self) {
    if (fibers[self].waiting || fibers[self].done) {
      for (auto& f : fibers)
        if (!f.done) fail("deadlock");
      setcontext(&main_context);
    }
    return;
  }
  current = next;
  if (fibers[self].done) setcontext(&fibers[next].context);
  swapcontext(&fibers[self].context, &fibers[next].context);
}
void wait() {
  fibers[current].waiting = true;
  yield();
}
uint32_t live() {
  uint32_t n = 0;
  for (auto& f : fibers) n += !f.done;
  return n;
}
void release_if_full(uint32_t id, uint32_t need) {
  Bar& b = bars[id];
  if (b.arrived < need || !b.arrived) return;
  b.result = b.popc, b.result_total = b.total;
  b.arrived = b.popc = b.total = 0, b.generation++;
  for (auto& f : fibers) f.waiting = false;
}
uint32_t live_lanes(uint32_t warp) {
  uint32_t mask = 0;
  for (auto& f : fibers)
    if (f.view.warp == warp && !f.done) mask |= 1u << f.view.lane;
  return mask;
}
void finish() {
  fibers[current].done = true;
  release_if_full(0, live());
  for (auto& f : fibers) f.waiting = false;
  yield();
}
void run_fiber() {
  kernel_->entry(&fibers[current].view, params_);
  finish();
  abort();
}
std::string where(uint32_t site) {
  const EmuSite& s = module_->sites[site];
  return std::string(s.text) + " [ptx " + std::to_string(s.ptx_line) + ", " + s.file + ":" + std::to_string(s.line) + "]";
}

}  // namespace

extern "C" {
void emu_ld(EmuThread*, uint64_t a, void* out, uint32_t n, uint32_t mode, uint32_t) {
  memcpy(out, (void*)a, n);
  events += "ld" + std::to_string(n) + ":" + std::to_string(mode & 0xffff) + " ";
  yield();
}
void emu_st(EmuThread*, uint64_t a, const void* v, uint32_t n, uint32_t mode, uint32_t) {
  memcpy((void*)a, v, n);
  events += "st" + std::to_string(n) + ":" + std::to_string(mode & 0xffff) + " ";
}
void emu_atom(EmuThread*, uint64_t a, void* old, const void* v, const void* c, EmuAtomOp op, EmuType type, uint32_t mode, uint32_t) {
  emu_atomic_apply(op, type, (void*)a, v, c, old);
  events += "at" + std::to_string(mode & 0xffff) + " ";
}
void emu_fence(EmuThread*, EmuOrder o, EmuScope s, uint32_t) { events += "fence" + std::to_string(o) + "." + std::to_string(s) + " "; }
void emu_fence_proxy(EmuThread*, EmuProxy p, uint32_t) { events += "proxy" + std::to_string(p) + " "; }

void emu_bar_arrive(EmuThread*, uint32_t id, uint32_t count, uint32_t) {
  bars[id].arrived++;
  release_if_full(id, count);
}
uint32_t emu_bar_red(EmuThread*, uint32_t id, uint32_t count, EmuBarRed op, uint32_t p, uint32_t) {
  Bar& b = bars[id];
  b.arrived++, b.popc += p != 0, b.total++;
  uint32_t generation = b.generation;
  release_if_full(id, count ? count : live());
  while (b.generation == generation) wait();
  return op == EMU_RED_POPC ? b.result : op == EMU_RED_AND ? b.result == b.result_total : b.result != 0;
}
void emu_bar_sync(EmuThread* t, uint32_t id, uint32_t count, uint32_t site) { emu_bar_red(t, id, count, EMU_RED_POPC, 0, site); }

void emu_warp_call(EmuThread* t, EmuWarpFn fn, void* arg, uint32_t mask, uint32_t site) {
  if (!(mask >> t->lane & 1)) fail("lane %u outside its mask: %s", t->lane, where(site).c_str());
  auto& list = warps[t->warp];
  Rendezvous* r = nullptr;
  for (auto& x : list)
    if (x.arrived && x.mask == mask) r = &x;
  if (!r)
    for (auto& x : list)
      if (!x.arrived) r = &x;
  if (!r->arrived) r->mask = mask, r->fn = fn;
  if (r->fn != fn) fail("different warp operations meet at %s", where(site).c_str());
  r->args[t->lane] = arg;
  r->arrived |= 1u << t->lane;
  size_t self = current;
  for (;;) {
    uint32_t need = mask & live_lanes(t->warp);
    if (!(r->arrived >> t->lane & 1)) return;  // somebody completed it
    if ((r->arrived & need) == need) {
      uint32_t lanes = r->arrived;
      if (fn) fn(r->args, lanes);
      r->arrived = 0;
      for (auto& f : fibers) f.waiting = false;
      current = self;
      return;
    }
    wait();
  }
}
uint32_t emu_activemask(EmuThread* t) { return live_lanes(t->warp); }

static MBarrier* mbar(uint64_t a) {
  static std::vector<std::pair<uint64_t, MBarrier>> all;
  for (auto& x : all)
    if (x.first == a) return &x.second;
  all.reserve(64);
  all.push_back({a, {}});
  return &all.back().second;
}
static void settle(MBarrier* b) {
  if (b->pending == 0 && b->transactions == 0) {
    b->phase++, b->pending = b->expected;
    for (auto& f : fibers) f.waiting = false;
  }
}
void emu_mbar_init(EmuThread*, uint64_t a, uint32_t n, uint32_t) { *mbar(a) = {n, n, 0, 0}; }
void emu_mbar_inval(EmuThread*, uint64_t a, uint32_t) { *mbar(a) = {}; }
uint64_t emu_mbar_arrive(EmuThread*, uint64_t a, uint32_t n, uint32_t tx, uint32_t drop, uint32_t, uint32_t) {
  MBarrier* b = mbar(a);
  uint64_t token = uint64_t(b->phase) << 32 | b->pending;
  if (drop) b->expected -= n;
  b->transactions += tx, b->pending -= n;
  settle(b);
  return token;
}
void emu_mbar_tx(EmuThread*, uint64_t a, int64_t d, uint32_t, uint32_t) {
  MBarrier* b = mbar(a);
  b->transactions += d;
  settle(b);
}
uint32_t emu_mbar_test(EmuThread*, uint64_t a, uint64_t v, uint32_t parity, uint32_t block, uint32_t, uint32_t) {
  MBarrier* b = mbar(a);
  auto complete = [&] { return parity ? (b->phase & 1) != (v & 1) : b->phase != uint32_t(v >> 32); };
  while (block && !complete()) wait();
  return complete();
}

void emu_cp_async(EmuThread*, uint64_t d, uint64_t s, uint32_t n, uint32_t read, uint32_t) {
  memcpy((void*)d, (void*)s, read);
  memset((char*)d + read, 0, n - read);
}
void emu_cp_async_commit(EmuThread*, uint32_t) { events += "commit "; }
void emu_cp_async_wait(EmuThread*, uint32_t n, uint32_t) { events += "wait" + std::to_string(int(n)) + " "; }
void emu_cp_async_mbar(EmuThread* t, uint64_t a, uint32_t noinc, uint32_t site) {
  if (!noinc) mbar(a)->pending++;
  emu_mbar_arrive(t, a, 1, 0, 0, 0, site);
}
void emu_cp_bulk(EmuThread* t, uint64_t d, uint64_t s, uint32_t n, uint64_t m, uint32_t site) {
  memcpy((void*)d, (void*)s, n);
  if (m) emu_mbar_tx(t, m, -int64_t(n), 0, site);
}
void emu_cp_reduce_bulk(EmuThread*, uint64_t d, uint64_t s, uint32_t n, uint64_t, EmuAtomOp op, EmuType type, uint32_t) {
  for (uint32_t i = 0; i < n; i += isa::emu_type_bytes(type)) emu_atomic_apply(op, type, (char*)d + i, (char*)s + i, nullptr, nullptr);
}
void emu_cp_bulk_commit(EmuThread*, uint32_t) { events += "bulk_commit "; }
void emu_cp_bulk_wait(EmuThread*, uint32_t n, uint32_t r, uint32_t) { events += "bulk_wait" + std::to_string(n) + (r ? "r " : " "); }

uint32_t emu_isspace(EmuThread*, EmuSpace space, uint64_t a) {
  bool shared = a >= (uint64_t)block.shared && a < (uint64_t)block.shared + block.shared_bytes;
  bool local = false;
  for (auto& f : fibers) local |= a >= (uint64_t)f.stack && a < (uint64_t)f.stack + kStack;
  return space == EMU_SHARED ? shared : space == EMU_LOCAL ? local : space == EMU_GLOBAL ? !shared && !local : 0;
}
uint64_t emu_clock(EmuThread*, uint32_t) { return clock_ += 10; }
uint64_t emu_globaltimer(EmuThread*, uint32_t) { return clock_ += 10; }
void emu_nanosleep(EmuThread*, uint32_t ns, uint32_t) { events += "sleep" + std::to_string(ns) + " "; yield(); }
int32_t emu_vprintf(EmuThread*, const char* format, const char*, uint32_t) { printed += format; return 1; }
uint64_t emu_malloc(EmuThread*, uint64_t n, uint32_t) { return (uint64_t)malloc(n); }
void emu_free(EmuThread*, uint64_t a, uint32_t) { free((void*)a); }
void emu_assertfail(EmuThread*, const char* m, const char* file, uint32_t line, const char* fn, uint32_t) { fail("assert %s %s:%u %s", m, file, line, fn); }
void emu_trap(EmuThread*, uint32_t site, const char* why) { fail("trap %s: %s", why, where(site).c_str()); }
void emu_unsupported(EmuThread*, uint32_t site) { fail("unsupported: %s", where(site).c_str()); }
void emu_exit(EmuThread*) { finish(); abort(); }
void emu_out_of_fuel(EmuThread* t, uint32_t site) {
  if (t->progress > 100000000) fail("out of fuel at %s", where(site).c_str());
  t->fuel += 1000;
  yield();
}
void emu_remote(EmuThread*, uint64_t, uint32_t n, EmuAccess k, uint32_t) { events += "remote" + std::to_string(k) + ":" + std::to_string(n) + " "; }
void emu_dropped_store(EmuThread*, uint64_t, uint32_t n, uint32_t) { events += "dropped" + std::to_string(n) + " "; }
void emu_control_read(EmuThread*, uint64_t, uint32_t n, uint32_t, uint32_t) { events += "control" + std::to_string(n) + " "; }
void emu_hook_global(EmuThread*, uint64_t, uint32_t n, EmuAccess k, uint32_t) { events += "g" + std::to_string(k) + ":" + std::to_string(n) + " "; }
void emu_hook_shared(EmuThread*, uint64_t, uint32_t n, EmuAccess k, uint32_t) { events += "s" + std::to_string(k) + ":" + std::to_string(n) + " "; }

// ------------------------------------------------------------------------------------------------ driver
static std::vector<uint64_t> addresses;

uint64_t mini_global(const EmuModule* m, const char* name) {
  for (uint32_t i = 0; i < m->nglobals; i++)
    if (!strcmp(m->globals[i].name, name)) return addresses[i];
  return 0;
}
void mini_load(const EmuModule* m) {
  addresses.clear();
  for (uint32_t i = 0; i < m->nglobals; i++) {
    const EmuGlobal& g = m->globals[i];
    char* p = (char*)aligned_alloc(256, (g.size + 511) / 256 * 256);
    memset(p, 0, g.size);
    if (g.init_bytes) memcpy(p, g.init, g.init_bytes);
    addresses.push_back((uint64_t)p);
  }
  for (uint32_t i = 0; i < m->nglobals; i++)
    for (uint32_t k = 0; k < m->globals[i].nrelocs; k++) {
      const EmuReloc& r = m->globals[i].relocs[k];
      uint64_t v = r.kind == EMU_RELOC_GLOBAL ? addresses[r.global] + r.addend : (uint64_t)r.function;
      memcpy((char*)addresses[i] + r.offset, &v, 8);
    }
}
const char* mini_failure() { return failure.c_str(); }
const char* mini_printed() { return printed.c_str(); }
const char* mini_events() { return events.c_str(); }

// counters: [nblocks], summed over all CTAs. arena_lo/hi: what counts as local memory.
int mini_launch(const EmuModule* m, const char* name, const uint32_t* grid, const uint32_t* ntid, const char* params, uint32_t dynamic,
                uint64_t* counters, uint64_t* dynamic_classes, uint64_t arena_lo, uint64_t arena_hi, uint64_t* progress) {
  failure.clear(), printed.clear(), events.clear();
  module_ = m, kernel_ = nullptr, params_ = params, clock_ = 0;
  for (uint32_t i = 0; i < m->nkernels; i++)
    if (!strcmp(m->kernels[i].name, name)) kernel_ = &m->kernels[i];
  if (m->abi != EMU_ABI || !kernel_) return failure = "no such kernel", 1;
  const uint32_t threads = ntid[0] * ntid[1] * ntid[2];
  const uint32_t base = (kernel_->static_shared + kernel_->dynamic_align - 1) / kernel_->dynamic_align * kernel_->dynamic_align;
  char* shared = (char*)aligned_alloc(1024, (base + dynamic + 2047) / 1024 * 1024);
  for (uint32_t cta = 0; cta < grid[0] * grid[1] * grid[2] && failure.empty(); cta++) {
    block = {};
    for (int i = 0; i < 3; i++) block.ntid[i] = ntid[i], block.nctaid[i] = grid[i];
    block.ctaid[0] = cta % grid[0], block.ctaid[1] = cta / grid[0] % grid[1], block.ctaid[2] = cta / grid[0] / grid[1];
    block.shared = shared, block.shared_bytes = base + dynamic, block.dynamic_base = base, block.dynamic_bytes = dynamic;
    block.smid = cta % 7, block.nsmid = 7, block.nwarps = (threads + 31) / 32;
    block.gridid = 3, block.grid_workspace = 0x1122334455667788;
    block.arena_lo = arena_lo, block.arena_hi = arena_hi;
    block.globals = addresses.data(), block.counters = counters, block.dynamic_classes = dynamic_classes;
    memset(shared, 0xAB, base + dynamic);
    for (Bar& b : bars) b = {};
    fibers.clear();
    fibers.resize(threads);
    warps.assign(block.nwarps, std::vector<Rendezvous>(32));
    for (uint32_t t = 0; t < threads; t++) {
      Fiber& f = fibers[t];
      f.view = {{t % ntid[0], t / ntid[0] % ntid[1], t / ntid[0] / ntid[1]}, t, t & 31, t >> 5, &block, 0, 1000, nullptr};
      if (stacks.size() <= t) stacks.push_back((char*)aligned_alloc(64, kStack));
      f.stack = stacks[t];
      getcontext(&f.context);
      f.context.uc_stack.ss_sp = f.stack, f.context.uc_stack.ss_size = kStack;
      makecontext(&f.context, run_fiber, 0);
    }
    current = 0;
    volatile bool started = false;
    getcontext(&main_context);
    if (!started) {
      started = true;
      setcontext(&fibers[0].context);
    }
    if (progress)
      for (auto& f : fibers) *progress += f.view.progress;
  }
  free(shared);
  return failure.empty() ? 0 : 1;
}
}

// Happens-before: clocks by themselves, and what GPU threads learn from each other.
#include "kit.h"

using namespace kit;

namespace {

void clocks() {
  const AgentId a = new_agent({.kind = AgentInfo::Kind::cta, .rank = 0}), b = new_agent({.kind = AgentInfo::Kind::nic,
      .rank = 1});
  Clock c;
  c.add(Event{a, 3, 5});
  CHECK(c.contains(Event{a, 3, 5}) && c.contains(Event{a, 3, 1}) && !c.contains(Event{a, 3, 6}));
  CHECK(!c.contains(Event{a, 4, 1}) && !c.contains(Event{b, 0, 1}));
  c.add_all_before(a, 4);
  CHECK(c.contains(Event{a, 4, 3}) && !c.contains(Event{a, 4, 4}));
  c.add_warp_before(a, 1, 9);
  CHECK(c.contains(Event{a, 40, 8}) && !c.contains(Event{a, 40, 9}) && !c.contains(Event{a, 70, 8}));
  Clock d;
  d.add(Event{b, 0, 1});
  d.join(c);
  CHECK(d.contains(Event{b, 0, 1}) && d.contains(Event{a, 3, 5}) && d.contains(Event{a, 40, 8}));
  const StreamId s = new_stream(0);
  const AgentId k = new_agent({.kind = AgentInfo::Kind::cta, .rank = 0, .stream = s, .op = 7});
  d.add(Event{k, 1, 1});
  Clock done;
  done.add(s, 7);
  CHECK(!d.contains(Event{k, 2, 1}));
  d.join(done);
  CHECK(d.contains(Event{k, 2, 100}) && d.contains(s, 6) && !d.contains(s, 8));
}

// ---- who knows of whose writes
struct Knowledge { uint32_t* flag; uint32_t* relaxed; uint32_t* narrow; uint32_t* late; };
Event written[4];
bool known_before, known_after, by_fence, by_relaxed, by_narrow, by_barrier, in_warp, across_warps, from_later;
uint32_t stale;

void writer(EmuThread* t, const Knowledge& k) {
  if (t->linear == 0) {
    written[0] = event_of(t);
    st(t, k.flag, 1u);
    written[1] = event_of(t);
    st(t, k.relaxed, 1u, EMU_RELAXED);
    written[2] = event_of(t);
    emu_fence(t, EMU_ACQ_REL, EMU_SYS, 2);
    st(t, k.late, 1u, EMU_RELAXED);
    st(t, k.narrow, 1u, EMU_RELEASE, 2, EMU_CTA);
  }
}
void reader(EmuThread* t, const Knowledge& k) {
  if (t->linear == 33) {
    known_before = happens_before(written[0], t);
    wait_at_least(t, k.flag, 1);
    known_after = happens_before(written[0], t);
    from_later = happens_before(written[2], t);
    while (ld(t, k.relaxed, EMU_RELAXED, 6) == 0) spend(t, 0);
    by_relaxed = happens_before(written[2], t);
    while (ld(t, k.late, EMU_RELAXED, 7) == 0) spend(t, 0);
    by_fence = happens_before(written[2], t);
    emu_fence(t, EMU_ACQ_REL, EMU_SYS, 2);
    by_fence = !by_fence && happens_before(written[2], t);
    written[3] = event_of(t);
  }
  if (t->warp == 1) emu_warp_call(t, nullptr, nullptr, ~0u, 5);
  if (t->linear == 40) in_warp = happens_before(written[0], t) && happens_before(written[3], t);
  if (t->linear == 3) across_warps = happens_before(written[0], t);
  sync(t);
  if (t->linear == 3) by_barrier = happens_before(written[0], t) && happens_before(written[3], t);
}
void both(EmuThread* t, const char* p) {
  const Knowledge& k = args<Knowledge>(p);
  t->block->ctaid[0] ? reader(t, k) : writer(t, k);
}
void narrow(EmuThread* t, const char* p) {   // a second kernel on the stream knows everything of the first
  if (t->linear) return;
  by_narrow = happens_before(written[0], t) && happens_before(written[3], t);
  stale = ld(t, args<Knowledge>(p).flag);
}
void order_host(int) {
  auto* words = device<uint32_t>(64);
  const Knowledge k{words, words + 16, words + 32, words + 48};
  launch({.name = "both", .grid = 2, .block = 64}, k);
  launch({.name = "narrow"}, k);
  synchronize();
  CHECK(!known_before && known_after && !from_later && !by_relaxed && by_fence);
  CHECK(in_warp && !across_warps && by_barrier && by_narrow && stale == 1);
}
void order() {
  clocks();
  CHECK(run(settings_for(1), module_with({kernel("both", both), kernel("narrow", narrow)}), order_host));
}

// ---- a chain of agents: GPU thread, NIC operation, GPU thread of the peer; positions and words in the trace
uint32_t* mail[2];
struct ChainParams { uint32_t* out; uint32_t* in; uint32_t rounds, rank; };
class Wire : public Actor {
 public:
  explicit Wire(int rank) : Actor(rank) {}
  bool ready() override { return mail[0] && mail[1] && *mail[rank()] != taken_; }
  void step() override {
    const Stamp stamp = new_operation({.kind = AgentInfo::Kind::nic, .rank = rank(), .name = "NIC put"},
                                      released_into(at(mail[rank()]), 4));
    NicRecord record{.id = next_nic_id(), .src = rank(), .dst = 1 - rank(), .bytes = 64};
    trace_posted(record.id, at(mail[rank()]));
    record.signal = word_id(at(mail[1 - rank()] + 8));
    record.signal_delta = 1;
    trace_nic(record);
    taken_++;
    agent_add(at(mail[1 - rank()] + 8), 1, 4, stamp);
  }
  bool idle() override { return !ready(); }
  std::string describe() override { return ""; }

 private:
  static uint64_t at(const void* p) { return reinterpret_cast<uint64_t>(p); }
  uint32_t taken_ = 0;
};
void chain(EmuThread* t, const char* p) {
  const ChainParams& a = args<ChainParams>(p);
  for (uint32_t i = 1; i <= a.rounds; i++) {
    spend(t, 1, t->linear + i);
    sync(t);
    if (t->linear == 0) {
      if (a.rank == 0) st(t, a.out, i);
      wait_at_least(t, a.out + 8, i);
      if (a.rank == 1) st(t, a.out, i);
    }
    sync(t);
  }
}
void chain_test() {
  Settings s = settings_for(2);
  CHECK(run(s, module_with({kernel("chain", chain)}), [](int rank) {
    mail[rank] = device<uint32_t>(64, 0, "mail");
    new Wire(rank);   // for the rest of the run
    name_words(reinterpret_cast<uint64_t>(mail[rank] + 8), 4, "signal 0");
    launch({.name = "chain", .block = 64}, ChainParams{mail[rank], nullptr, 5, static_cast<uint32_t>(rank)});
    synchronize();
  }));
}

Register r1("order", order), r2("chain", chain_test);

}  // namespace

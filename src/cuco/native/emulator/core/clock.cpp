#include "clock.h"

#include "waits.h"

#include "block.h"
#include "runtime.h"

#include <algorithm>
#include <deque>

namespace cuco::emu {
namespace {

// Thread numbers from here on stand for whole warps (warp = number - kWarps).
constexpr uint32_t kWarps = 1u << 16;

uint64_t key_of(AgentId agent, uint32_t slot) { return static_cast<uint64_t>(agent) << 32 | slot; }

std::deque<AgentInfo>& agents() {
  static std::deque<AgentInfo> table(1);   // index 0: kNoAgent
  return table;
}

StreamId streams = kNoStream;

struct HostAgent {
  AgentId agent = kNoAgent;
  uint32_t tick = 1;
  Clock clock;
};

HostAgent& host(int rank) {
  static std::vector<HostAgent> hosts;
  if (hosts.size() <= static_cast<size_t>(rank)) hosts.resize(static_cast<size_t>(rank) + 1);
  HostAgent& h = hosts[static_cast<size_t>(rank)];
  if (!h.agent) h.agent = new_agent({AgentInfo::Kind::host, rank, kNoStream, 0, -1, "host", 0});
  return h;
}

}  // namespace

uint32_t Clock::tick_of(uint64_t key) const {
  auto it = std::lower_bound(entries_.begin(), entries_.end(), key,
                             [](const Entry& e, uint64_t k) { return e.key < k; });
  return it != entries_.end() && it->key == key ? it->tick : 0;
}

void Clock::raise(uint64_t key, uint32_t tick) {
  auto it = std::lower_bound(entries_.begin(), entries_.end(), key,
                             [](const Entry& e, uint64_t k) { return e.key < k; });
  if (it != entries_.end() && it->key == key) it->tick = std::max(it->tick, tick);
  else entries_.insert(it, {key, tick});
}

bool Clock::contains(StreamId stream, uint64_t op) const {
  if (stream == kNoStream) return false;
  auto it = std::lower_bound(streams_.begin(), streams_.end(), stream,
                             [](const Done& d, StreamId s) { return d.stream < s; });
  return it != streams_.end() && it->stream == stream && it->op >= op;
}

bool Clock::contains(const Event& event) const {
  if (!event || (entries_.empty() && streams_.empty())) return false;
  if (tick_of(key_of(event.agent, 0)) > event.tick) return true;
  if (tick_of(key_of(event.agent, event.thread + 1)) >= event.tick) return true;
  const AgentInfo& info = agent_info(event.agent);
  if (info.kind == AgentInfo::Kind::cta && tick_of(key_of(event.agent, kWarps + (event.thread >> 5))) > event.tick)
    return true;
  return contains(info.stream, info.op);
}

void Clock::add(const Event& event) { raise(key_of(event.agent, event.thread + 1), event.tick); }
void Clock::add_all_before(AgentId agent, uint32_t tick) {
  if (tick > 1) raise(key_of(agent, 0), tick);
}
void Clock::add_warp_before(AgentId agent, uint32_t warp, uint32_t tick) {
  if (tick > 1) raise(key_of(agent, kWarps + warp), tick);
}

void Clock::add(StreamId stream, uint64_t op) {
  if (stream == kNoStream) return;
  auto it = std::lower_bound(streams_.begin(), streams_.end(), stream,
                             [](const Done& d, StreamId s) { return d.stream < s; });
  if (it != streams_.end() && it->stream == stream) it->op = std::max(it->op, op);
  else streams_.insert(it, {stream, op});
}

// Merges sorted vectors; entries of launches that a stream component covers are dropped on the way. Most joins bring
// nothing new (many threads learn the same), which is found out without building anything.
void Clock::join(const Clock& other) {
  for (const Done& d : other.streams_) add(d.stream, d.op);
  AgentId last = kNoAgent;
  bool covered = false;   // entries of one agent are neighbours: one look-up for all of them
  auto is_covered = [&](const Entry& e) {
    const AgentId agent = static_cast<AgentId>(e.key >> 32);
    if (agent == last) return covered;
    const AgentInfo& info = agent_info(agent);
    last = agent;
    covered = contains(info.stream, info.op);
    return covered;
  };
  auto mine = entries_.begin();
  const bool news = std::any_of(other.entries_.begin(), other.entries_.end(), [&](const Entry& e) {
    while (mine != entries_.end() && mine->key < e.key) ++mine;
    if (mine != entries_.end() && mine->key == e.key && mine->tick >= e.tick) return false;
    return !is_covered(e);
  });
  if (!news) return;
  std::vector<Entry> merged;
  merged.reserve(entries_.size() + other.entries_.size());
  auto keep = [&](const Entry& e) {
    if (!is_covered(e)) merged.push_back(e);
  };
  auto a = entries_.begin();
  auto b = other.entries_.begin();
  while (a != entries_.end() || b != other.entries_.end()) {
    if (b == other.entries_.end() || (a != entries_.end() && a->key < b->key)) keep(*a++);
    else if (a == entries_.end() || b->key < a->key) keep(*b++);
    else {
      keep({a->key, std::max(a->tick, b->tick)});
      ++a;
      ++b;
    }
  }
  entries_ = std::move(merged);
}

bool Stamp::contains(const Event& other) const {
  if (!other) return false;
  if (other.agent == event.agent) {
    if (other.thread == event.thread && other.tick <= event.tick) return true;
    if (other.tick < all_before) return true;
    if (other.thread >> 5 == event.thread >> 5 && other.tick < warp_before) return true;
  }
  return (base && base->contains(other)) || (pending && pending->contains(other));
}

void Stamp::join_into(Clock& clock) const {
  if (base) clock.join(*base);
  if (pending) clock.join(*pending);
  if (!event) return;
  clock.add(event);
  clock.add_all_before(event.agent, all_before);
  clock.add_warp_before(event.agent, event.thread >> 5, warp_before);
}

Stamp stamp_of(Clock clock) {
  Stamp stamp;
  stamp.base = std::make_shared<const Clock>(std::move(clock));
  return stamp;
}

AgentId new_agent(const AgentInfo& info) {
  agents().push_back(info);
  if (info.rank >= 0) agents().back().step = step_of(info.rank);
  return static_cast<AgentId>(agents().size() - 1);
}

const AgentInfo& agent_info(AgentId agent) { return agents()[agent]; }

StreamId new_stream(int) { return ++streams; }

Stamp new_operation(const AgentInfo& info, const Clock& after) {
  Stamp stamp = stamp_of(after);
  stamp.event = {new_agent(info), 0, 1};
  return stamp;
}

Clock host_release(int rank) {
  HostAgent& h = host(rank);
  Clock clock = h.clock;
  clock.add(Event{h.agent, 0, h.tick++});
  return clock;
}

void host_acquire(int rank, const Clock& clock) { host(rank).clock.join(clock); }

// ---- GPU threads

Stamp release_stamp(Thread* t) {
  Block& block = t->cta();
  Stamp stamp;
  stamp.base = block.base;
  if (t->extra) stamp.pending = t->extra->pending;
  stamp.event = {block.agent, t->linear, block.tick++};
  stamp.all_before = block.all_before;
  stamp.warp_before = block.warps[t->warp].synced;
  return stamp;
}

namespace {

void set_pending(Thread* t, ClockRef clock) {
  Extra& extra = t->more();
  if (!extra.pending) t->cta().pending_threads++;
  extra.pending = std::move(clock);
}

Clock pending_of(Thread* t) { return t->extra && t->extra->pending ? *t->extra->pending : Clock(); }

}  // namespace

void learn(Thread* t, const Clock& clock) {
  if (clock.empty()) return;
  Clock joined = pending_of(t);
  joined.join(clock);
  set_pending(t, std::make_shared<const Clock>(std::move(joined)));
}

void learn(Thread* t, const Stamp& stamp) {
  if (!stamp) return;
  Clock joined = pending_of(t);
  stamp.join_into(joined);
  set_pending(t, std::make_shared<const Clock>(std::move(joined)));
}

void join_all(Block& block) {
  block.all_before = ++block.tick;
  if (!block.pending_threads && block.learnt.empty()) return;
  Clock joined = block.base ? *block.base : Clock();
  joined.join(block.learnt);
  block.learnt = Clock();
  const Clock* last = nullptr;   // neighbours often share what they learnt
  for (uint32_t i = 0; i < block.nthreads; i++) {
    Extra* extra = block.threads[i].extra;
    if (!extra || !extra->pending) continue;
    if (extra->pending.get() != last) joined.join(*extra->pending);
    block.kept.push_back(std::move(extra->pending));
    last = block.kept.back().get();
    extra->pending = nullptr;
  }
  block.kept.clear();
  block.pending_threads = 0;
  block.base = std::make_shared<const Clock>(std::move(joined));
}

void join_threads(Block& block, const std::vector<Thread*>& threads) {
  Clock joined;
  const Clock* last = nullptr;
  for (Thread* t : threads) {
    joined.add(Event{block.agent, t->linear, block.tick});
    if (!t->extra || !t->extra->pending || t->extra->pending.get() == last) continue;
    last = t->extra->pending.get();
    joined.join(*last);
  }
  block.tick++;
  auto shared = std::make_shared<const Clock>(std::move(joined));
  for (Thread* t : threads) set_pending(t, shared);
}

Event event_of(const EmuThread* self) {
  const auto* t = static_cast<const Thread*>(self);
  return {t->cta().agent, t->linear, t->cta().tick};
}

bool happens_before(const Event& event, const EmuThread* self) {
  const auto* t = static_cast<const Thread*>(self);
  const Block& block = t->cta();
  if (event.agent == block.agent) {
    if (event.thread == t->linear || event.tick < block.all_before) return true;
    if (event.thread >> 5 == t->warp && event.tick < block.warps[t->warp].synced) return true;
  }
  if (t->extra && t->extra->pending && t->extra->pending->contains(event)) return true;
  return block.base && block.base->contains(event);
}

}  // namespace cuco::emu

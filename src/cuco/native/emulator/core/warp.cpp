// Warp-wide operations: the lanes of a mask meet, the last one runs the operation for all.
#include "block.h"
#include "finding.h"
#include "runtime.h"

#include <algorithm>
#include <cstdio>

namespace cuco::emu {
namespace {

std::string hex(uint32_t mask) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", mask);
  return text;
}

void synchronise(Block& block, Warp& warp, uint32_t index, uint32_t lanes) {
  bool pending = false;
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    const Thread& t = block.threads[index * 32 + static_cast<uint32_t>(__builtin_ctz(rest))];
    pending |= t.extra && t.extra->pending;
  }
  if (!pending && lanes == warp.live) {
    warp.synced = ++block.tick;
    return;
  }
  std::vector<Thread*> members;
  for (uint32_t rest = lanes; rest; rest &= rest - 1)
    members.push_back(&block.threads[index * 32 + static_cast<uint32_t>(__builtin_ctz(rest))]);
  join_threads(block, members);
  if (lanes == warp.live) warp.synced = ++block.tick;
}

// Runs the operation and lets the lanes go, except `last`, which is running.
void complete(Block& block, uint32_t index, size_t which, Thread* last) {
  Warp& warp = block.warps[index];
  const Meeting meeting = warp.meetings[which];
  warp.meetings[which] = warp.meetings.back();
  warp.meetings.pop_back();
  if (meeting.fn) meeting.fn(meeting.args, meeting.arrived);
  else synchronise(block, warp, index, meeting.arrived);
  for (uint32_t rest = meeting.arrived; rest; rest &= rest - 1) {
    Thread* t = &block.threads[index * 32 + static_cast<uint32_t>(__builtin_ctz(rest))];
    if (t != last) make_ready(t);
  }
}

Meeting& meeting_for(Warp& warp, uint32_t mask, size_t& which) {
  for (which = 0; which < warp.meetings.size(); which++)
    if (warp.meetings[which].mask == mask) return warp.meetings[which];
  warp.meetings.emplace_back();
  warp.meetings.back().mask = mask;
  return warp.meetings.back();
}

void check_lane(Thread* t, const Meeting& meeting, EmuWarpFn fn, uint32_t mask, uint32_t site) {
  if (!(mask >> t->lane & 1))
    fail_at(t, site, "crash", "warp-mask",
            "lane " + std::to_string(t->lane) + " calls a warp operation with mask " + hex(mask) +
                ", which does not contain it");
  if (meeting.arrived && meeting.fn != fn)
    fail_at(t, site, "crash", "warp-divergence",
            "the lanes of mask " + hex(mask) + " call different warp operations: one here, one at " +
                describe_site(module_of(t), meeting.site));
}

}  // namespace

void meetings_after_exit(Block& block, Thread* t) {
  Warp& warp = block.warps[t->warp];
  for (size_t i = 0; i < warp.meetings.size();) {
    const Meeting& m = warp.meetings[i];
    if (m.arrived && (m.arrived & warp.live) == (m.mask & warp.live)) complete(block, t->warp, i, nullptr);
    else i++;
  }
}

bool release_active_masks(Block& block) {
  bool any = false;
  block.active_meetings = 0;
  for (Warp& warp : block.warps) {
    for (const Meeting& m : warp.active)
      for (uint32_t rest = m.arrived; rest; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        *static_cast<uint32_t*>(m.args[lane]) = m.arrived;
        make_ready(&block.threads[static_cast<uint32_t>(&warp - block.warps.data()) * 32 + static_cast<uint32_t>(lane)]);
        any = true;
      }
    warp.active.clear();
  }
  return any;
}

}  // namespace cuco::emu

using namespace cuco::emu;

extern "C" void emu_warp_call(EmuThread* self, EmuWarpFn fn, void* arg, uint32_t mask, uint32_t site) {
  Thread* t = thread_of(self);
  Block& block = t->cta();
  Warp& warp = block.warps[t->warp];
  size_t which;
  Meeting& meeting = meeting_for(warp, mask, which);
  if (meeting.fn != fn || !(mask >> t->lane & 1)) check_lane(t, meeting, fn, mask, site);
  meeting.fn = fn;
  meeting.site = site;
  meeting.args[t->lane] = arg;
  meeting.arrived |= 1u << t->lane;
  if ((meeting.arrived & warp.live) == (mask & warp.live)) {
    complete(block, t->warp, which, t);
    return;
  }
  suspend(t, Wait::warp, site);
}

// The lanes that can run: those that call from the same place meet as soon as nothing else in the CTA can run.
extern "C" uint32_t emu_activemask(EmuThread* self) {
  Thread* t = thread_of(self);
  Block& block = t->cta();
  Warp& warp = block.warps[t->warp];
  const auto site = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
  auto it = std::find_if(warp.active.begin(), warp.active.end(), [&](const Meeting& m) { return m.site == site; });
  if (it == warp.active.end()) it = warp.active.emplace(it);
  uint32_t mask = 0;
  it->site = site;
  it->args[t->lane] = &mask;
  it->arrived |= 1u << t->lane;
  block.active_meetings++;
  suspend(t, Wait::active_mask, 0);
  return mask;
}

#include "bridge.h"

#include "../core/finding.h"
#include "../core/memory.h"
#include "../core/trace.h"
#include "../cuda/device.h"
#include "../cuda/host.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace cuco::nccl {
namespace {

AgentObserver* observer = nullptr;

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

ncclGinConnectionType_t offered_gin() {
  const char* name = std::getenv("CUCO_EMULATED_GIN");
  if (name && !std::strcmp(name, "none")) return NCCL_GIN_CONNECTION_NONE;
  if (name && !std::strcmp(name, "rail")) return NCCL_GIN_CONNECTION_RAIL;
  return NCCL_GIN_CONNECTION_FULL;
}

}  // namespace

const RunShape& run_shape() {
  static const RunShape shape{emu::settings().ranks, emu::settings().lsa_team, offered_gin()};
  return shape;
}

int host_rank() { return emu::scheduler().current_rank(); }

int current_device() {
  int device = 0;
  cudaGetDevice(&device);
  return device;
}

int device_count() {
  int count = 0;
  cudaGetDeviceCount(&count);
  return count;
}

int device_arena(int device) { return cuda::rank_of_device(device); }

uint64_t choose(uint64_t n) { return n > 1 ? emu::scheduler().random().below(n) : 0; }

Delivery delivery() { return emu::settings().delivery; }

void api_called(const char* name) { cuda::trace_call(name); }

void stop_run(const Problem& problem) {
  emu::Finding finding;
  finding.kind = problem.kind;
  finding.rule = problem.rule;
  finding.rank = problem.rank;
  finding.message = problem.message;
  emu::fail(finding);
}

void wait_until(std::function<bool()> ready, std::function<std::string()> waiting_for) {
  if (!ready()) emu::scheduler().wait_until(std::move(ready), std::move(waiting_for));
}

void made_progress() { emu::scheduler().made_progress(); }

Clock host_knows(int host) { return emu::host_release(host); }
void host_learns(int host, const Clock& clock) { emu::host_acquire(host, clock); }

MemoryInfo find_memory(const void* address) {
  const emu::Allocation* found = emu::memory().find(address_of(address));
  if (!found || found->freed || found->kind == emu::MemoryKind::pinned) return {};
  MemoryInfo info;
  info.base = reinterpret_cast<char*>(found->address);
  info.bytes = found->bytes;
  info.capacity = (std::max<uint64_t>(found->bytes, 1) + emu::kPage - 1) / emu::kPage * emu::kPage;
  info.arena = found->rank;
  info.shareable = found->kind == emu::MemoryKind::window;
  info.name = found->name;
  return info;
}

void* user_alloc(int arena, size_t bytes) {
  return reinterpret_cast<void*>(emu::memory().allocate(arena, bytes, emu::kPage, emu::MemoryKind::window));
}

bool user_free(void* address) { return emu::memory().release(address_of(address)); }

void* internal_alloc(int arena, size_t bytes, const char* what, size_t align) {
  const uint64_t address = emu::memory().allocate(arena, bytes, align, emu::MemoryKind::internal, what);
  if (!address)
    stop_run({"unsupported", "nccl-memory", arena, std::string("no device memory is left for NCCL's ") + what});
  return reinterpret_cast<void*>(address);
}

char* reserve_addresses(size_t bytes) { return reinterpret_cast<char*>(emu::memory().reserve_alias(bytes)); }

void map_alias(char* alias, char* memory, size_t bytes) {
  emu::memory().map_alias(address_of(alias), address_of(memory), bytes);
}

void unmap_alias(char* alias, size_t bytes) { emu::memory().unmap_alias(address_of(alias), bytes); }

char* canonical(const void* address) { return reinterpret_cast<char*>(emu::memory().canonical(address_of(address))); }

void name_words(const void* base, size_t count, size_t word_bytes, WordUse use,
                const std::function<std::string(size_t)>& name) {
  const uint64_t first = address_of(base);
  if (use == WordUse::protocol) emu::mark_internal(first, count * word_bytes);
  for (size_t i = 0; i < count; i++) emu::name_words(first + i * word_bytes, word_bytes, name(i));
}

void own_range(const void* base, size_t bytes) { emu::mark_internal(address_of(base), bytes); }

void word_add(void* word, size_t bytes, uint64_t delta, const Stamp& stamp) {
  emu::agent_add(address_of(word), delta, static_cast<uint32_t>(bytes), stamp);
}

Clock take_released(void* slot, size_t bytes) {
  Clock clock = emu::released_into(address_of(slot), bytes);
  emu::forget(address_of(slot), bytes);
  return clock;
}

void observe_agents(AgentObserver* wanted) { observer = wanted; }

void touch_memory(const Stamp& agent, const void* address, size_t bytes, bool write) {
  if (observer && bytes) observer->access(agent, address_of(canonical(address)), bytes, write);
}

Stamp new_agent(int rank, const char* name, uint64_t number, const Clock& after, emu::StreamId stream) {
  emu::AgentInfo info;
  info.kind = emu::AgentInfo::Kind::nic;
  info.rank = rank;
  info.stream = stream;
  info.op = number;
  info.index = static_cast<int64_t>(number);
  info.name = name;
  return emu::new_operation(info, after);
}

Clock clock_of(const Stamp& stamp) {
  Clock clock;
  stamp.join_into(clock);
  return clock;
}

Stamp publish(const Stamp& agent, Clock knows) {
  Stamp stamp = emu::stamp_of(std::move(knows));
  stamp.event = agent.event;
  return stamp;
}

// A few hundred rounds: enough for any thread that does not wait to have gone on.
uint64_t NetworkActor::later() {
  if (delivery() != Delivery::random) return 0;
  static constexpr uint64_t kSpans[] = {1, 8, 64, 512};
  return emu::scheduler().rounds() + choose(kSpans[choose(4)]);
}

void trace_nccl(const NcclRecord& record) {
  if (!emu::tracing()) return;
  const cuda::Stream* stream = cuda::find_stream(record.stream);
  emu::Record out;
  out.put("stream", stream ? stream->number : -1)
      .put("coll", record.collective)
      .put("bytes", record.bytes)
      .put("dtype", record.dtype)
      .put("comm", record.comm)
      .put("seq", record.ordinal)
      .put("group", record.group)
      .put("priority", stream ? stream->priority : 0)
      .put("ranks", std::vector<int64_t>(record.ranks->begin(), record.ranks->end()));
  if (record.root >= 0) out.put("root", record.root);
  if (record.peer >= 0) out.put("peer", record.peer);
  const emu::Allocation* sent = emu::memory().find(reinterpret_cast<uint64_t>(record.send));
  if (record.send && sent) {
    out.put("send", sent->name).put("offset", reinterpret_cast<uint64_t>(record.send) - sent->address);
  }
  emu::trace_host(record.host, "nccl", out);
}

}  // namespace cuco::nccl

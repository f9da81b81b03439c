#include "nic_intake.h"

#include "../core/trace.h"
#include "windows.h"

#include <algorithm>
#include <cstring>

namespace cuco::nccl {
namespace {

[[noreturn]] void refuse(const Operation& op, const char* kind, const char* rule, const std::string& what) {
  stop_run({kind, rule, op.queue->domain->clique->hosts[static_cast<size_t>(op.queue->rank)],
            describe_operation(op) + ": " + what});
}

// The address of [offset, offset + bytes) in rank's part of a window, or the end of the run.
char* resolve(const Operation& op, uint64_t handle, uint64_t offset, size_t bytes, int rank, const char* side) {
  Window* window = find_gin_window(handle);
  if (!window || window->clique != op.queue->domain->clique)
    refuse(op, "unregistered", "gin-window", std::string("its ") + side + " is no window of this communicator");
  const size_t r = static_cast<size_t>(rank);
  if (!window->live[r])
    refuse(op, "unregistered", "gin-window",
           std::string("its ") + side + " " + window->name + " was deregistered by rank " + std::to_string(rank));
  if (offset > window->sizes[r] || bytes > window->sizes[r] - offset)
    refuse(op, "out-of-bounds", "gin-window",
           std::string("its ") + side + " [" + std::to_string(offset) + ", " + std::to_string(offset + bytes) + ") of " +
               window->name + " is outside rank " + std::to_string(rank) + "'s " + std::to_string(window->sizes[r]) +
               " bytes");
  return window->bases[r] + offset;
}

// Splits a transfer into pieces that may move independently; cuts fall on 16 bytes, the largest single access.
std::vector<Piece> cut(size_t bytes) {
  std::vector<Piece> pieces;
  if (bytes == 0) return pieces;
  const size_t parts = delivery() == Delivery::random ? 1 + choose(4) : 1;
  const size_t unit = ((bytes + parts - 1) / parts + 15) / 16 * 16;
  for (size_t offset = 0; offset < bytes; offset += unit) pieces.push_back({offset, std::min(unit, bytes - offset)});
  return pieces;
}

void resolve_data(Operation& op) {
  const Request& request = op.request;
  const int self = op.queue->rank, peer = op.queue->peer;
  switch (request.kind) {
    case RequestKind::put:
      op.from = resolve(op, request.source_window, request.source_offset, request.bytes, self, "source");
      op.to = resolve(op, request.target_window, request.target_offset, request.bytes, peer, "destination");
      break;
    case RequestKind::put_value:
      op.to = resolve(op, request.target_window, request.target_offset, request.bytes, peer, "destination");
      break;
    case RequestKind::get:
      op.from = resolve(op, request.source_window, request.source_offset, request.bytes, peer, "source");
      op.to = resolve(op, request.target_window, request.target_offset, request.bytes, self, "destination");
      break;
    default: return;
  }
  op.staging.resize(request.bytes);
  if (request.kind == RequestKind::put_value) {
    if (request.bytes > sizeof request.inline_value) refuse(op, "out-of-bounds", "gin-inline", "an inline value above 8 bytes");
    std::memcpy(op.staging.data(), &request.inline_value, request.bytes);
    op.unwritten = cut(request.bytes);
  } else {
    op.unread = cut(request.bytes);
  }
}

void check_words(const Operation& op) {
  const GinDomain& domain = *op.queue->domain;
  const Request& request = op.request;
  if (request.has_signal && !request.signal_is_va && request.signal_id >= static_cast<uint32_t>(domain.signals))
    refuse(op, "out-of-bounds", "gin-signal",
           "signal " + std::to_string(request.signal_id) + " does not exist, the device communicator has " +
               std::to_string(domain.signals));
  if (request.has_counter && request.counter_id >= static_cast<uint32_t>(domain.counters))
    refuse(op, "out-of-bounds", "gin-counter",
           "counter " + std::to_string(request.counter_id) + " does not exist, the device communicator has " +
               std::to_string(domain.counters));
  if (request.has_signal && request.signal_is_va) {
    resolve(op, request.signal_window, request.signal_offset, sizeof(uint64_t), op.queue->peer, "signal word");
    if (request.signal_offset % sizeof(uint64_t) != 0)
      refuse(op, "out-of-bounds", "gin-signal", "its signal word is not aligned to 8 bytes");
  }
}

void check_connection(const Operation& op) {
  const GinDomain& domain = *op.queue->domain;
  const int distance = op.queue->peer - op.queue->rank;
  if (distance % domain.context_stride != 0 && op.request.kind != RequestKind::flush)
    refuse(op, "out-of-bounds", "gin-connection",
           "the device communicator connects ranks at distances of " + std::to_string(domain.context_stride) + " only");
  if (!domain.live) refuse(op, "unregistered", "gin-devcomm", "its device communicator was destroyed");
}

void make_agents(Operation& op, const Clock& posted) {
  const int arena = op.queue->domain->clique->arenas[static_cast<size_t>(op.queue->rank)];
  const GinQueue& queue = *op.queue;
  if (op.is_get()) {
    op.reading = op.writing = new_agent(arena, "GIN get", op.number(), posted, queue.reads);
    return;
  }
  op.reading = new_agent(arena, "GIN put source", op.number(), posted, queue.reads);
  op.writing = new_agent(arena, op.carries_put() ? "GIN put" : "GIN signal", op.number(), clock_of(op.reading),
                         queue.writes);
}

void trace_request(const Operation& op) {
  const GinQueue& queue = *op.queue;
  const Request& request = op.request;
  const ncclGinProxyGpuCtx_t& context = queue.domain->context(queue.rank, queue.context);
  emu::NicRecord record;
  record.id = op.id;
  record.src = queue.domain->clique->arenas[static_cast<size_t>(queue.rank)];
  record.dst = queue.domain->clique->arenas[static_cast<size_t>(queue.peer)];
  record.ctx = queue.context;
  record.kind = request.kind == RequestKind::put_value ? "put" : request_name(request.kind);
  record.bytes = op.carries_put() || op.is_get() ? request.bytes : 0;
  record.strong = request.strong;
  if (request.has_signal) {
    record.signal = emu::word_id(reinterpret_cast<uint64_t>(signal_target(op)));
    record.signal_delta = static_cast<int64_t>(request.signal_add);
  }
  if (request.has_counter) {
    record.counter = emu::word_id(reinterpret_cast<uint64_t>(context.counters + request.counter_id));
    record.counter_delta = 1;
  }
  record.done = emu::word_id(reinterpret_cast<uint64_t>(context.cis + queue.slot));
  record.done_delta = 1;
  emu::trace_nic(record);
}

}  // namespace

uint64_t* signal_target(const Operation& op) {
  const GinQueue& queue = *op.queue;
  if (!op.request.signal_is_va) return queue.domain->signal_word(queue.peer, queue.context, op.request.signal_id);
  const Window* window = find_gin_window(op.request.signal_window);
  return reinterpret_cast<uint64_t*>(window->bases[static_cast<size_t>(queue.peer)] + op.request.signal_offset);
}

std::string describe_operation(const Operation& op) {
  return std::string(request_name(op.request.kind)) + " of rank " + std::to_string(op.queue->rank) + " on context " +
         std::to_string(op.queue->context) + " to rank " + std::to_string(op.queue->peer);
}

std::unique_ptr<Operation> take_request(GinQueue& queue) {
  const GinDomain& domain = *queue.domain;
  ncclGinProxyGpuCtx_t& context = domain.context(queue.rank, queue.context);
  if (queue.taken == context.pis[queue.slot]) return nullptr;
  ncclGinProxyGfd_t& gfd = context.queues[static_cast<size_t>(queue.slot) * domain.queue_size +
                                          (queue.taken & (domain.queue_size - 1))];
  if (!gfd_complete(gfd)) return nullptr;
  auto op = std::make_unique<Operation>();
  op->queue = &queue;
  op->index = queue.taken++;
  op->id = emu::next_nic_id();
  emu::trace_posted(op->id, reinterpret_cast<uint64_t>(&gfd));
  const Clock posted = take_released(&gfd, sizeof gfd);
  std::string why;
  const std::optional<Request> request = decode_gfd(gfd, &why);
  if (!request) refuse(*op, "unsupported", "gin-descriptor", why);
  op->request = *request;
  std::memset(static_cast<void*>(&gfd), 0, sizeof gfd);
  check_connection(*op);
  check_words(*op);
  resolve_data(*op);
  make_agents(*op, posted);
  trace_request(*op);
  return op;
}

bool spare_slot_used(const GinDomain& domain, int rank) {
  for (int c = 0; c <= domain.contexts; c++)
    for (int slot = c == domain.contexts ? 0 : domain.slots(); slot < domain.slots() + GinDomain::kSpareSlots; slot++)
      if (domain.context(rank, c).pis[slot] != 0) return true;
  return false;
}

void check_spare_slots(const GinDomain& domain, int rank) {
  const int host = domain.clique->hosts[static_cast<size_t>(rank)];
  for (int c = 0; c <= domain.contexts; c++) {
    const ncclGinProxyGpuCtx_t& context = domain.context(rank, c);
    const bool spare = c == domain.contexts;
    for (int slot = spare ? 0 : domain.slots(); slot < domain.slots() + GinDomain::kSpareSlots; slot++) {
      if (context.pis[slot] == 0) continue;
      if (spare)
        stop_run({"out-of-bounds", "gin-context", host,
                  "rank " + std::to_string(rank) + " uses a GIN context beyond the " + std::to_string(domain.contexts) +
                      " of its device communicator (ginContextCount)"});
      stop_run({"out-of-bounds", "gin-peer", host,
                "rank " + std::to_string(rank) + " posts a GIN request to peer " + std::to_string(slot) + " of " +
                    std::to_string(domain.slots())});
    }
  }
}

}  // namespace cuco::nccl

#include "gin_domain.h"

#include "nic.h"

namespace cuco::nccl {
namespace {

// As many descriptors per peer as NCCL's proxy over InfiniBand has requests in flight.
constexpr uint32_t kQueueSize = 256;

std::string of_context(const std::string& what, int context) {
  return what + " of context " + std::to_string(context);
}

// Names the signals of a built-in barrier: one per barrier and team rank.
void name_barrier(std::vector<std::string>& names, const ncclGinBarrierHandle& handle, int count, int team,
                  const char* what) {
  for (int barrier = 0; barrier < count; barrier++)
    for (int from = 0; from < team; from++) {
      const size_t id = handle.signal0 + static_cast<size_t>(barrier * team + from);
      if (id < names.size())
        names[id] = std::string(what) + " " + std::to_string(barrier) + " signal from team rank " + std::to_string(from);
    }
}

void name_signals(GinDomain& domain, const ncclDevCommRequirements& reqs, const ncclDevComm& barriers) {
  domain.signal_names.resize(static_cast<size_t>(domain.signals));
  for (int id = 0; id < domain.signals; id++) domain.signal_names[static_cast<size_t>(id)] = "signal " + std::to_string(id);
  const int ranks = domain.clique->size(), rails = ranks / domain.clique->lsa_ranks;
  name_barrier(domain.signal_names, barriers.worldGinBarrier, reqs.worldGinBarrierCount, ranks, "world GIN barrier");
  name_barrier(domain.signal_names, barriers.railGinBarrier, reqs.railGinBarrierCount, rails, "rail GIN barrier");
  name_barrier(domain.signal_names, barriers.hybridRailGinBarrier, reqs.barrierCount, rails, "hybrid barrier");
  if (domain.context_stride != domain.clique->lsa_ranks)
    name_barrier(domain.signal_names, barriers.hybridDenseGinBarrier, reqs.barrierCount,
                 ranks / domain.context_stride, "hybrid barrier");
}

template <class T>
T* words(int arena, size_t count, const char* what) {
  return static_cast<T*>(internal_alloc(arena, count * sizeof(T), what));
}

void fill_context(GinDomain& domain, int rank, int index, ncclGinProxyGpuCtx_t& context) {
  const int arena = domain.clique->arenas[static_cast<size_t>(rank)];
  const size_t slots = static_cast<size_t>(domain.slots() + GinDomain::kSpareSlots);
  context.nranks = domain.slots();
  context.queueSize = domain.queue_size;
  context.queues = words<ncclGinProxyGfd_t>(arena, slots * domain.queue_size, "GIN queues");
  own_range(context.queues, slots * domain.queue_size * sizeof(ncclGinProxyGfd_t));
  context.pis = words<uint32_t>(arena, slots, "GIN producer indices");
  context.cis = words<uint32_t>(arena, slots, "GIN consumer indices");
  context.lastIssuedGet = words<uint32_t>(arena, slots, "GIN issued gets");
  context.lastVisibleGet = words<uint32_t>(arena, slots, "GIN visible gets");
  context.counters = words<uint64_t>(arena, static_cast<size_t>(domain.counters) + 1, "GIN counters");
  context.signals = words<uint64_t>(arena, static_cast<size_t>(domain.signals) + 1, "GIN signals");
  context.signalOffsets = words<uint64_t>(arena, static_cast<size_t>(domain.signals) + 1, "GIN signal offsets");

  auto peer_name = [&domain, rank, index](const char* what) {
    return [&domain, rank, index, what](size_t slot) {
      const int peer = static_cast<int>(slot) * domain.connection_stride + rank % domain.connection_stride;
      return of_context(std::string(what) + " rank " + std::to_string(peer), index);
    };
  };
  // Only completions and descriptors order memory. Posters that draw positions from one index learn nothing of each other.
  name_words(context.pis, slots, sizeof(uint32_t), WordUse::plain, peer_name("GIN requests posted to"));
  name_words(context.cis, slots, sizeof(uint32_t), WordUse::protocol, peer_name("GIN requests completed to"));
  name_words(context.lastIssuedGet, slots, sizeof(uint32_t), WordUse::plain, peer_name("GIN gets issued from"));
  name_words(context.lastVisibleGet, slots, sizeof(uint32_t), WordUse::plain, peer_name("GIN gets visible from"));
  name_words(context.counters, static_cast<size_t>(domain.counters), sizeof(uint64_t), WordUse::plain,
             [index](size_t id) { return of_context("counter " + std::to_string(id), index); });
  name_words(context.signals, static_cast<size_t>(domain.signals), sizeof(uint64_t), WordUse::plain,
             [&domain, index](size_t id) { return of_context(domain.signal_names[id], index); });
}

void add_queues(GinDomain& domain, int rank, int context) {
  for (int slot = 0; slot < domain.slots(); slot++) {
    auto queue = std::make_unique<GinQueue>();
    queue->domain = &domain;
    queue->rank = rank;
    queue->context = context;
    queue->peer = slot * domain.connection_stride + rank % domain.connection_stride;
    queue->slot = slot;
    queue->reads = emu::new_stream(domain.clique->arenas[static_cast<size_t>(rank)]);
    queue->writes = emu::new_stream(domain.clique->arenas[static_cast<size_t>(rank)]);
    domain.queues.push_back(std::move(queue));
  }
}

}  // namespace

GinDomain& make_gin_domain(Clique& clique, const ResourcePlan& plan, const ncclDevCommRequirements& reqs,
                           const ncclDevComm& barriers, int number) {
  auto* domain = new GinDomain;  // lives as long as the run: descriptors may arrive late
  domain->clique = &clique;
  domain->number = number;
  domain->contexts = plan.contexts;
  domain->signals = plan.signals;
  domain->counters = plan.counters;
  domain->user_signals = reqs.ginSignalCount;
  domain->context_stride = plan.context_stride;
  domain->connection_stride = plan.connection_stride;
  domain->queue_size = kQueueSize;
  name_signals(*domain, reqs, barriers);
  for (int rank = 0; rank < clique.size(); rank++) {
    // Contexts behind the last one work like the others, so that using them is found instead of corrupting memory.
    const int laid_out = plan.contexts + GinDomain::kSpareContexts;
    auto* contexts = words<ncclGinProxyGpuCtx_t>(clique.arenas[static_cast<size_t>(rank)],
                                                 static_cast<size_t>(laid_out), "GIN contexts");
    domain->gpu.push_back(contexts);
    for (int c = 0; c < plan.contexts; c++) {
      fill_context(*domain, rank, c, contexts[c]);
      add_queues(*domain, rank, c);
    }
    for (int c = plan.contexts; c < laid_out; c++) {
      if (c == plan.contexts) fill_context(*domain, rank, c, contexts[c]);
      else contexts[c] = contexts[plan.contexts];
    }
  }
  nic_attach(*domain);
  return *domain;
}

void close_gin_domain(GinDomain& domain) { domain.live = false; }

}  // namespace cuco::nccl

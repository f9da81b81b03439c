#include "nic.h"

#include "nic_intake.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace cuco::nccl {
namespace {

// Moves that an operation can make next.
enum class Move { read, complete, write, signal };

bool may_signal(const Operation& op) {
  if (!op.request.has_signal || op.signalled || !op.settled) return false;
  if (op.request.strong) return op.queue->unsettled.empty() || op.queue->unsettled.front()->index > op.index;
  return op.waits_for == nullptr;
}

std::vector<Move> moves(const Operation& op) {
  std::vector<Move> possible;
  if (!op.unread.empty()) possible.push_back(Move::read);
  const bool source_done = op.unread.empty() && (!op.is_get() || op.settled);
  if (source_done && !op.locally_complete) possible.push_back(Move::complete);
  if (!op.unwritten.empty()) possible.push_back(Move::write);
  if (may_signal(op)) possible.push_back(Move::signal);
  return possible;
}

bool finished(const Operation& op) {
  return op.locally_complete && op.settled && (op.signalled || !op.request.has_signal);
}

// One rank's card: sends what that rank's device code posts.
class Nic : public NetworkActor {
 public:
  using NetworkActor::NetworkActor;

  void attach(GinDomain& domain, int rank) {
    Attachment attachment{&domain, rank, {}};
    for (auto& queue : domain.queues)
      if (queue->rank == rank) attachment.queues.push_back(queue.get());
    attachments_.push_back(std::move(attachment));
  }

  void step() override;
  std::string describe() override;

 protected:
  bool has_work() override { return !open_.empty() || posted() || misused(); }
  bool due() override {
    return posted() || std::any_of(open_.begin(), open_.end(), [](const auto& op) {
             return reached(op->round) && !moves(*op).empty();
           });
  }

 private:
  struct Attachment {
    GinDomain* domain;
    int rank;
    std::vector<GinQueue*> queues;
  };

  bool posted() const;
  bool misused() const {
    return std::any_of(attachments_.begin(), attachments_.end(),
                       [](const Attachment& a) { return spare_slot_used(*a.domain, a.rank); });
  }
  void intake();
  void accept(std::unique_ptr<Operation> op);
  Operation* choose_operation(bool stuck, Move* move);
  void make(Operation& op, Move move);
  void read_piece(Operation& op);
  void write_piece(Operation& op);
  void complete_locally(Operation& op);
  void settle(Operation& op);
  void signal(Operation& op);

  std::vector<Attachment> attachments_;
  std::vector<std::unique_ptr<Operation>> open_;  // in order of arrival
};

bool Nic::posted() const {
  for (const Attachment& a : attachments_)
    for (const GinQueue* queue : a.queues)
      if (queue->taken != a.domain->context(queue->rank, queue->context).pis[queue->slot]) return true;
  return false;
}

void Nic::intake() {
  for (Attachment& a : attachments_) {
    check_spare_slots(*a.domain, a.rank);
    for (GinQueue* queue : a.queues)
      while (std::unique_ptr<Operation> op = take_request(*queue)) accept(std::move(op));
  }
}

void Nic::accept(std::unique_ptr<Operation> owned) {
  Operation& op = *owned;
  op.round = later();
  GinQueue& queue = *op.queue;
  // A VA signal is a descriptor of its own, right behind the put it is bundled with.
  if (op.request.signal_is_va && queue.last_put == op.index) {
    op.bundled = queue.last_put_agent;
    if (!queue.unsettled.empty() && queue.unsettled.back()->index + 1 == op.index) op.waits_for = queue.unsettled.back();
  }
  if (op.carries_put()) {
    queue.last_put = op.index + 1;
    queue.last_put_agent = op.writing;
  }
  queue.open.push_back(&op);
  if (op.carries_put()) queue.unsettled.push_back(&op);
  if (op.unread.empty() && op.unwritten.empty()) settle(op);
  open_.push_back(std::move(owned));
  made_progress();
}

void Nic::read_piece(Operation& op) {
  const size_t i = choose(op.unread.size());
  const Piece piece = op.unread[i];
  op.unread.erase(op.unread.begin() + static_cast<long>(i));
  touch_memory(op.reading, op.from + piece.offset, piece.bytes, false);
  std::memcpy(op.staging.data() + piece.offset, op.from + piece.offset, piece.bytes);
  op.unwritten.push_back(piece);
}

void Nic::write_piece(Operation& op) {
  const size_t i = choose(op.unwritten.size());
  const Piece piece = op.unwritten[i];
  op.unwritten.erase(op.unwritten.begin() + static_cast<long>(i));
  touch_memory(op.writing, op.to + piece.offset, piece.bytes, true);
  std::memcpy(op.to + piece.offset, op.staging.data() + piece.offset, piece.bytes);
  if (op.unread.empty() && op.unwritten.empty()) settle(op);
}

// All data has arrived.
void Nic::settle(Operation& op) {
  op.settled = true;
  op.staging = {};
  GinQueue& queue = *op.queue;
  if (!op.carries_put()) return;
  std::erase(queue.unsettled, &op);
  for (auto& other : open_)
    if (other->waits_for == &op) other->waits_for = nullptr;
}

// The source of a put may be reused, the data of a get is there: counters, and the consumer index in queue order.
void Nic::complete_locally(Operation& op) {
  op.locally_complete = true;
  GinQueue& queue = *op.queue;
  ncclGinProxyGpuCtx_t& context = queue.domain->context(queue.rank, queue.context);
  if (op.request.has_counter)
    word_add(context.counters + op.request.counter_id, sizeof(uint64_t), 1, publish(op.reading, {}));
  while (!queue.open.empty() && queue.open.front()->locally_complete) {
    const Operation& first = *queue.open.front();
    Clock all_until_here;
    all_until_here.add(queue.reads, first.number());
    word_add(context.cis + queue.slot, sizeof(uint32_t), 1, publish(first.reading, std::move(all_until_here)));
    queue.open.pop_front();
  }
}

// Publishes what the sender knew, and what the signal promises: its own put, or every put up to it if it is strong.
void Nic::signal(Operation& op) {
  op.signalled = true;
  Clock knows = clock_of(op.writing);
  if (op.request.strong) knows.add(op.queue->writes, op.number());
  else if (op.bundled) knows.add(op.bundled.event);
  word_add(signal_target(op), sizeof(uint64_t), op.request.signal_add, publish(op.writing, std::move(knows)));
}

void Nic::make(Operation& op, Move move) {
  switch (move) {
    case Move::read: read_piece(op); break;
    case Move::complete: complete_locally(op); break;
    case Move::write: write_piece(op); break;
    case Move::signal: signal(op); break;
  }
  made_progress();
}

// Lazy: local completion of anything before arrival of anything, then the newest operation first, data and signal, since
// the contract lets later puts overtake earlier ones. Eager: in order. Random: any operation that is due, or any at all
// when nothing else in the run can go on, and any of its moves.
Operation* Nic::choose_operation(bool stuck, Move* move) {
  const size_t n = open_.size();
  if (delivery() == Delivery::lazy) {
    for (bool local : {true, false})
      for (size_t k = n; k-- > 0;)
        for (Move possible : moves(*open_[k]))
          if ((possible == Move::read || possible == Move::complete) == local) return *move = possible, open_[k].get();
    return nullptr;
  }
  const size_t first = delivery() == Delivery::random ? choose(n) : 0;
  for (size_t k = 0; k < n; k++) {
    Operation& op = *open_[(first + k) % n];
    if (!stuck && !reached(op.round)) continue;
    const std::vector<Move> possible = moves(op);
    if (possible.empty()) continue;
    *move = delivery() == Delivery::random ? possible[choose(possible.size())] : possible.front();
    return &op;
  }
  return nullptr;
}

void Nic::step() {
  const bool stuck = !due();  // then only a run that cannot go on otherwise has called
  intake();
  size_t budget = delivery() == Delivery::eager ? SIZE_MAX : delivery() == Delivery::lazy ? 1 : 1 + choose(8);
  Move move;
  while (budget-- > 0) {
    Operation* op = choose_operation(stuck, &move);
    if (!op) break;
    make(*op, move);
  }
  std::erase_if(open_, [](const std::unique_ptr<Operation>& op) {
    return finished(*op) && std::find(op->queue->open.begin(), op->queue->open.end(), op.get()) == op->queue->open.end();
  });
}

std::string Nic::describe() {
  return open_.empty() ? "" : std::to_string(open_.size()) + " GIN requests under way, the first a " +
                                  describe_operation(*open_.front());
}

Nic& nic(int arena) {
  static std::map<int, Nic*> cards;
  Nic*& found = cards[arena];
  if (!found) found = new Nic(arena);  // lives as long as the run
  return *found;
}

}  // namespace

void nic_attach(GinDomain& domain) {
  for (int rank = 0; rank < domain.clique->size(); rank++)
    nic(domain.clique->arenas[static_cast<size_t>(rank)]).attach(domain, rank);
}

}  // namespace cuco::nccl

// Taking requests off the queues: descriptor to operation, with every check that needs no delivery.
#pragma once

#include "nic.h"

namespace cuco::nccl {

// The next complete descriptor of a queue as an operation, null when there is none. Clears the slot.
std::unique_ptr<Operation> take_request(GinQueue& queue);

// Whether a slot or context that does not exist was used; the other one stops the run then.
bool spare_slot_used(const GinDomain& domain, int rank);
void check_spare_slots(const GinDomain& domain, int rank);

// The word that the operation's signal adds to.
uint64_t* signal_target(const Operation& op);

// "put of rank 1 on context 0 to rank 2"
std::string describe_operation(const Operation& op);

}  // namespace cuco::nccl

// Warp-wide operations: each is a callback that the last arriving lane runs over all lanes' arguments (EmuWarpFn).
#pragma once
#include "abi.h"
#include "bits.h"

namespace isa {

// ------------------------------------------------------------------------------------------------ shfl
struct Shuffle {
  uint32_t value, b, c, result, in_range;
};
enum ShuffleMode { UP, DOWN, BUTTERFLY, INDEX };

template <ShuffleMode M> void shuffle(void* const args[32], uint32_t lanes) {
  for (int lane = 0; lane < 32; lane++) {
    if (!(lanes >> lane & 1)) continue;
    auto* own = static_cast<Shuffle*>(args[lane]);
    int b = own->b & 31, clamp = own->c & 31, segment = own->c >> 8 & 31;
    int most = (lane & segment) | (clamp & ~segment), least = lane & segment, source = lane;
    bool ok = false;
    if (M == UP) source = lane - b, ok = source >= most;
    if (M == DOWN) source = lane + b, ok = source <= most;
    if (M == BUTTERFLY) source = lane ^ b, ok = source <= most;
    if (M == INDEX) source = least | (b & ~segment), ok = source <= most;
    if (!ok) source = lane;
    // A source lane that does not take part leaves the result undefined: the own value, so that runs replay.
    if (!(lanes >> source & 1)) source = lane;
    own->result = static_cast<Shuffle*>(args[source])->value;
    own->in_range = ok;
  }
}

// ------------------------------------------------------------------------------------------------ vote, match
struct Ballot {
  uint32_t predicate, result, lanes;  // result: those of the lanes whose predicate holds
};
inline void ballot(void* const args[32], uint32_t lanes) {
  uint32_t set = 0;
  for (int l = 0; l < 32; l++)
    if ((lanes >> l & 1) && static_cast<Ballot*>(args[l])->predicate) set |= 1u << l;
  for (int l = 0; l < 32; l++)
    if (lanes >> l & 1) static_cast<Ballot*>(args[l])->result = set, static_cast<Ballot*>(args[l])->lanes = lanes;
}

struct Match {
  uint64_t value;
  uint32_t same, all;  // lanes with the own value; all lanes if every value is equal, else 0
};
inline void match(void* const args[32], uint32_t lanes) {
  for (int l = 0; l < 32; l++) {
    if (!(lanes >> l & 1)) continue;
    auto* own = static_cast<Match*>(args[l]);
    own->same = 0;
    for (int k = 0; k < 32; k++)
      if ((lanes >> k & 1) && static_cast<Match*>(args[k])->value == own->value) own->same |= 1u << k;
    own->all = own->same == lanes ? lanes : 0;
  }
}

// ------------------------------------------------------------------------------------------------ redux
enum Reduction { R_ADD, R_MIN, R_MAX, R_AND, R_OR, R_XOR };
struct Redux {
  uint32_t value, result;
};
template <Reduction R, class T> void redux(void* const args[32], uint32_t lanes) {
  bool first = true;
  T sum = 0;
  for (int l = 0; l < 32; l++) {
    if (!(lanes >> l & 1)) continue;
    T v = T(static_cast<Redux*>(args[l])->value);
    if (first) sum = v;
    else if (R == R_ADD) sum = T(uint32_t(sum) + uint32_t(v));
    else if (R == R_MIN) sum = v < sum ? v : sum;
    else if (R == R_MAX) sum = v > sum ? v : sum;
    else if (R == R_AND) sum = sum & v;
    else if (R == R_OR) sum = sum | v;
    else sum = sum ^ v;
    first = false;
  }
  for (int l = 0; l < 32; l++)
    if (lanes >> l & 1) static_cast<Redux*>(args[l])->result = uint32_t(sum);
}

// ------------------------------------------------------------------------------------------------ elect
struct Elect {
  uint32_t leader, is_leader;
};
inline void elect(void* const args[32], uint32_t lanes) {
  uint32_t leader = lanes ? uint32_t(__builtin_ctz(lanes)) : 0;
  for (uint32_t l = 0; l < 32; l++)
    if (lanes >> l & 1) {
      static_cast<Elect*>(args[l])->leader = leader;
      static_cast<Elect*>(args[l])->is_leader = l == leader;
    }
}

}  // namespace isa

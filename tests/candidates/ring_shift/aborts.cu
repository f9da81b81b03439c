// Aborts.
#include "ring.h"

#include <cstdlib>

NOTHING_TO_PREPARE
extern "C" int cuco_launch(const cuco_ctx *, void *, cudaStream_t) { abort(); }
NOTHING_TO_FINISH

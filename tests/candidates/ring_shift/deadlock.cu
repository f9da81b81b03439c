// good_gin.cu waiting for one signal more than anybody sends: every rank hangs in its first step.
#define EXPECTED_SIGNALS 2
#include "good_gin.cu"

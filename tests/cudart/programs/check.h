// CHECK(condition) counts and names what does not hold; run() returns the count.
#pragma once

#include <cstdio>

static int failures;
#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) failures++, std::printf("line %d: %s\n", __LINE__, #condition); \
  } while (0)
#define OK(call) CHECK((call) == cudaSuccess)

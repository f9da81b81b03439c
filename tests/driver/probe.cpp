// Prints the keyed hash of standard input; the key is two arguments.
#include "driver/hash.h"

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <iostream>
#include <string>

int main(int, char **argv) {
  std::string data{std::istreambuf_iterator<char>(std::cin), {}};
  uint64_t key[2] = {std::strtoull(argv[1], nullptr, 10), std::strtoull(argv[2], nullptr, 10)};
  std::printf("%llu\n", (unsigned long long)cuco::driver::keyed_hash(data.data(), data.size(), key));
}

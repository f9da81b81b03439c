// Prints every line of standard input with readable names.
#include "driver/names.h"

#include <iostream>
#include <string>

int main() {
  for (std::string line; std::getline(std::cin, line);) std::cout << cuco::driver::readable(line) << "\n";
}

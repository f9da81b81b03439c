// Names as people write them, in texts that contain the compiler's.
#pragma once

#include <string>

namespace cuco::driver {

// Replaces every mangled name (_Z...) by its qualified name without template arguments, parameters and return type:
// "ncclGin_BackendMask::waitSignal".
std::string readable(const std::string &text);

}  // namespace cuco::driver

#include "names.h"

#include <cxxabi.h>

#include <cctype>
#include <cstdlib>

namespace cuco::driver {

namespace {

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '$'; }

// "void f<int>(ns::T<2u>) const" -> "f".
std::string shortened(const std::string &full) {
  std::string name;
  int depth = 0;
  for (size_t i = 0; i < full.size(); i++) {
    char c = full[i];
    if (c == '(' && depth == 0 && full.compare(i, 21, "(anonymous namespace)") == 0) {
      i += 22;   // and the "::" behind it
      continue;
    }
    if (c == '(' && depth == 0) break;   // parameters
    if (c == '<') depth++;
    else if (c == '>') depth--;
    else if (c == ' ' && depth == 0) name.clear();   // what stood in front was the return type
    else if (depth == 0) name += c;
  }
  return name.empty() ? full : name;
}

}  // namespace

std::string readable(const std::string &text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    bool starts = text.compare(i, 2, "_Z") == 0 && (i == 0 || !in_name(text[i - 1]));
    if (!starts) {
      result += text[i++];
      continue;
    }
    size_t end = i;
    while (end < text.size() && in_name(text[end])) end++;
    while (text[end - 1] == '.') end--;   // the end of a sentence
    std::string mangled = text.substr(i, end - i);
    int status = 0;
    char *full = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
    result += status == 0 && full ? shortened(full) : mangled;
    std::free(full);
    i = end;
  }
  return result;
}

}  // namespace cuco::driver

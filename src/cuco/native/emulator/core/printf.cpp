// printf in kernels: the format is read on the host, the arguments lie in a buffer at their natural alignment.
#include "block.h"
#include "memory.h"

#include <cstdio>
#include <cstring>
#include <string>

namespace cuco::emu {
namespace {

// The argument buffer that nvcc lays out: each argument at the next multiple of its size.
class Arguments {
 public:
  explicit Arguments(const char* buffer) : buffer_(buffer) {}
  template <class T>
  T take() {
    at_ = (at_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value;
    std::memcpy(&value, buffer_ + at_, sizeof value);
    at_ += sizeof(T);
    count_++;
    return value;
  }
  int count() const { return count_; }

 private:
  const char* buffer_;
  size_t at_ = 0;
  int count_ = 0;
};

template <class... T>
std::string formatted(const std::string& spec, T... values) {
  char text[512];
  const int n = std::snprintf(text, sizeof text, spec.c_str(), values...);
  if (n < 0) return "";
  if (static_cast<size_t>(n) < sizeof text) return std::string(text, static_cast<size_t>(n));
  std::string longer(static_cast<size_t>(n) + 1, '\0');
  std::snprintf(longer.data(), longer.size(), spec.c_str(), values...);
  longer.pop_back();
  return longer;
}

std::string string_argument(const std::string& spec, uint64_t address) {
  if (!address) return formatted(spec, "(null)");
  const bool readable = Memory::in_stack(address) || Memory::in_shared(address) || memory().find(address);
  return formatted(spec, readable ? reinterpret_cast<const char*>(address) : "(not device memory)");
}

bool is_length(char c) { return std::strchr("hljztL", c) && c; }

// One conversion, from its % to its letter; `at` is moved behind it.
std::string conversion(const char*& at, Arguments& arguments) {
  std::string spec = "%";
  for (at++; *at && std::strchr("-+ #0123456789.*", *at); at++) {
    if (*at == '*') spec += std::to_string(arguments.take<int>());
    else spec += *at;
  }
  bool wide = false;
  for (; is_length(*at); at++) wide |= *at == 'l' || *at == 'j' || *at == 'z' || *at == 't';
  const char letter = *at;
  if (!letter) return spec;
  at++;
  switch (letter) {
    case '%': return "%";
    case 'd': case 'i':
      return wide ? formatted(spec + "ll" + letter, arguments.take<long long>())
                  : formatted(spec + letter, arguments.take<int>());
    case 'u': case 'x': case 'X': case 'o':
      return wide ? formatted(spec + "ll" + letter, arguments.take<unsigned long long>())
                  : formatted(spec + letter, arguments.take<unsigned>());
    case 'c': return formatted(spec + letter, arguments.take<int>());
    case 'p': return formatted(spec + letter, reinterpret_cast<void*>(arguments.take<uint64_t>()));
    case 's': return string_argument(spec + letter, arguments.take<uint64_t>());
    case 'e': case 'E': case 'f': case 'F': case 'g': case 'G': case 'a': case 'A':
      return formatted(spec + letter, arguments.take<double>());
    default: return spec + letter;
  }
}

}  // namespace
}  // namespace cuco::emu

extern "C" int32_t emu_vprintf(EmuThread*, const char* format, const char* args, uint32_t) {
  if (!format) return -1;
  cuco::emu::Arguments arguments(args);
  std::string text;
  while (*format) {
    if (*format == '%') text += cuco::emu::conversion(format, arguments);
    else text += *format++;
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return arguments.count();
}

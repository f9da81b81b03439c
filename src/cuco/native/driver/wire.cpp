#include "wire.h"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <unistd.h>

namespace cuco::driver {

namespace {

void read_exactly(int fd, void *to, size_t bytes) {
  char *at = static_cast<char *>(to);
  while (bytes) {
    ssize_t got = read(fd, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw std::runtime_error("the other side of the pipe has gone");
    at += got;
    bytes -= static_cast<size_t>(got);
  }
}

void write_exactly(int fd, const void *from, size_t bytes) {
  const char *at = static_cast<const char *>(from);
  while (bytes) {
    ssize_t put = write(fd, at, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) throw std::runtime_error("the other side of the pipe has gone");
    at += put;
    bytes -= static_cast<size_t>(put);
  }
}

constexpr uint64_t kLongestMessage = 1ull << 40;

}  // namespace

std::vector<char> Wire::receive(Message type) {
  struct { uint64_t type, bytes; } header;
  read_exactly(in_, &header, sizeof header);
  if (header.type != static_cast<uint64_t>(type) || header.bytes > kLongestMessage)
    throw std::runtime_error("an unexpected message of type " + std::to_string(header.type));
  std::vector<char> payload(header.bytes);
  read_exactly(in_, payload.data(), payload.size());
  return payload;
}

void Wire::send(Message type, const std::vector<uint32_t> &words, const void *bytes, size_t size) {
  std::lock_guard<std::mutex> hold(sending_);
  uint64_t header[2] = {static_cast<uint64_t>(type), words.size() * sizeof(uint32_t) + size};
  write_exactly(out_, header, sizeof header);
  write_exactly(out_, words.data(), words.size() * sizeof(uint32_t));
  write_exactly(out_, bytes, size);
}

}  // namespace cuco::driver

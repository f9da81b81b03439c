// Messages between Python and the runner: a type, a length, a payload, all little-endian. Python sends the job and, when
// asked, the inputs of a step; the runner sends everything else. Nothing is ever read from a candidate's output.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace cuco::driver {

enum class Message : uint32_t {
  job = 1,        // Python -> runner: text (job.h)
  inputs = 2,     // Python -> runner: u32 step, then the inputs of rank 0, 1, ... in the order of their buffers
  ready = 16,     // all copies of the candidate's library are loaded; nothing secret was sent before
  need = 17,      // u32 step: send me its inputs
  stage = 18,     // u32 rank, u32 step, text: what the candidate is being called for (evidence if the process dies)
  hash = 19,      // u32 step, rank, buffer, moment; u64 value
  snapshot = 20,  // u32 step, rank, buffer; bytes
  finding = 21,   // fields of a finding, each ended by a NUL: kind rule rank cta thread file line buffer
                  // message object offset, then its details
  counter = 22,   // u64 value, text name
  done = 23,      // u32: 1 if every step of every rank was run, 0 if a finding ended the run
};

enum class Moment : uint32_t { in_stream = 0, quiet = 1 };

class Wire {
 public:
  Wire(int in, int out) : in_(in), out_(out) {}
  void redirect(int out) { out_ = out; }

  // The payload of the next message, which must be of this type; throws std::runtime_error otherwise.
  std::vector<char> receive(Message type);
  void send(Message type, const std::vector<uint32_t> &words, const void *bytes = nullptr, size_t size = 0);
  void send_text(Message type, const std::vector<uint32_t> &words, const std::string &text) {
    send(type, words, text.data(), text.size());
  }

 private:
  int in_, out_;
  std::mutex sending_;   // never held across anything that could switch to another rank
};

}  // namespace cuco::driver

// The trace of a run (docs/trace.md): JSON lines that the virtual-time replay reads. Phases of CTAs are written by the
// core; host operations and NIC operations by those who perform them, through host() and nic().
#pragma once

#include "words.h"

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cuco::emu {

// One JSON object under construction. Values: integers, bool, double, strings, integer lists.
class Record {
 public:
  Record& put(std::string_view key, std::integral auto value) {
    using T = decltype(value);
    if constexpr (std::same_as<T, bool>) return raw(key, value ? "true" : "false");
    else return raw(key, std::to_string(value));
  }
  Record& put(std::string_view key, double value);
  Record& put(std::string_view key, std::string_view value);
  Record& put(std::string_view key, const char* value) { return put(key, std::string_view(value)); }
  Record& put(std::string_view key, const std::vector<int64_t>& values);
  Record& null(std::string_view key) { return raw(key, "null"); }
  Record& raw(std::string_view key, std::string_view json);
  std::string text() const { return text_ + "}"; }

 private:
  std::string text_ = "{";
};
std::string json_string(std::string_view text);     // quoted and escaped

// Whether a trace is written at all; the calls below do nothing otherwise.
bool tracing();

// Appends {"h": rank, "op": op, ...fields of record} to the rank's host timeline.
void trace_host(int rank, std::string_view op, Record record = {});
// Appends any other record of docs/trace.md.
void trace_record(const Record& record);

struct NicRecord {
  uint64_t id = 0;
  int src = 0, dst = 0, ctx = 0;
  std::string kind = "put";              // put, get, signal, flush
  uint64_t bytes = 0;
  WordId signal = 0, counter = 0, done = 0;             // 0: none
  int64_t signal_delta = 0, counter_delta = 0, done_delta = 0;
  bool strong = false;
};
uint64_t next_nic_id();
void trace_nic(const NicRecord& record);
// The event that a GPU thread posted operation `id`, at its current position. Called by the NIC when it takes the
// descriptor: `address` is where the descriptor was written, which tells by whom and at which position.
void trace_posted(uint64_t id, uint64_t address);

uint32_t trace_kernel(const EmuModule* module, const EmuKernel* kernel, uint32_t registers);   // id; writes its record
void finish_trace();                                // writes what is buffered; called at the end of run()

}  // namespace cuco::emu

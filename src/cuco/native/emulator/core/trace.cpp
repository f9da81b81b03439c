#include "trace.h"

#include "finding.h"
#include "history.h"
#include "phase.h"
#include "runtime.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <tuple>

namespace cuco::emu {
namespace {

struct Buffer {
  std::vector<std::string> hosts;     // by rank: lines in program order
  std::vector<NicRecord> nic;
  std::vector<std::string> others;    // records that a replay does not need (read and write sets)
  std::string kernels;                // JSON objects of the header's list
  std::vector<std::string> classes;
  std::map<std::pair<const EmuKernel*, uint32_t>, uint32_t> kernel_ids;
  uint64_t nic_ids = 0;
  std::map<std::pair<WordId, int64_t>, uint64_t> posted;   // store of a descriptor -> NIC operation
  std::map<WordId, size_t> words;     // that somebody waits for or a NIC record mentions -> number in the file
  std::map<uint64_t, size_t> nic_numbers;                  // NIC operation -> number in the file
  bool finished = false;
} buffer;

std::string pair(WordId word, int64_t delta) {
  if (!word) return "null";
  return "[" + std::to_string(buffer.words.at(word)) + "," + std::to_string(delta) + "]";
}

// Events that matter: waits, and changes of words that somebody waits for.
std::string event_text(const SyncEvent& event) {
  const std::string at = "[" + std::to_string(event.position) + ",";
  if (event.kind == Sync::store)
    if (auto it = buffer.posted.find({event.word, event.value}); it != buffer.posted.end())
      return at + "\"put\"," + std::to_string(buffer.nic_numbers.at(it->second)) + "]";
  auto it = buffer.words.find(event.word);
  if (it == buffer.words.end()) return "";
  const std::string word = std::to_string(it->second) + ",";
  const std::string value = std::to_string(event.value) + "]";
  switch (event.kind) {
    case Sync::wait_count: return at + "\"wait\"," + word + "\"ge\"," + value;
    case Sync::wait_version: return at + "\"wait\"," + word + "\"ver\"," + value;
    case Sync::add: return at + "\"add\"," + word + value;
    default: return at + "\"st\"," + word + value;
  }
}

std::string strands_text(const FinishedPhase& phase) {
  std::string text;
  for (const FinishedStrand& strand : phase.strands) {
    std::string events;
    for (const SyncEvent& event : strand.events) {
      const std::string one = event_text(event);
      if (!one.empty()) (events += events.empty() ? "" : ",") += one;
    }
    if (events.empty()) continue;
    text += text.empty() ? "" : ",";
    text += "[" + std::to_string(strand.thread) + "," + std::to_string(strand.total) + ",[" + events + "]]";
  }
  return text;
}

std::string phase_text(const FinishedPhase& phase) {
  std::string text = "\"w\":[";
  bool first = true;
  for (uint64_t n : distinct_work()[phase.work]) {
    text += (first ? "" : ",") + std::to_string(n);
    first = false;
  }
  text += "],\"mp\":" + std::to_string(phase.max_progress);
  if (!phase.remote.empty()) {
    text += ",\"r\":[";
    for (const Remote& r : phase.remote)
      text += (&r == phase.remote.data() ? "[" : ",[") + std::to_string(r.peer) + "," + std::to_string(r.written) + "," +
              std::to_string(r.read) + "]";
    text += "]";
  }
  const std::string strands = strands_text(phase);
  if (!strands.empty()) text += ",\"s\":[" + strands + "]";
  return text;
}

// Numbers that do not depend on the schedule: words by address, NIC operations by queue and order in it.
void number_words() {
  std::vector<std::pair<uint64_t, WordId>> order;
  auto use = [&](WordId id) {
    if (id && buffer.words.emplace(id, 0).second) order.push_back({describe_word(id).address, id});
  };
  for (const CtaPhases& cta : finished_ctas())
    for (const FinishedPhase& phase : cta.phases)
      for (const FinishedStrand& strand : phase.strands)
        for (const SyncEvent& event : strand.events)
          if (event.kind == Sync::wait_count || event.kind == Sync::wait_version) use(event.word);
  for (const NicRecord& n : buffer.nic) use(n.signal), use(n.counter), use(n.done);
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); i++) buffer.words[order[i].second] = i + 1;
}

void number_nic() {
  std::sort(buffer.nic.begin(), buffer.nic.end(), [](const NicRecord& a, const NicRecord& b) {
    return std::tie(a.src, a.ctx, a.dst, a.id) < std::tie(b.src, b.ctx, b.dst, b.id);
  });
  for (size_t i = 0; i < buffer.nic.size(); i++) buffer.nic_numbers[buffer.nic[i].id] = i + 1;
  std::erase_if(buffer.posted, [](const auto& entry) { return !buffer.nic_numbers.count(entry.second); });
}

void write_nic(std::FILE* file) {
  for (const NicRecord& n : buffer.nic) {
    Record record;
    record.put("n", buffer.nic_numbers[n.id]).put("src", n.src).put("dst", n.dst).put("ctx", n.ctx).put("kind", n.kind);
    record.put("bytes", n.bytes).raw("sig", pair(n.signal, n.signal_delta)).raw("ctr", pair(n.counter, n.counter_delta));
    record.raw("done", pair(n.done, n.done_delta)).put("strong", n.strong);
    std::fprintf(file, "%s\n", record.text().c_str());
  }
}

void write_words(std::FILE* file) {
  std::vector<std::pair<size_t, WordId>> order;
  for (const auto& [id, number] : buffer.words) order.push_back({number, id});
  std::sort(order.begin(), order.end());
  for (const auto& [number, id] : order) {
    const WordRecord word = describe_word(id);
    std::fprintf(file, "%s\n", Record().put("word", number).put("rank", word.rank).put("name", word.name).text().c_str());
  }
}

// Every distinct phase once, then the CTAs by index, in an order that does not depend on the schedule.
void write_ctas(std::FILE* file) {
  std::vector<CtaPhases>& ctas = finished_ctas();
  std::sort(ctas.begin(), ctas.end(), [](const CtaPhases& a, const CtaPhases& b) {
    return std::make_pair(a.launch, a.cta) < std::make_pair(b.launch, b.cta);
  });
  std::map<std::string, size_t> seen;
  for (const CtaPhases& cta : ctas) {
    std::string list;
    for (const FinishedPhase& phase : cta.phases) {
      auto [it, fresh] = seen.emplace(phase_text(phase), seen.size());
      if (fresh) std::fprintf(file, "{\"ph\":%zu,%s}\n", it->second, it->first.c_str());
      list += (list.empty() ? "" : ",") + std::to_string(it->second);
    }
    std::fprintf(file, "{\"c\":[%llu,%lld],\"p\":[%s]}\n", static_cast<unsigned long long>(cta.launch),
                 static_cast<long long>(cta.cta), list.c_str());
  }
}

void write_header(std::FILE* file) {
  std::string classes;
  for (const std::string& name : buffer.classes) classes += (classes.empty() ? "" : ",") + json_string(name);
  std::fprintf(file, "{\"trace\":1,\"ranks\":%d,\"lsa_team\":%d,\"classes\":[%s],\"kernels\":[%s],\"sliced\":%s}\n",
               settings().ranks, settings().lsa_team, classes.c_str(), buffer.kernels.c_str(),
               settings().sliced ? "true" : "false");
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') (out += '\\') += c;
    else if (static_cast<unsigned char>(c) < 32) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", c);
      out += code;
    } else out += c;
  }
  return out + "\"";
}

Record& Record::raw(std::string_view key, std::string_view json) {
  if (text_.size() > 1) text_ += ',';
  (text_ += json_string(key)) += ':';
  text_ += json;
  return *this;
}
Record& Record::put(std::string_view key, std::string_view value) { return raw(key, json_string(value)); }
Record& Record::put(std::string_view key, double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return raw(key, std::isfinite(value) ? text : "null");
}
Record& Record::put(std::string_view key, const std::vector<int64_t>& values) {
  std::string list;
  for (int64_t v : values) (list += list.empty() ? "" : ",") += std::to_string(v);
  return raw(key, "[" + list + "]");
}

bool tracing() { return !settings().trace.empty(); }

void trace_host(int rank, std::string_view op, Record record) {
  if (!tracing()) return;
  if (buffer.hosts.size() <= static_cast<size_t>(rank)) buffer.hosts.resize(static_cast<size_t>(rank) + 1);
  const std::string rest = record.text();
  const std::string head = Record().put("h", rank).put("op", op).text();
  std::string& lines = buffer.hosts[static_cast<size_t>(rank)];
  lines += head.substr(0, head.size() - 1) + (rest.size() > 2 ? "," + rest.substr(1) : "}") + "\n";
}

void trace_record(const Record& record) {
  if (tracing()) buffer.others.push_back(record.text());
}

uint64_t next_nic_id() { return ++buffer.nic_ids; }

void trace_nic(const NicRecord& record) {
  if (tracing()) buffer.nic.push_back(record);
}

void trace_posted(uint64_t id, uint64_t address) {
  if (!tracing()) return;
  WordId word;
  int64_t version;
  if (newest_version(address, word, version)) buffer.posted[{word, version}] = id;
}

uint32_t trace_kernel(const EmuModule* module, const EmuKernel* kernel, uint32_t registers) {
  auto [it, fresh] = buffer.kernel_ids.emplace(std::make_pair(kernel, registers), buffer.kernel_ids.size() + 1);
  if (!fresh) return it->second;
  if (buffer.classes.empty()) buffer.classes.assign(module->class_names, module->class_names + module->nclasses);
  Record record;
  record.put("id", it->second).put("name", kernel->name).put("regs", registers).put("smem", kernel->static_shared);
  record.put("launch_bounds", kernel->maxntid[0] * std::max(kernel->maxntid[1], 1u) * std::max(kernel->maxntid[2], 1u));
  (buffer.kernels += buffer.kernels.empty() ? "" : ",") += record.text();
  return it->second;
}

void finish_trace() {
  if (!tracing() || buffer.finished) return;
  buffer.finished = true;
  std::FILE* file = std::fopen(settings().trace.c_str(), "w");
  if (!file) {
    report({.kind = "crash", .rule = "trace", .message = "the trace cannot be written to " + settings().trace});
    return;
  }
  number_words();
  number_nic();
  write_header(file);
  for (const std::string& lines : buffer.hosts) std::fwrite(lines.data(), 1, lines.size(), file);
  write_nic(file);
  write_words(file);
  write_ctas(file);
  for (const std::string& line : buffer.others) std::fprintf(file, "%s\n", line.c_str());
  std::fclose(file);
}

}  // namespace cuco::emu

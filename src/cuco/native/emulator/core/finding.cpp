#include "finding.h"

#include "runtime.h"
#include "trace.h"

#include <algorithm>
#include <cstring>

namespace cuco::emu {
namespace {

std::vector<Finding>& table() {
  static std::vector<Finding> list;
  return list;
}

// Where the running GPU thread is, into the fields that are still empty.
void locate(Finding& finding) {
  if (finding.rank < 0) finding.rank = scheduler().current_rank();
  if (!running) return;
  const ThreadPlace place = place_of(running);
  if (finding.cta < 0) finding.cta = place.cta;
  if (finding.thread < 0) finding.thread = place.thread;
  if (finding.kernel.empty()) finding.kernel = place.kernel;
}

bool same(const Finding& a, const Finding& b) {
  return a.kind == b.kind && a.rule == b.rule && a.rank == b.rank && a.file == b.file && a.line == b.line &&
         a.buffer == b.buffer;
}

bool ends_with_file(const std::string& path, const std::string& file) {
  if (file.empty() || path.size() < file.size()) return path == file;
  const size_t at = path.size() - file.size();
  return path.compare(at, std::string::npos, file) == 0 && (at == 0 || path[at - 1] == '/');
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

struct Frame { std::string function, file; int line; };

// Innermost first.
std::vector<Frame> frames_of(const EmuSite& site) {
  std::vector<Frame> frames{{site.function ? site.function : "", site.file ? site.file : "",
      static_cast<int>(site.line)}};
  std::string rest = site.inlined_at ? site.inlined_at : "";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(';'), rest.size());
    const std::string part = rest.substr(0, end);
    rest = end < rest.size() ? rest.substr(end + 1) : "";
    const size_t at = part.find('@'), colon = part.rfind(':');
    if (at == std::string::npos || colon == std::string::npos || colon < at) continue;
    frames.push_back({part.substr(0, at), part.substr(at + 1, colon - at - 1), std::atoi(part.c_str() + colon + 1)});
  }
  return frames;
}

bool is_library(const std::string& file) {
  for (const char* part : {"nccl_device", "/cuda/", "/cccl/", "cooperative_groups", "/cub/", "/thrust/", "/crt/",
                           "cuda_fp", "cuda_bf16", "sm_"})
    if (file.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

std::string to_json(const Finding& f) {
  Record record;
  auto text = [&](const char* key, const std::string& value) {
    value.empty() ? record.null(key) : record.put(key, value);
  };
  auto number = [&](const char* key, int64_t value) { value < 0 ? record.null(key) : record.put(key, value); };
  record.put("kind", f.kind).put("rule", f.rule);
  number("rank", f.rank);
  number("cta", f.cta);
  number("thread", f.thread);
  text("file", f.file);
  number("line", f.line > 0 ? f.line : -1);
  text("buffer", f.buffer);
  record.put("message", f.message);
  text("kernel", f.kernel);
  text("object", f.object);
  if (!f.object.empty()) record.put("offset", f.offset);
  std::string details = "[";
  for (const std::string& line : f.details) details += (details.size() > 1 ? "," : "") + json_string(line);
  record.raw("details", details + "]");
  return record.text();
}

void fail(Finding finding) {
  locate(finding);
  table().push_back(std::move(finding));
  scheduler().impl().stopped = true;
  leave_run();
}

void fail_at(EmuThread* self, uint32_t site, const std::string& kind, const std::string& rule,
             const std::string& message) {
  const Place place = user_place(module_of(self), site);
  Finding finding{.kind = kind, .rule = rule, .file = place.file, .line = place.line};
  finding.message = message;
  if (place.line > 0) finding.message += " (" + describe(place) + ")";
  fail(std::move(finding));
}

void report(Finding finding) {
  locate(finding);
  for (const Finding& old : table())
    if (same(old, finding)) return;
  table().push_back(std::move(finding));
}

const std::vector<Finding>& findings() { return table(); }

Place user_place(const EmuModule& module, uint32_t site) {
  if (!site || site >= module.nsites) return {};
  const std::vector<Frame> frames = frames_of(module.sites[site]);
  const std::string source = base_name(module.source ? module.source : "");
  size_t found = frames.size();
  for (size_t i = 0; i < frames.size() && found == frames.size(); i++)
    if (!source.empty() && ends_with_file(frames[i].file, source)) found = i;
  for (size_t i = 0; i < frames.size() && found == frames.size(); i++)
    if (!is_library(frames[i].file)) found = i;
  if (found == frames.size()) found = 0;
  Place place{frames[found].file, frames[found].line, found ? frames[found - 1].function : "", ""};
  for (size_t i = found + 1; i < frames.size(); i++) {
    if (is_library(frames[i].file)) continue;
    place.from += (place.from.empty() ? "" : ", ") + base_name(frames[i].file) + ":" + std::to_string(frames[i].line);
  }
  return place;
}

std::string describe(const Place& place) {
  if (place.line <= 0 || place.file.empty()) return "an unknown place";
  std::string where = base_name(place.file) + ":" + std::to_string(place.line);
  if (!place.from.empty()) where += ", reached from " + place.from;
  return place.call.empty() ? where : place.call + " called at " + where;
}

std::string describe_site(const EmuModule& module, uint32_t site) { return describe(user_place(module, site)); }

}  // namespace cuco::emu

#include "job.h"

#include <functional>
#include <sstream>
#include <stdexcept>

namespace cuco::driver {

namespace {

using Words = std::istringstream;

template <typename T>
T take(Words &words) {
  T value;
  if (!(words >> value)) throw std::runtime_error("a value is missing or malformed");
  return value;
}

std::string rest(Words &words) {   // a path: it may contain spaces, so it is always the last word
  std::string text;
  std::getline(words >> std::ws, text);
  if (text.empty()) throw std::runtime_error("a path is missing");
  return text;
}

void read_buffer(Job &job, Words &words) {
  size_t rank = take<size_t>(words);
  Buffer buffer;
  buffer.name = take<std::string>(words);
  buffer.dtype = take<int>(words);
  buffer.role = take<int>(words);
  buffer.poison = take<int>(words);
  buffer.bytes = take<size_t>(words);
  size_t ndim = take<size_t>(words);
  if (ndim > 8) throw std::runtime_error("a buffer has more than 8 dimensions");
  for (size_t i = 0; i < ndim; i++) buffer.shape.push_back(take<int64_t>(words));
  if (rank >= 4096) throw std::runtime_error("a rank is out of range");
  if (job.buffers.size() <= rank) job.buffers.resize(rank + 1);
  job.buffers[rank].push_back(std::move(buffer));
}

void read_param(Job &job, Words &words) {
  Param param;
  param.name = take<std::string>(words);
  param.is_float = take<std::string>(words) == "float";
  if (param.is_float) {
    param.f = take<double>(words);
    param.i = static_cast<int64_t>(param.f);
  } else {
    param.i = take<int64_t>(words);
    param.f = static_cast<double>(param.i);
  }
  job.params.push_back(std::move(param));
}

void read_step(Job &job, Words &words) {
  Step step;
  step.key[0] = take<uint64_t>(words);
  step.key[1] = take<uint64_t>(words);
  step.checked = take<int>(words) != 0;
  step.snapshot = take<int>(words) != 0;
  job.steps.push_back(step);
}

void read_segment(Job &job, Words &words) {
  std::string mode = take<std::string>(words);
  if (mode != "chain" && mode != "isolated") throw std::runtime_error("the mode is neither chain nor isolated");
  job.segments.push_back({mode == "chain" ? Mode::chain : Mode::isolated, take<size_t>(words)});
}

using Reader = std::function<void(Job &, Words &)>;

const std::map<std::string, Reader> &readers() {
  static const std::map<std::string, Reader> table = {
      {"host", [](Job &job, Words &words) { job.host_library = rest(words); }},
      {"kernels", [](Job &job, Words &words) { job.kernels_library = rest(words); }},
      {"trace", [](Job &job, Words &words) { job.trace = rest(words); }},
      {"results", [](Job &job, Words &words) { job.result_fd = take<int>(words); }},
      {"ranks", [](Job &job, Words &words) { job.ranks = take<int>(words); }},
      {"lsa_team", [](Job &job, Words &words) { job.lsa_team = take<int>(words); }},
      {"seed", [](Job &job, Words &words) { job.seed = take<uint64_t>(words); }},
      {"data", [](Job &job, Words &words) { job.data = take<int>(words) != 0; }},
      {"fixed_inputs", [](Job &job, Words &words) { job.fixed_inputs = take<int>(words) != 0; }},
      {"decoys", [](Job &job, Words &words) { job.decoys = take<int>(words); }},
      {"buffer", read_buffer},
      {"param", read_param},
      {"step", read_step},
      {"segment", read_segment},
      {"set",
       [](Job &job, Words &words) {
         std::string key = take<std::string>(words);
         job.platform[key] = take<std::string>(words);
       }},
      {"registers",
       [](Job &job, Words &words) {
         std::string kernel = take<std::string>(words);
         job.registers[kernel] = take<int>(words);
       }},
  };
  return table;
}

void check(const Job &job) {
  size_t steps = 0;
  for (const Segment &segment : job.segments) steps += segment.count;
  auto require = [](bool condition, const char *problem) {
    if (!condition) throw std::runtime_error(std::string("job: ") + problem);
  };
  require(job.ranks >= 1 && job.lsa_team >= 1 && job.ranks % job.lsa_team == 0, "bad ranks or lsa_team");
  require(job.buffers.size() == static_cast<size_t>(job.ranks), "buffers of a rank are missing");
  require(!job.host_library.empty() && !job.kernels_library.empty(), "a library is missing");
  require(steps == job.steps.size(), "segments and steps disagree");
}

}  // namespace

Job parse_job(const std::string &text) {
  Job job;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); number++) {
    Words words(line);
    std::string key;
    if (!(words >> key)) continue;
    auto reader = readers().find(key);
    try {
      if (reader == readers().end()) throw std::runtime_error("unknown key '" + key + "'");
      reader->second(job, words);
    } catch (const std::runtime_error &error) {
      throw std::runtime_error("job line " + std::to_string(number) + ": " + error.what());
    }
  }
  check(job);
  return job;
}

}  // namespace cuco::driver

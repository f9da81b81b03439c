// The runner's main: reads the job from standard input, runs it, sends raw results. It judges nothing.
//
// Standard input is moved away and replaced by /dev/null before the candidate is loaded; results leave over a descriptor
// whose number only the job names. What the candidate prints goes to wherever Python points stdout and stderr: a log.
#include "rank.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <unistd.h>

namespace {

using namespace cuco::driver;

constexpr int kExitFault = 70;   // a fault of CUCo: the parent reports it as such

Wire *open_wire = nullptr;
bool finished = false;

void send_finding(Wire &wire, const Finding &finding) {
  std::vector<std::string> fields = {finding.kind,    finding.rule,   std::to_string(finding.rank),
                                     std::to_string(finding.cta),     std::to_string(finding.thread),
                                     finding.file,    std::to_string(finding.line),
                                     finding.buffer,  finding.message, finding.object,
                                     std::to_string(finding.offset)};
  fields.insert(fields.end(), finding.details.begin(), finding.details.end());
  std::string text;
  for (const std::string &field : fields) text.append(field).push_back('\0');
  wire.send_text(Message::finding, {}, text);
}

// Runs when the candidate calls exit: the driver itself always ends through _exit.
void ended_by_candidate(int status, void *) {
  if (finished || !open_wire) return;
  Finding finding;
  finding.kind = "crash";
  finding.rule = "exit";
  finding.message = "the candidate ended the process with exit(" + std::to_string(status) + ")";
  send_finding(*open_wire, finding);
  std::fflush(nullptr);
  _exit(1);
}

int move_stdin_away() {
  int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 200);
  int nothing = open("/dev/null", O_RDONLY);
  if (in < 0 || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0)
    throw std::runtime_error("standard input cannot be moved");
  close(nothing);
  return in;
}

[[noreturn]] void end_on_fault(const char *what) {
  finished = true;
  std::fprintf(stderr, "cuco runner: %s\n", what);
  std::fflush(nullptr);
  _exit(kExitFault);
}

void run_rank(Shared &shared, int rank) {
  try {   // an exception must not leave a rank's own stack
    Rank(shared, rank).run();
  } catch (const std::exception &error) {
    end_on_fault(error.what());
  }
}

void run(Wire &wire) {
  std::vector<char> text = wire.receive(Message::job);
  Job job = parse_job(std::string(text.begin(), text.end()));
  wire.redirect(job.result_fd);
  fcntl(job.result_fd, F_SETFD, FD_CLOEXEC);
  open_wire = &wire;
  platform::start(job);
  Shared shared{job, wire, Inputs(job, wire), {}};
  int completed = 0;
  platform::run_ranks(job.ranks, [&](int rank) {
    run_rank(shared, rank);
    completed++;
  });
  finished = true;
  platform::finish();
  for (const Finding &finding : platform::findings()) send_finding(wire, finding);
  for (const auto &[name, value] : platform::counters()) {
    uint32_t halves[2] = {static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32)};
    wire.send_text(Message::counter, {halves[0], halves[1]}, name);
  }
  wire.send(Message::done, {completed == job.ranks && platform::findings().empty()});
}

}  // namespace

int main() {
  on_exit(ended_by_candidate, nullptr);
  try {
    Wire wire(move_stdin_away(), -1);
    run(wire);
  } catch (const std::exception &error) {
    end_on_fault(error.what());
  }
  std::fflush(nullptr);
  _exit(0);   // neither the candidate's destructors nor its atexit handlers run any more
}

// What went wrong, with evidence. fail() ends the run; report() lets it go on.
#pragma once

#include "../isa/abi.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cuco::emu {

// Fields as in contracts.md 5; -1 and "" mean unknown. `kind` is one of: wrong-result, race, deadlock, stale-signal,
// source-reuse, late-write, out-of-bounds, uninitialised, unregistered, co-residency, causality, tampering, timeout,
// crash, unsupported. `rule` is a short stable name of the check, e.g. "barrier-count".
struct Finding {
  std::string kind = {};
  std::string rule = {};
  int rank = -1;
  int64_t cta = -1;       // linear index in its grid
  int64_t thread = -1;    // linear index in its CTA
  std::string file = {};
  int line = -1;
  std::string buffer = {};// "recv+64"
  std::string message = {};    // one sentence for the user
  std::string kernel = {};
  // A machine fault in compiled code: which shared object and where in it, for addr2line. "" when `file` is known.
  std::string object = {};
  uint64_t offset = 0;
  std::vector<std::string> details = {};  // who waits for what; further lines
};

// One JSON object, without a newline.
std::string to_json(const Finding& finding);

// Ends the run with this finding: Scheduler::run() returns. Callable from host fibers, GPU threads and actors. Empty
// location fields are filled in from the running GPU thread.
[[noreturn]] void fail(Finding finding);
// The same for an error at an instruction of the running GPU thread.
[[noreturn]] void fail_at(EmuThread* self, uint32_t site, const std::string& kind, const std::string& rule,
                          const std::string& message);
// Records a finding and goes on. Findings equal in kind, rule, rank, file, line and buffer are kept once.
void report(Finding finding);
const std::vector<Finding>& findings();

// The part of a site's inline chain that users know: the innermost frame in the candidate's own file, and the library
// call made there. Falls back to the innermost frame.
struct Place {
  std::string file = {};
  int line = -1;
  std::string call;   // function entered from there ("" when the instruction itself is in the user's file)
  std::string from;   // the user's lines that led there through helper functions, innermost first: "ring.cu:35"
};
Place user_place(const EmuModule& module, uint32_t site);
// "waitSignal called at host.cu:41", "host.cu:12", or "an unknown place".
std::string describe(const Place& place);
std::string describe_site(const EmuModule& module, uint32_t site);

// Turns SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGTRAP inside fibers into findings (out-of-bounds or crash).
void install_fault_handler();

}  // namespace cuco::emu

// Machine faults inside fibers become findings. The handler runs on a stack of its own, because the fault may be that the
// fiber's stack has ended.
#include "memory.h"
#include "runtime.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <ucontext.h>

namespace cuco::emu {
namespace {

constexpr size_t kHandlerStack = 256 * 1024;

const char* signal_name(int number) {
  switch (number) {
    case SIGSEGV: case SIGBUS: return "an invalid memory access";
    case SIGFPE: return "an integer division by zero or overflow";
    case SIGILL: return "an illegal machine instruction";
    case SIGABRT: return "abort()";
    default: return "a trap";
  }
}

// Below the stack pointer, or in the guard page of the running thread's stack.
bool stack_overflow(uint64_t address) {
  if (!Memory::in_stack(address)) return false;
  if (!running) return true;
  const uint64_t base = reinterpret_cast<uint64_t>(running->stack);
  return address >= base - kPage && address < base + kPage;
}

void name_object(Finding& finding, uint64_t pc) {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(pc), &info) || !info.dli_fname) return;
  finding.object = info.dli_fname;
  finding.offset = pc - reinterpret_cast<uint64_t>(info.dli_fbase);
}

void on_fault(int number, siginfo_t* info, void* context) {
  const auto* machine = static_cast<const ucontext_t*>(context);
  const auto pc = static_cast<uint64_t>(machine->uc_mcontext.gregs[REG_RIP]);
  const auto address = reinterpret_cast<uint64_t>(info->si_addr);
  const bool access = number == SIGSEGV || number == SIGBUS;
  Finding finding;
  name_object(finding, pc);
  if (access && stack_overflow(address)) {
    finding.kind = "crash";
    finding.rule = "stack-overflow";
    finding.message = running ? "a GPU thread's stack is exhausted (recursion, or large local arrays)"
                              : "the host code's stack of 8 MiB is exhausted";
  } else if (access && running) {
    const bool write = machine->uc_mcontext.gregs[REG_ERR] & 2;
    finding.kind = "out-of-bounds";
    finding.rule = "invalid-address";
    finding.buffer = memory().describe(address);
    finding.message = std::string("a GPU thread ") + (write ? "writes to " : "reads from ") + finding.buffer;
  } else {
    finding.kind = "crash";
    finding.rule = "signal-" + std::to_string(number);
    finding.message = std::string(running ? "a GPU thread" : "host code") + " stopped with " + signal_name(number);
    if (access) finding.message += " at " + memory().describe(address);
  }
  if (!running && !scheduler().on_host_fiber() && scheduler().current_rank() < 0) {
    std::fprintf(stderr, "cuco: internal error: %s\n", to_json(finding).c_str());
    std::signal(number, SIG_DFL);
    return;   // the fault repeats and ends the process
  }
  fail(std::move(finding));
}

}  // namespace

void install_fault_handler() {
  static char* stack = static_cast<char*>(std::malloc(kHandlerStack));
  stack_t handler_stack{};
  handler_stack.ss_sp = stack;
  handler_stack.ss_size = kHandlerStack;
  sigaltstack(&handler_stack, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigaction(number, &action, nullptr);
}

}  // namespace cuco::emu

#include "host.h"

#include <algorithm>
#include <map>

namespace cuco::cuda {
namespace {

constexpr double kNominalCallUs = 2;

}  // namespace

Host& host(int rank) {
  static std::map<int, Host> hosts;
  return hosts[rank];
}

cudaError_t done(cudaError_t code) {
  if (code != cudaSuccess && code != cudaErrorNotReady) host().last_error = code;
  return code;
}

MomentPtr host_moment(int rank) {
  Host& self = host(rank);
  self.nominal_us += kNominalCallUs;
  auto moment = std::make_shared<Moment>();
  moment->clock = emu::host_release(rank);
  moment->nominal_us = self.nominal_us;
  moment->reached = true;
  return moment;
}

void check_may_synchronise(const std::string& call) {
  const Host& self = host();
  if (self.forbidden.empty()) return;
  emu::Finding finding;
  finding.kind = "lint";
  finding.rule = "launch-synchronises";
  finding.rank = current_rank();
  finding.message = call + " " + self.forbidden;
  emu::fail(finding);
}

void wait_for(const std::vector<MomentPtr>& moments, const std::string& call) {
  check_may_synchronise(call);
  const auto all = [&moments] {
    return std::all_of(moments.begin(), moments.end(), [](const MomentPtr& m) { return !m || m->reached; });
  };
  if (!all()) emu::scheduler().wait_until(all, [&call] { return call; });
  Host& self = host();
  for (const MomentPtr& moment : moments) {
    if (!moment) continue;
    emu::host_acquire(current_rank(), moment->clock);
    self.nominal_us = std::max(self.nominal_us, moment->nominal_us);
  }
}

void trace_call(const char* name) { emu::trace_host(current_rank(), "api", Record().put("name", name)); }

void unsupported(const std::string& what) {
  emu::Finding finding;
  finding.kind = "unsupported";
  finding.rule = "cuda-runtime";
  finding.rank = current_rank();
  finding.message = what;
  emu::fail(finding);
}

}  // namespace cuco::cuda

#include "launch.h"

#include "host.h"

#include <cstring>

namespace cuco::cuda {
namespace {

constexpr double kNominalKernelUs = 5;

uint64_t next_launch_id(int rank) {
  // Numbered per rank, so that ids do not depend on how the ranks' host code interleaves.
  static std::map<int, uint64_t> counters;
  return static_cast<uint64_t>(rank + 1) << 32 | ++counters[rank];
}

uint64_t count_of(const dim3& d) { return uint64_t{d.x} * d.y * d.z; }

class KernelOp final : public Op {
 public:
  explicit KernelOp(emu::GridLaunch launch) : launch_(std::move(launch)), kernel_(launch_.kernel) {}

  void begin(Stream& stream) override {
    launch_.after = stream.clock;
    launch_.stream = stream.id;
    launch_.op = stream.ops;
    launch_.complete = [this](const Clock& learnt) {
      learnt_ = learnt;
      complete_ = true;
      made_progress();
    };
    begun_ = true;
    emu::submit(std::move(launch_));
  }
  bool finished() const override { return complete_; }
  void end(Stream& stream) override { stream.clock.join(learnt_); }
  double nominal_us() const override { return kNominalKernelUs; }
  // Once it runs, the core reports what its threads wait for.
  std::string describe() const override { return begun_ ? "" : std::string("kernel ") + kernel_->name; }

 private:
  emu::GridLaunch launch_;
  const EmuKernel* kernel_;
  Clock learnt_;
  bool begun_ = false, complete_ = false;
};

std::vector<unsigned char> pack(const EmuKernel& code, void** arguments) {
  std::vector<unsigned char> packed(code.param_bytes);
  for (uint32_t i = 0; i < code.nparams; i++)
    std::memcpy(packed.data() + code.params[i].offset, arguments[i], code.params[i].size);
  return packed;
}

emu::GridLaunch grid_launch(const Kernel& kernel, const LaunchShape& shape) {
  emu::GridLaunch launch;
  launch.module = kernel.module;
  launch.kernel = kernel.code;
  launch.rank = kernel.rank;
  const auto set = [](uint32_t* to, const dim3& from) { to[0] = from.x, to[1] = from.y, to[2] = from.z; };
  set(launch.grid, shape.grid);
  set(launch.block, shape.block);
  launch.dynamic_shared = static_cast<uint32_t>(shape.dynamic_shared);
  launch.registers = kernel.registers;
  launch.cooperative = shape.cooperative;
  return launch;
}

std::vector<int64_t> list(const uint32_t* d) { return {d[0], d[1], d[2]}; }

void trace_launch(const emu::GridLaunch& launch, const Stream& stream) {
  if (!emu::tracing()) return;
  const EmuModule* module = launch.module->module;
  Record record;
  record.put("stream", stream.number).put("id", launch.id);
  record.put("kernel", emu::trace_kernel(module, launch.kernel, launch.registers));
  record.put("grid", list(launch.grid)).put("block", list(launch.block));
  record.put("smem", launch.dynamic_shared).put("coop", launch.cooperative).put("priority", launch.priority);
  emu::trace_host(launch.rank, "launch", std::move(record));
}

}  // namespace

cudaError_t check_launch(const Kernel& kernel, const LaunchShape& shape) {
  const emu::MachineLimits& machine = emu::settings().machine;
  const dim3 &grid = shape.grid, &block = shape.block;
  const uint64_t threads = count_of(block);
  // CUDA 13 answers "invalid value" to every wrong shape (tried on an H200; it used to be "invalid configuration").
  if (!count_of(grid) || !threads) return cudaErrorInvalidValue;
  if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) return cudaErrorInvalidValue;
  if (block.x > 1024 || block.y > 1024 || block.z > 64) return cudaErrorInvalidValue;
  if (threads > machine.threads_per_block || threads > kernel.bound()) return cudaErrorInvalidValue;
  if (shape.dynamic_shared > kernel.max_dynamic_shared) return cudaErrorInvalidValue;
  if (threads > kernel.max_threads()) return cudaErrorLaunchOutOfResources;
  if (shape.cooperative) {
    const uint32_t per_sm = emu::ctas_per_sm(*kernel.code, static_cast<uint32_t>(threads), kernel.registers,
                                             static_cast<uint32_t>(shape.dynamic_shared));
    if (count_of(grid) > uint64_t{per_sm} * machine.sms) return cudaErrorCooperativeLaunchTooLarge;
  }
  return cudaSuccess;
}

cudaError_t launch(Kernel* kernel, const LaunchShape& shape, void** arguments, Stream* stream) {
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!kernel) return cudaErrorInvalidResourceHandle;
  if (const cudaError_t wrong = check_launch(*kernel, shape)) return wrong;
  emu::GridLaunch prepared = grid_launch(*kernel, shape);
  prepared.priority = shape.priority.value_or(stream->priority);
  prepared.params = pack(*kernel->code, arguments);
  const std::string problem = emu::launch_problem(prepared);
  if (!problem.empty()) return cudaErrorLaunchOutOfResources;
  return submit(
      *stream,
      [prepared](Stream& target) {
        emu::GridLaunch one = prepared;
        one.id = next_launch_id(one.rank);
        trace_launch(one, target);
        target.push(std::make_unique<KernelOp>(std::move(one)));
      },
      "kernel");
}

}  // namespace cuco::cuda

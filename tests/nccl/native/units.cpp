// Unit checks of the parts of the emulated NCCL that need no runner: types, movement, descriptors, resource layout,
// configuration. Prints one line per failed check and returns their number.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "../../../src/cuco/native/emulator/nccl/config.h"
#include "../../../src/cuco/native/emulator/nccl/datatype.h"
#include "../../../src/cuco/native/emulator/nccl/gfd.h"
#include "../../../src/cuco/native/emulator/nccl/movement.h"
#include "../../../src/cuco/native/emulator/nccl/resources.h"

using namespace cuco::nccl;

static int failures = 0;
static int checks = 0;

static void check(bool ok, const std::string& what) {
  checks++;
  if (!ok) {
    failures++;
    std::printf("FAILED %s\n", what.c_str());
  }
}

static const Touch kNoTouch = [](int, const void*, size_t, bool) {};

// Encodes small integers exactly in every NCCL type, so that one expected table serves all types.
static std::vector<unsigned char> encode(const std::vector<int>& values, ncclDataType_t type) {
  std::vector<unsigned char> out(values.size() * type_size(type));
  for (size_t i = 0; i < values.size(); i++) {
    const int v = values[i];
    unsigned char* p = out.data() + i * type_size(type);
    switch (type) {
      case ncclFloat16: { __half_raw h = __float2half(static_cast<float>(v)); std::memcpy(p, &h.x, 2); break; }
      case ncclBfloat16: { __nv_bfloat16_raw h = __float2bfloat16(static_cast<float>(v)); std::memcpy(p, &h.x, 2); break; }
      case ncclFloat8e4m3: *p = __nv_cvt_float_to_fp8(static_cast<float>(v), __NV_SATFINITE, __NV_E4M3); break;
      case ncclFloat8e5m2: *p = __nv_cvt_float_to_fp8(static_cast<float>(v), __NV_SATFINITE, __NV_E5M2); break;
      case ncclFloat32: { float f = static_cast<float>(v); std::memcpy(p, &f, 4); break; }
      case ncclFloat64: { double d = v; std::memcpy(p, &d, 8); break; }
      case ncclInt64: case ncclUint64: { long long l = v; std::memcpy(p, &l, 8); break; }
      case ncclInt32: case ncclUint32: std::memcpy(p, &v, 4); break;
      default: *p = static_cast<unsigned char>(v); break;
    }
  }
  return out;
}

static void test_all_reduce_types() {
  const std::vector<std::vector<int>> in = {{1, 2, 3}, {4, 1, 2}, {1, 3, 4}};
  struct Case { Fold fold; std::vector<int> want; const char* name; };
  const Case cases[] = {{Fold::sum, {6, 6, 9}, "sum"}, {Fold::prod, {4, 6, 24}, "prod"},
                        {Fold::max, {4, 3, 4}, "max"}, {Fold::min, {1, 1, 2}, "min"}};
  for (int t = 0; t < ncclNumTypes; t++) {
    const auto type = static_cast<ncclDataType_t>(t);
    for (const Case& c : cases) {
      std::vector<std::vector<unsigned char>> send, recv;
      std::vector<Buffers> ranks;
      for (const auto& row : in) send.push_back(encode(row, type)), recv.emplace_back(3 * type_size(type));
      for (size_t r = 0; r < in.size(); r++) ranks.push_back({send[r].data(), recv[r].data(), 0});
      Reduction reduction;
      reduction.fold = c.fold;
      run_collective(Collective::all_reduce, ranks, 3, type, reduction, 0, kNoTouch);
      std::vector<int> want = c.want;
      if (type == ncclFloat8e5m2 && c.fold == Fold::sum) want[2] = 8;  // 9 rounds to even with two mantissa bits
      for (size_t r = 0; r < in.size(); r++)
        check(recv[r] == encode(want, type),
              std::string("AllReduce ") + c.name + " " + type_name(type) + " rank " + std::to_string(r));
    }
  }
}

static void test_average() {
  for (ncclDataType_t type : {ncclInt32, ncclUint8, ncclInt8, ncclFloat32, ncclFloat16, ncclBfloat16, ncclFloat64}) {
    auto a = encode({8, 3}, type), b = encode({4, 4}, type);
    std::vector<unsigned char> out_a(a.size()), out_b(b.size());
    Reduction reduction;
    uint64_t scalar = 0;
    if (type_is_integer(type)) reduction.divide = 2;
    else reduction.premultiply = true, scalar = reciprocal_bits(2, type);
    run_collective(Collective::all_reduce, {{a.data(), out_a.data(), scalar}, {b.data(), out_b.data(), scalar}}, 1,
                   type, reduction, 0, kNoTouch);
    auto want = encode({6, 0}, type);
    check(!std::memcmp(out_a.data(), want.data(), type_size(type)), std::string("average of ") + type_name(type));
  }
  int8_t x = -7, y = 0, out = 0;
  Reduction reduction;
  reduction.divide = 2;
  reduce_elements(&out, {{&x, 0}, {&y, 0}}, 1, ncclInt8, reduction);
  check(out == -3, "integer average truncates towards zero");
}

// Every rank's block b of buffer s holds 100*rank + b.
static void test_moves() {
  for (int n = 2; n <= 4; n++) {
    std::vector<std::vector<int>> send(n, std::vector<int>(n)), recv(n, std::vector<int>(n, -1));
    auto buffers = [&] {
      std::vector<Buffers> out;
      for (int r = 0; r < n; r++) {
        for (int b = 0; b < n; b++) send[r][b] = 100 * r + b, recv[r][b] = -1;
        out.push_back({send[r].data(), recv[r].data(), 0});
      }
      return out;
    };
    const Reduction sum;
    auto run = [&](Collective kind, int root) { run_collective(kind, buffers(), 1, ncclInt32, sum, root, kNoTouch); };
    const int root = n - 1;
    run(Collective::all_gather, 0);
    for (int r = 0; r < n; r++)
      for (int b = 0; b < n; b++) check(recv[r][b] == 100 * b, "AllGather");
    run(Collective::all_to_all, 0);
    for (int r = 0; r < n; r++)
      for (int b = 0; b < n; b++) check(recv[r][b] == 100 * b + r, "AlltoAll");
    run(Collective::reduce_scatter, 0);
    for (int r = 0; r < n; r++) check(recv[r][0] == 100 * n * (n - 1) / 2 + n * r && recv[r][1] == -1, "ReduceScatter");
    run(Collective::broadcast, root);
    for (int r = 0; r < n; r++) check(recv[r][0] == 100 * root, "Broadcast");
    run(Collective::reduce, root);
    for (int r = 0; r < n; r++) check(recv[r][0] == (r == root ? 100 * n * (n - 1) / 2 : -1), "Reduce");
    run(Collective::gather, root);
    for (int r = 0; r < n; r++)
      for (int b = 0; b < n; b++) check(recv[r][b] == (r == root ? 100 * b : -1), "Gather");
    run(Collective::scatter, root);
    for (int r = 0; r < n; r++) check(recv[r][0] == 100 * root + r && recv[r][1] == -1, "Scatter");
  }
}

static void test_in_place() {
  int buffer[3][6];
  std::vector<Buffers> gather, scatter, whole;
  auto fill = [&] {
    for (int r = 0; r < 3; r++)
      for (int i = 0; i < 6; i++) buffer[r][i] = 10 * r + i;
  };
  for (int r = 0; r < 3; r++) {
    gather.push_back({buffer[r] + 2 * r, buffer[r], 0});
    scatter.push_back({buffer[r], buffer[r] + 2 * r, 0});
    whole.push_back({buffer[r], buffer[r], 0});
  }
  const Reduction sum;
  fill();
  run_collective(Collective::all_gather, gather, 2, ncclInt32, sum, 0, kNoTouch);
  for (int r = 0; r < 3; r++)
    for (int i = 0; i < 6; i++) check(buffer[r][i] == 10 * (i / 2) + i, "AllGather in place");
  fill();
  run_collective(Collective::reduce_scatter, scatter, 2, ncclInt32, sum, 0, kNoTouch);
  for (int r = 0; r < 3; r++)
    for (int i = 0; i < 2; i++) check(buffer[r][2 * r + i] == 30 + 3 * (2 * r + i), "ReduceScatter in place");
  fill();
  run_collective(Collective::all_reduce, whole, 6, ncclInt32, sum, 0, kNoTouch);
  for (int r = 0; r < 3; r++)
    for (int i = 0; i < 6; i++) check(buffer[r][i] == 30 + 3 * i, "AllReduce in place");
}

static void test_descriptors() {
  std::string why;
  ncclGinProxyGfd_t gfd{};
  check(!gfd_complete(gfd), "an empty descriptor is incomplete");
  for (int i = 0; i < ncclGinProxyGfdQwords; i++) gfd.qword[i].flag.v = 1;
  check(gfd_complete(gfd), "a descriptor with all flags is complete");
  gfd.qword[ncclGinProxyGfdHeader].header.version = 1;
  check(!decode_gfd(gfd, &why) && why.find("version 1") != std::string::npos, "a foreign version is refused");
  gfd.qword[ncclGinProxyGfdHeader].header.version = NCCL_GIN_PROXY_GFD_VERSION;
  check(!decode_gfd(gfd, &why), "no operation is refused");
  gfd.qword[ncclGinProxyGfdHeader].header.size = 8;
  gfd.qword[ncclGinProxyGfdHeaderExt].headerExt.op =
      ncclGinProxyOpPut | ncclGinProxyOpWithInline | ncclGinProxyOpWithSignalAdd | ncclGinProxyOpWithCounter;
  gfd.qword[1].inlineLow.inlineValLow = 0x55667788;
  gfd.qword[1].inlineLow.inlineValLow2 = 0x3344;
  gfd.qword[2].inlineHigh.inlineValHigh = 0x1122;
  gfd.qword[3].dstOff.dstOff = 40;
  gfd.qword[4].dstHandle.dstHandle = 4096;
  gfd.qword[5].completion.counterId = 5;
  gfd.qword[5].completion.signalId = 7;
  gfd.qword[5].completion.signalValLow = 0xcdef;
  gfd.qword[6].signalVal.signalValLow2 = 0x89ab;
  gfd.qword[6].signalVal.signalValHigh = 0x01234567;
  gfd.qword[6].signalVal.isStrongSignal = 1;
  auto r = decode_gfd(gfd, &why);
  check(r && r->kind == RequestKind::put_value && r->inline_value == 0x1122334455667788ull && r->bytes == 8 &&
            r->target_offset == 40 && r->target_window == 4096 && r->has_counter && r->counter_id == 5 &&
            r->has_signal && r->signal_id == 7 && r->signal_add == 0x0123456789abcdefull && r->strong,
        "putValue with counter and strong add");
}

static void test_resources() {
  const TeamShape shape{1, 4, 1, 2, NCCL_GIN_CONNECTION_FULL};
  ncclDevCommRequirements reqs = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
  check(check_requirements(reqs, shape).code == ncclSuccess, "defaults are accepted");
  auto code = [&](auto change) {
    ncclDevCommRequirements copy = reqs;
    change(copy);
    return check_requirements(copy, shape).code;
  };
  using R = ncclDevCommRequirements;
  check(code([](R& r) { r.magic = 0; }) == ncclInvalidUsage, "no initializer");
  check(code([](R& r) { r.ginSignalCount = 1; }) == ncclInvalidArgument, "signals without connection");
  check(code([](R& r) { r.barrierCount = 1; }) == ncclInvalidArgument, "hybrid barrier without connection");
  check(code([](R& r) { r.worldGinBarrierCount = 1, r.ginConnectionType = NCCL_GIN_CONNECTION_RAIL; }) ==
            ncclInvalidArgument, "world barrier on rails");
  check(code([](R& r) { r.lsaMultimem = true; }) == ncclInvalidArgument, "multimem");
  check(code([](R& r) { r.ginQueueDepth = 8, r.ginConnectionType = NCCL_GIN_CONNECTION_FULL; }) ==
            ncclInvalidArgument, "queue depth on the proxy");
  check(code([](R& r) { r.ginConnectionType = NCCL_GIN_CONNECTION_CUSTOM_STRIDE, r.ginCustomStride = 3; }) ==
            ncclInvalidArgument, "stride that does not divide");
  const TeamShape no_gin{0, 2, 0, 2, NCCL_GIN_CONNECTION_NONE};
  reqs.ginConnectionType = NCCL_GIN_CONNECTION_FULL;
  check(check_requirements(reqs, no_gin).code == ncclInvalidArgument, "GIN where there is no network");

  reqs.ginSignalCount = 3, reqs.ginCounterCount = 2, reqs.barrierCount = 5, reqs.lsaBarrierCount = 7;
  reqs.worldGinBarrierCount = 1, reqs.railGinBarrierCount = 2, reqs.ginContextCount = 2;
  ncclDevResourceRequirements own{};
  ncclDevResourceHandle_t handle = 99;
  ncclGinSignal_t first_signal = 99;
  ncclGinCounter_t first_counter = 99;
  own.bufferSize = 1000, own.bufferAlign = 256, own.ginSignalCount = 4, own.ginCounterCount = 1;
  own.outBufferHandle = &handle, own.outGinSignalStart = &first_signal, own.outGinCounterStart = &first_counter;
  reqs.resourceRequirementsList = &own;
  ncclDevComm comm{};
  const ResourcePlan plan = plan_resources(reqs, shape, &comm);
  check(plan.contexts == 2 && plan.context_stride == 1 && plan.counters == 3, "contexts and counters");
  // 3 user + 4 world + 2*2 rail + 5*4 dense + 5*2 hybrid rail + 4 of the list
  check(plan.signals == 3 + 4 + 4 + 20 + 10 + 4, "signals");
  check(first_signal == 41 && first_counter == 2, "list signals come after barriers");
  check(comm.worldGinBarrier.signal0 == 3 && comm.railGinBarrier.signal0 == 7, "barrier signals");
  check(comm.lsaBarrier.nBarriers == 7 && handle * 128 % 256 == 0, "alignment of a list buffer");
  check(plan.shadow_offset % 128 == 0 && plan.buffer_bytes == plan.shadow_offset + 2u * 45 * 8, "shadows");
}

static void test_config() {
  CommConfig out;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  check(read_config(nullptr, &out).empty() && read_config(&config, &out).empty() && out.blocking, "defaults");
  config.blocking = 0;
  check(read_config(&config, &out).empty() && !out.blocking, "non-blocking");
  config.blocking = 2;
  check(!read_config(&config, &out).empty(), "blocking 2");
  config.blocking = 1, config.minCTAs = 8, config.maxCTAs = 4;
  check(!read_config(&config, &out).empty(), "min above max");
  ncclConfig_t zero{};
  zero.size = sizeof zero;
  check(!read_config(&zero, &out).empty(), "no initializer");
}

int main() {
  test_all_reduce_types();
  test_average();
  test_moves();
  test_in_place();
  test_descriptors();
  test_resources();
  test_config();
  std::printf("%d checks, %d failures\n", checks, failures);
  return failures != 0;
}

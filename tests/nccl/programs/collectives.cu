// Every collective, every data type, every reduction, in place and not, messages and groups, on any number of ranks.
#include "check.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

static int rank, ranks;
static ncclComm_t comm;
static cudaStream_t stream;

// Small integers as elements of any NCCL type.
struct Typed {
  ncclDataType_t type;
  size_t size;
  std::vector<unsigned char> encode(const std::vector<int>& values) const {
    std::vector<unsigned char> out(values.size() * size);
    for (size_t i = 0; i < values.size(); i++) put(out.data() + i * size, values[i]);
    return out;
  }
  void put(unsigned char* p, int v) const {
    const float f = static_cast<float>(v);
    switch (type) {
      case ncclInt8: case ncclUint8: *p = static_cast<unsigned char>(v); break;
      case ncclInt32: case ncclUint32: std::memcpy(p, &v, 4); break;
      case ncclInt64: case ncclUint64: { long long l = v; std::memcpy(p, &l, 8); break; }
      case ncclFloat16: { __half h = __float2half(f); std::memcpy(p, &h, 2); break; }
      case ncclBfloat16: { __nv_bfloat16 h = __float2bfloat16(f); std::memcpy(p, &h, 2); break; }
      case ncclFloat32: std::memcpy(p, &f, 4); break;
      case ncclFloat64: { double d = v; std::memcpy(p, &d, 8); break; }
      case ncclFloat8e4m3: *p = __nv_cvt_float_to_fp8(f, __NV_SATFINITE, __NV_E4M3); break;
      case ncclFloat8e5m2: *p = __nv_cvt_float_to_fp8(f, __NV_SATFINITE, __NV_E5M2); break;
      default: break;
    }
  }
};
static const Typed kTypes[] = {{ncclInt8, 1},    {ncclUint8, 1},   {ncclInt32, 4},    {ncclUint32, 4},
                               {ncclInt64, 8},   {ncclUint64, 8},  {ncclFloat16, 2},  {ncclFloat32, 4},
                               {ncclFloat64, 8}, {ncclBfloat16, 2}, {ncclFloat8e4m3, 1}, {ncclFloat8e5m2, 1}};

constexpr int kCount = 3;

// Element i of block b of rank r's data: one of 1..4, so that sums of four stay exact in every type but e5m2.
static int datum(int r, int b, int i) { return 1 + (r + 2 * b + i) % 4; }

static std::vector<int> data_of(int r, int blocks) {
  std::vector<int> out;
  for (int b = 0; b < blocks; b++)
    for (int i = 0; i < kCount; i++) out.push_back(datum(r, b, i));
  return out;
}

static void compare(const Typed& t, const unsigned char* memory, const std::vector<int>& want, const char* what) {
  const auto got = host_array(memory, want.size() * t.size);
  CHECK(got == t.encode(want), "%s of type %d on rank %d of %d", what, t.type, rank, ranks);
}

static int fold(ncclRedOp_t op, int block, int i) {
  int total = datum(0, block, i);
  for (int r = 1; r < ranks; r++) {
    const int v = datum(r, block, i);
    total = op == ncclSum ? total + v : op == ncclProd ? total * v : op == ncclMax ? max(total, v) : min(total, v);
  }
  return total;
}

static void moves(const Typed& t) {
  const size_t block = kCount * t.size;
  unsigned char* send = device_array(t.encode(data_of(rank, ranks)));
  unsigned char* recv = device_array(std::vector<unsigned char>(block * ranks, 99));
  const int root = ranks - 1;
  std::vector<int> want;

  NCCL(ncclAllGather(send, recv, kCount, t.type, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  for (int r = 0; r < ranks; r++)
    for (int i = 0; i < kCount; i++) want.push_back(datum(r, 0, i));
  compare(t, recv, want, "AllGather");

  NCCL(ncclAlltoAll(send, recv, kCount, t.type, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  want.clear();
  for (int r = 0; r < ranks; r++)
    for (int i = 0; i < kCount; i++) want.push_back(datum(r, rank, i));
  compare(t, recv, want, "AlltoAll");

  NCCL(ncclBroadcast(send, recv, kCount, t.type, root, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  want.clear();
  for (int i = 0; i < kCount; i++) want.push_back(datum(root, 0, i));
  compare(t, recv, want, "Broadcast");

  CUDA(cudaMemsetAsync(recv, 0, block * ranks, stream));
  NCCL(ncclGather(send, recv, kCount, t.type, root, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  want.clear();
  for (int r = 0; r < ranks; r++)
    for (int i = 0; i < kCount; i++) want.push_back(rank == root ? datum(r, 0, i) : 0);
  compare(t, recv, want, "Gather");

  NCCL(ncclScatter(send, recv, kCount, t.type, root, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  want.clear();
  for (int i = 0; i < kCount; i++) want.push_back(datum(root, rank, i));
  compare(t, recv, want, "Scatter");

  NCCL(ncclGroupStart());
  NCCL(ncclSend(send, kCount, t.type, (rank + 1) % ranks, comm, stream));
  NCCL(ncclRecv(recv, kCount, t.type, (rank + ranks - 1) % ranks, comm, stream));
  NCCL(ncclGroupEnd());
  CUDA(cudaStreamSynchronize(stream));
  want.clear();
  for (int i = 0; i < kCount; i++) want.push_back(datum((rank + ranks - 1) % ranks, 0, i));
  compare(t, recv, want, "Send and Recv around a ring");
  NCCL(ncclMemFree(send));
  NCCL(ncclMemFree(recv));
}

static void reductions(const Typed& t) {
  unsigned char* send = device_array(t.encode(data_of(rank, ranks)));
  unsigned char* recv = device_array(std::vector<unsigned char>(kCount * t.size * ranks, 0));
  const int root = ranks - 1;
  for (ncclRedOp_t op : {ncclSum, ncclProd, ncclMax, ncclMin}) {
    if (t.type == ncclFloat8e5m2 && (op == ncclSum || op == ncclProd)) continue;  // two mantissa bits: sums round
    if (ranks > 3 && op == ncclProd && t.size == 1) continue;                     // 4^4 does not fit
    std::vector<int> whole, part;
    for (int b = 0; b < ranks; b++)
      for (int i = 0; i < kCount; i++) whole.push_back(fold(op, b, i));
    for (int i = 0; i < kCount; i++) part.push_back(fold(op, rank, i));

    NCCL(ncclAllReduce(send, recv, kCount * ranks, t.type, op, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    compare(t, recv, whole, "AllReduce");

    NCCL(ncclReduceScatter(send, recv, kCount, t.type, op, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    compare(t, recv, part, "ReduceScatter");

    NCCL(ncclReduce(send, recv, kCount * ranks, t.type, op, root, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    if (rank == root) compare(t, recv, whole, "Reduce");
  }
  NCCL(ncclMemFree(send));
  NCCL(ncclMemFree(recv));
}

static void averages() {
  float* f = device_array(std::vector<float>{static_cast<float>(rank), 1.0f});
  int* n = device_array(std::vector<int>{rank + 1, -7 * (rank == 0)});
  NCCL(ncclAllReduce(f, f, 2, ncclFloat, ncclAvg, comm, stream));
  NCCL(ncclAllReduce(n, n, 2, ncclInt, ncclAvg, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  const auto got = host_array(f, 2);
  const float want = (ranks - 1) / 2.0f;
  CHECK(got[0] > want - 1e-5f && got[0] < want + 1e-5f, "average %f", got[0]);
  const auto whole = host_array(n, 2);
  CHECK(whole[0] == ranks * (ranks + 1) / 2 / ranks, "integer average %d", whole[0]);
  CHECK(whole[1] == -7 / ranks, "negative integer average %d", whole[1]);

  ncclRedOp_t scaled, from_device;
  float two = 2.0f;
  float* three = device_array(std::vector<float>{3.0f});
  NCCL(ncclRedOpCreatePreMulSum(&scaled, &two, ncclFloat, ncclScalarHostImmediate, comm));
  NCCL(ncclRedOpCreatePreMulSum(&from_device, three, ncclFloat, ncclScalarDevice, comm));
  float* x = device_array(std::vector<float>{1.0f + rank});
  float* y = device_array(std::vector<float>{0});
  NCCL(ncclAllReduce(x, y, 1, ncclFloat, scaled, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  CHECK(host_array(y, 1)[0] == ranks * (ranks + 1), "PreMulSum");
  NCCL(ncclAllReduce(x, y, 1, ncclFloat, from_device, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  CHECK(host_array(y, 1)[0] == 1.5f * ranks * (ranks + 1), "PreMulSum with a scalar on the device");
  EXPECT(ncclInvalidArgument, ncclAllReduce(x, y, 1, ncclInt, scaled, comm, stream));
  NCCL(ncclRedOpDestroy(scaled, comm));
  EXPECT(ncclInvalidArgument, ncclAllReduce(x, y, 1, ncclFloat, scaled, comm, stream));
  EXPECT(ncclInvalidArgument, ncclRedOpDestroy(scaled, comm));
  NCCL(ncclRedOpDestroy(from_device, comm));
}

static void in_place() {
  std::vector<int> fill(kCount * ranks);
  for (int i = 0; i < kCount * ranks; i++) fill[i] = 10 * rank + i;
  int* buffer = device_array(fill);
  NCCL(ncclAllGather(buffer + kCount * rank, buffer, kCount, ncclInt, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  auto got = host_array(buffer, fill.size());
  for (int i = 0; i < kCount * ranks; i++) CHECK(got[i] == 10 * (i / kCount) + i, "AllGather in place");
  CUDA(cudaMemcpy(buffer, fill.data(), fill.size() * 4, cudaMemcpyHostToDevice));
  NCCL(ncclReduceScatter(buffer, buffer + kCount * rank, kCount, ncclInt, ncclSum, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  got = host_array(buffer, fill.size());
  for (int i = kCount * rank; i < kCount * (rank + 1); i++)
    CHECK(got[i] == 10 * ranks * (ranks - 1) / 2 + ranks * i, "ReduceScatter in place");
  CUDA(cudaMemcpy(buffer, fill.data(), fill.size() * 4, cudaMemcpyHostToDevice));
  NCCL(ncclAllReduce(buffer, buffer, fill.size(), ncclInt, ncclSum, comm, stream));
  NCCL(ncclBcast(buffer, 1, ncclInt, 0, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  got = host_array(buffer, fill.size());
  for (int i = 0; i < kCount * ranks; i++) CHECK(got[i] == 10 * ranks * (ranks - 1) / 2 + ranks * i, "AllReduce in place");
}

// Grouped all-to-all by messages, two streams in one group, nested groups, messages to oneself, empty work.
static void groups() {
  std::vector<int> out(ranks), in(ranks, -1);
  for (int r = 0; r < ranks; r++) out[r] = 100 * rank + r;
  int* send = device_array(out);
  int* recv = device_array(in);
  NCCL(ncclGroupStart());
  for (int r = 0; r < ranks; r++) {
    NCCL(ncclGroupStart());
    NCCL(ncclRecv(recv + r, 1, ncclInt, r, comm, stream));
    NCCL(ncclSend(send + r, 1, ncclInt, r, comm, stream));
    NCCL(ncclGroupEnd());
  }
  CHECK(cudaStreamQuery(stream) == cudaSuccess, "nothing starts before the outer group ends");
  NCCL(ncclGroupEnd());
  CUDA(cudaStreamSynchronize(stream));
  const auto got = host_array(recv, ranks);
  for (int r = 0; r < ranks; r++) CHECK(got[r] == 100 * r + rank, "all-to-all of messages");

  cudaStream_t second;
  CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  NCCL(ncclGroupStart());
  NCCL(ncclAllReduce(send, send, ranks, ncclInt, ncclMax, comm, stream));
  NCCL(ncclBroadcast(recv, recv, ranks, ncclInt, 0, comm, second));
  NCCL(ncclGroupEnd());
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaStreamSynchronize(second));
  CHECK(host_array(send, 1)[0] == 100 * (ranks - 1), "AllReduce in a group of two streams");
  CHECK(host_array(recv, 1)[0] == 0, "Broadcast in a group of two streams");
  NCCL(ncclAllReduce(nullptr, nullptr, 0, ncclInt, ncclSum, comm, stream));
  EXPECT(ncclInvalidUsage, ncclSend(send, 1, ncclInt, rank, comm, stream));
  EXPECT(ncclInvalidUsage, ncclRecv(recv, 1, ncclInt, rank, comm, stream));
  CUDA(cudaStreamDestroy(second));
}

static void one_sided() {
  int* window_memory = device_array(std::vector<int>(ranks, -1));
  int* source = device_array(std::vector<int>{1000 + rank});
  ncclWindow_t window;
  NCCL(ncclCommWindowRegister(comm, window_memory, ranks * sizeof(int), &window, NCCL_WIN_DEFAULT));
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  for (int step = 0; step < 3; step++) {
    NCCL(ncclPutSignal(source, 1, ncclInt, next, window, rank * sizeof(int), 0, 0, 0, comm, stream));
    ncclWaitSignalDesc_t wait = {1, previous, 0, 0};
    NCCL(ncclWaitSignal(1, &wait, comm, stream));
  }
  NCCL(ncclSignal(next, 1, 0, 0, comm, stream));
  ncclWaitSignalDesc_t last = {1, previous, 1, 0};
  NCCL(ncclWaitSignal(1, &last, comm, stream));
  CUDA(cudaStreamSynchronize(stream));
  CHECK(host_array(window_memory, ranks)[previous] == 1000 + previous, "PutSignal");
  EXPECT(ncclInvalidArgument, ncclSignal(ranks, 0, 0, 0, comm, stream));
  EXPECT(ncclInvalidArgument, ncclSignal(0, -1, 0, 0, comm, stream));
  EXPECT(ncclInvalidArgument, ncclSignal(0, 0, 1, 0, comm, stream));
  EXPECT(ncclInvalidArgument, ncclSignal(0, 0, 0, 1, comm, stream));
  EXPECT(ncclInvalidArgument, ncclPutSignal(source, 1, ncclInt, next, nullptr, 0, 0, 0, 0, comm, stream));
  NCCL(ncclCommWindowDeregister(comm, window));
}

extern "C" int rank_main(int rank_, int ranks_, ncclUniqueId id) {
  rank = rank_, ranks = ranks_;
  NCCL(ncclCommInitRank(&comm, ranks, id, rank));
  CUDA(cudaStreamCreate(&stream));
  for (const Typed& t : kTypes) {
    moves(t);
    reductions(t);
  }
  averages();
  in_place();
  groups();
  one_sided();
  NCCL(ncclCommFinalize(comm));
  NCCL(ncclCommDestroy(comm));
  return failures;
}

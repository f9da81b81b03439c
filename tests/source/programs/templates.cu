// NCCL calls in templates, methods, lambdas, function tables and members, and a recursion over a template parameter.
#include <cuda_runtime.h>
#include <nccl.h>
#include <utility>

template <class Call, class... Arguments> ncclResult_t in_group(Call call, Arguments &&...arguments) {
  ncclGroupStart();
  ncclResult_t status = call(std::forward<Arguments>(arguments)...);
  ncclGroupEnd();
  return status;
}

template <class T> struct TypeOf;
template <> struct TypeOf<float> { static constexpr ncclDataType_t value = ncclFloat; };
template <> struct TypeOf<double> { static constexpr ncclDataType_t value = ncclDouble; };

struct Channel {
  ncclComm_t comm;
  cudaStream_t stream;
  decltype(&ncclBroadcast) broadcast = &ncclBroadcast;
  template <class T> void collect(const T *in, T *out, size_t count) {
    ncclAllGather(in, out, count, TypeOf<T>::value, comm, stream);
  }
  void announce(float *data, size_t count, int root) { broadcast(data, data, count, ncclFloat, root, comm, stream); }
};

using Reduction = ncclResult_t (*)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t);
static const Reduction kReductions[] = {ncclAllReduce, ncclReduceScatter};

template <int Hops> struct Chain {
  static void run(Channel &c, float *data, size_t count, int next) {
    if constexpr (Hops > 0) {
      ncclSend(data, count, ncclFloat, next, c.comm, c.stream);
      Chain<Hops - 1>::run(c, data, count, next);
    }
  }
};

void program(Channel &c, float *x, double *wide, float *y, size_t n, int next) {
  c.collect(x, y, n);
  c.collect(wide, wide, 2 * n);
  kReductions[1](x, y, n, ncclFloat, ncclMax, c.comm, c.stream);
  in_group(ncclAllReduce, x, y, n, ncclFloat, ncclSum, c.comm, c.stream);
  auto move = [&](auto call, float *buffer, int peer) { return call(buffer, n, ncclFloat, peer, c.comm, c.stream); };
  move(&ncclSend, x, next);
  move([](auto... all) { return ncclRecv(all...); }, y, next);
  Chain<2>::run(c, x, n, next);
  c.announce(y, n, 3);
}

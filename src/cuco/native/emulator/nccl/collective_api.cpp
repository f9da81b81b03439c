// Collectives, messages, one-sided operations and reduction operators of the host API: argument checks in NCCL's order
// and with its codes, then a task for the engine.
#include "bridge.h"
#include "engine.h"
#include "errors.h"
#include "group.h"
#include "windows.h"

#include <cstring>

using namespace cuco::nccl;

namespace {

// What every collective call passes; fields that a call lacks keep their defaults.
struct Call {
  Collective kind;
  const void* send = nullptr;
  void* recv = nullptr;
  size_t count = 0;
  ncclDataType_t type = ncclInt8;
  ncclRedOp_t op = ncclSum;
  int root = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  const ncclCollConfig_t* config = nullptr;
};

UserReduction* find_user(ncclComm& comm, ncclRedOp_t op) {
  const int index = static_cast<int>(op) - ncclNumOps;
  if (index < 0 || index >= static_cast<int>(comm.reductions.size())) return nullptr;
  UserReduction& user = comm.reductions[static_cast<size_t>(index)];
  return user.live ? &user : nullptr;
}

ncclResult_t check_arguments(const Call& call, const char* name) {
  ncclComm& comm = *call.comm;
  if (call.root < 0 || call.root >= comm.ranks)
    return reject(ncclInvalidArgument, "%s : invalid root %d (root should be in the 0..%d range)", name, call.root,
                  comm.ranks);
  if (call.type < 0 || call.type >= ncclNumTypes)
    return reject(ncclInvalidArgument, "%s : invalid type %d", name, static_cast<int>(call.type));
  if (static_cast<int>(call.op) < 0)
    return reject(ncclInvalidArgument, "%s : invalid reduction operation %d", name, static_cast<int>(call.op));
  if (call.op >= ncclNumOps && !find_user(comm, call.op))
    return reject(ncclInvalidArgument, "%s : reduction operation %d unknown to this communicator", name,
                  static_cast<int>(call.op));
  if (std::string wrong = check_call_config(call.config, comm.config); !wrong.empty())
    return reject(ncclInvalidArgument, "%s : %s", name, wrong.c_str());
  return ncclSuccess;
}

ncclResult_t check_stream(cudaStream_t stream, const char* name) {
  return cuco::cuda::find_stream(stream) ? ncclSuccess
                                   : reject(ncclUnhandledCudaError, "%s : Cuda failure 'invalid resource handle'", name);
}

// A handle's meaning for a data type; integer averages divide at the end, float averages scale first.
ncclResult_t resolve(const Call& call, Reduction* out, uint64_t* scalar) {
  Reduction reduction;
  switch (static_cast<int>(call.op)) {
    case ncclSum: break;
    case ncclProd: reduction.fold = Fold::prod; break;
    case ncclMax: reduction.fold = Fold::max; break;
    case ncclMin: reduction.fold = Fold::min; break;
    case ncclAvg:
      if (type_is_integer(call.type)) reduction.divide = call.comm->ranks;
      else reduction.premultiply = true, *scalar = reciprocal_bits(call.comm->ranks, call.type);
      break;
    default: {
      const UserReduction& user = *find_user(*call.comm, call.op);
      if (user.type != call.type)
        return reject(ncclInvalidArgument, "Data type supplied to user-created ncclRedOp_t does not match type given to "
                                           "reduction operation");
      reduction = user.reduction;
      *scalar = reduction.scalar;
    }
  }
  *out = reduction;
  return ncclSuccess;
}

ncclResult_t enqueue(const Call& call) {
  const char* name = collective_name(call.kind);
  api_called(name);
  if (ncclResult_t bad = check_usable(call.comm, name)) return note_in_group(bad);
  if (ncclResult_t bad = check_arguments(call, name)) return note_in_group(bad);
  if (call.count == 0 && !is_point_to_point(call.kind)) return ncclSuccess;  // NCCL discards empty collectives
  if (ncclResult_t bad = check_stream(call.stream, name)) return note_in_group(bad);
  Task task;
  task.comm = call.comm;
  task.kind = call.kind;
  if (has_reduction(call.kind))
    if (ncclResult_t bad = resolve(call, &task.reduction, &task.buffers.scalar)) return note_in_group(bad);
  task.buffers.send = call.send;
  task.buffers.recv = call.recv;
  task.count = call.count;
  task.type = call.type;
  task.op = call.op;
  task.root = call.root;
  task.stream = call.stream;
  return add_to_launch(std::move(task));
}

// Arguments of one-sided calls beyond the common ones.
ncclResult_t check_one_sided(const ncclComm& comm, int peer, int signal, int context, unsigned flags, const char* name) {
  if (peer < 0 || peer >= comm.ranks)
    return reject(ncclInvalidArgument, "%s : invalid root %d (root should be in the 0..%d range)", name, peer, comm.ranks);
  if (context < 0 || context >= comm.config.rma_contexts)
    return reject(ncclInvalidArgument, "Context %d is invalid (must be in [0, %d))", context, comm.config.rma_contexts);
  if (signal < 0 || signal >= comm.config.rma_signals)
    return reject(ncclInvalidArgument, "Signal index %d is invalid (must be in [0, %d))", signal, comm.config.rma_signals);
  if (flags != 0) return reject(ncclInvalidArgument, "Flags %u is invalid (must be 0)", flags);
  return ncclSuccess;
}

Task one_sided(Collective kind, ncclComm_t comm, int peer, int signal, int context, cudaStream_t stream) {
  Task task;
  task.kind = kind;
  task.comm = comm;
  task.root = peer;
  task.signal = signal;
  task.context = context;
  task.stream = stream;
  return task;
}

}  // namespace

extern "C" {

ncclResult_t ncclAllReduceConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                 ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return enqueue({Collective::all_reduce, sendbuff, recvbuff, count, datatype, op, 0, comm, stream, config});
}

ncclResult_t ncclReduceConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                              ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream,
                              const ncclCollConfig_t* config) {
  return enqueue({Collective::reduce, sendbuff, recvbuff, count, datatype, op, root, comm, stream, config});
}

ncclResult_t ncclReduceScatterConfig(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
                                     ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
                                     const ncclCollConfig_t* config) {
  return enqueue({Collective::reduce_scatter, sendbuff, recvbuff, recvcount, datatype, op, 0, comm, stream, config});
}

ncclResult_t ncclAllGatherConfig(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                                 ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return enqueue({Collective::all_gather, sendbuff, recvbuff, sendcount, datatype, ncclSum, 0, comm, stream, config});
}

ncclResult_t ncclBroadcastConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                                 ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return enqueue({Collective::broadcast, sendbuff, recvbuff, count, datatype, ncclSum, root, comm, stream, config});
}

ncclResult_t ncclAlltoAllConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                                ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return enqueue({Collective::all_to_all, sendbuff, recvbuff, count, datatype, ncclSum, 0, comm, stream, config});
}

ncclResult_t ncclGatherConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                              ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return enqueue({Collective::gather, sendbuff, recvbuff, count, datatype, ncclSum, root, comm, stream, config});
}

ncclResult_t ncclScatterConfig(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                               ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t* config) {
  return enqueue({Collective::scatter, sendbuff, recvbuff, count, datatype, ncclSum, root, comm, stream, config});
}

ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return ncclAllReduceConfig(sendbuff, recvbuff, count, datatype, op, comm, stream, nullptr);
}

ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return ncclReduceConfig(sendbuff, recvbuff, count, datatype, op, root, comm, stream, nullptr);
}

ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return ncclReduceScatterConfig(sendbuff, recvbuff, recvcount, datatype, op, comm, stream, nullptr);
}

ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream) {
  return ncclAllGatherConfig(sendbuff, recvbuff, sendcount, datatype, comm, stream, nullptr);
}

ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return ncclBroadcastConfig(sendbuff, recvbuff, count, datatype, root, comm, stream, nullptr);
}

ncclResult_t ncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return ncclBroadcastConfig(buff, buff, count, datatype, root, comm, stream, nullptr);
}

ncclResult_t ncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
                          cudaStream_t stream) {
  return ncclAlltoAllConfig(sendbuff, recvbuff, count, datatype, comm, stream, nullptr);
}

ncclResult_t ncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return ncclGatherConfig(sendbuff, recvbuff, count, datatype, root, comm, stream, nullptr);
}

ncclResult_t ncclScatter(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                         ncclComm_t comm, cudaStream_t stream) {
  return ncclScatterConfig(sendbuff, recvbuff, count, datatype, root, comm, stream, nullptr);
}

ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return enqueue({Collective::send, sendbuff, nullptr, count, datatype, ncclSum, peer, comm, stream, nullptr});
}

ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return enqueue({Collective::recv, nullptr, recvbuff, count, datatype, ncclSum, peer, comm, stream, nullptr});
}

ncclResult_t ncclPutSignal(const void* localbuff, size_t count, ncclDataType_t datatype, int peer, ncclWindow_t peerWin,
                           size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
                           cudaStream_t stream) {
  api_called("PutSignal");
  if (ncclResult_t bad = check_usable(comm, "PutSignal")) return note_in_group(bad);
  if (ncclResult_t bad = check_one_sided(*comm, peer, sigIdx, ctx, flags, "PutSignal")) return note_in_group(bad);
  if (type_size(datatype) == 0)
    return note_in_group(reject(ncclInvalidArgument, "PutSignal : invalid type %d", static_cast<int>(datatype)));
  if (!peerWin) return note_in_group(reject(ncclInvalidArgument, "ncclPutSignal: peerWin is NULL"));
  const Window* window = find_window(peerWin);
  if (!window || window->clique != comm->clique.get())
    return note_in_group(reject(ncclInvalidArgument, "ncclPutSignal requires a window registered for RMA"));
  if (count > 0 && !localbuff) return note_in_group(reject(ncclInvalidArgument, "ncclPutSignal: srcBuff is NULL"));
  if (count > 0 && !find_memory(localbuff).shareable)
    return note_in_group(reject(ncclInvalidArgument, "ncclPutSignal: srcWinHost is not in a valid symmetric window"));
  if (ncclResult_t bad = check_stream(stream, "PutSignal")) return note_in_group(bad);
  Task task = one_sided(Collective::put_signal, comm, peer, sigIdx, ctx, stream);
  task.buffers.send = localbuff;
  task.count = count;
  task.type = datatype;
  task.window = peerWin;
  task.window_offset = peerWinOffset;
  return add_to_launch(std::move(task));
}

ncclResult_t ncclSignal(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream) {
  api_called("Signal");
  if (ncclResult_t bad = check_usable(comm, "Signal")) return note_in_group(bad);
  if (ncclResult_t bad = check_one_sided(*comm, peer, sigIdx, ctx, flags, "Signal")) return note_in_group(bad);
  if (ncclResult_t bad = check_stream(stream, "Signal")) return note_in_group(bad);
  return add_to_launch(one_sided(Collective::signal, comm, peer, sigIdx, ctx, stream));
}

ncclResult_t ncclWaitSignal(int nDesc, ncclWaitSignalDesc_t* signalDescs, ncclComm_t comm, cudaStream_t stream) {
  api_called("WaitSignal");
  if (ncclResult_t bad = check_usable(comm, "WaitSignal")) return note_in_group(bad);
  if (nDesc < 0 || (nDesc > 0 && !signalDescs))
    return note_in_group(reject(ncclInvalidArgument, "WaitSignal : %d descriptors at %p", nDesc,
                                static_cast<void*>(signalDescs)));
  for (int i = 0; i < nDesc; i++) {
    const ncclWaitSignalDesc_t& want = signalDescs[i];
    if (ncclResult_t bad = check_one_sided(*comm, want.peer, want.sigIdx, want.ctx, 0, "WaitSignal")) return note_in_group(bad);
    if (want.opCnt < 0) return note_in_group(reject(ncclInvalidArgument, "WaitSignal : opCnt %d is negative", want.opCnt));
  }
  if (ncclResult_t bad = check_stream(stream, "WaitSignal")) return note_in_group(bad);
  Task task = one_sided(Collective::wait_signal, comm, 0, 0, 0, stream);
  task.waits.assign(signalDescs, signalDescs + nDesc);
  return add_to_launch(std::move(task));
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
  if (ncclResult_t bad = check_comm(comm, "ncclRedOpCreatePreMulSum")) return bad;
  if (ncclResult_t bad = check_pointer(op, "ncclRedOpCreatePreMulSum", "op")) return bad;
  if (ncclResult_t bad = check_pointer(scalar, "ncclRedOpCreatePreMulSum", "scalar")) return bad;
  const size_t bytes = type_size(datatype);
  if (bytes == 0) return reject(ncclInternalError, "ncclRedOpCreatePreMulSum : invalid type %d", static_cast<int>(datatype));
  UserReduction user;
  user.live = true;
  user.type = datatype;
  user.reduction.premultiply = true;
  if (residence == ncclScalarHostImmediate) std::memcpy(&user.reduction.scalar, scalar, bytes);
  else user.reduction.scalar_in_device = scalar;
  size_t index = 0;
  while (index < comm->reductions.size() && comm->reductions[index].live) index++;
  if (index == comm->reductions.size()) comm->reductions.emplace_back();
  comm->reductions[index] = user;
  *op = static_cast<ncclRedOp_t>(ncclNumOps + static_cast<int>(index));
  return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  if (static_cast<int>(op) >= 0 && op < ncclNumOps)
    return reject(ncclInvalidArgument, "ncclRedOpDestroy : operator is a NCCL builtin.");
  if (static_cast<int>(op) < 0) return reject(ncclInvalidArgument, "ncclRedOpDestroy :  operator is garbage.");
  if (!comm) return reject(ncclInvalidArgument, "ncclRedOpDestroy : invalid communicator passed.");
  UserReduction* user = find_user(*comm, op);
  if (!user) return reject(ncclInvalidArgument, "ncclRedOpDestroy : operator unknown to this communicator.");
  user->live = false;
  return ncclSuccess;
}

}  // extern "C"

CUCO_NCCL_PROFILED(ncclAllReduceConfig);
CUCO_NCCL_PROFILED(ncclReduceConfig);
CUCO_NCCL_PROFILED(ncclReduceScatterConfig);
CUCO_NCCL_PROFILED(ncclAllGatherConfig);
CUCO_NCCL_PROFILED(ncclBroadcastConfig);
CUCO_NCCL_PROFILED(ncclAlltoAllConfig);
CUCO_NCCL_PROFILED(ncclGatherConfig);
CUCO_NCCL_PROFILED(ncclScatterConfig);
CUCO_NCCL_PROFILED(ncclAllReduce);
CUCO_NCCL_PROFILED(ncclReduce);
CUCO_NCCL_PROFILED(ncclReduceScatter);
CUCO_NCCL_PROFILED(ncclAllGather);
CUCO_NCCL_PROFILED(ncclBroadcast);
CUCO_NCCL_PROFILED(ncclBcast);
CUCO_NCCL_PROFILED(ncclAlltoAll);
CUCO_NCCL_PROFILED(ncclGather);
CUCO_NCCL_PROFILED(ncclScatter);
CUCO_NCCL_PROFILED(ncclSend);
CUCO_NCCL_PROFILED(ncclRecv);
CUCO_NCCL_PROFILED(ncclPutSignal);
CUCO_NCCL_PROFILED(ncclSignal);
CUCO_NCCL_PROFILED(ncclWaitSignal);
CUCO_NCCL_PROFILED(ncclRedOpCreatePreMulSum);
CUCO_NCCL_PROFILED(ncclRedOpDestroy);

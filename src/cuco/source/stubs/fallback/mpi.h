// The part of MPI's interface that CUDA programs use, for reading them where MPI is not installed.
#pragma once
#ifdef __cplusplus
extern "C" {
#endif
typedef struct cuco_mpi_comm *MPI_Comm; typedef struct cuco_mpi_type *MPI_Datatype; typedef struct cuco_mpi_op *MPI_Op;
typedef struct cuco_mpi_request *MPI_Request; typedef struct { int MPI_SOURCE, MPI_TAG, MPI_ERROR; } MPI_Status; typedef struct cuco_mpi_info *MPI_Info;
extern MPI_Comm cuco_mpi_world; extern MPI_Datatype cuco_mpi_type; extern MPI_Op cuco_mpi_op;
#define MPI_COMM_WORLD cuco_mpi_world
#define MPI_COMM_SELF cuco_mpi_world
#define MPI_BYTE cuco_mpi_type
#define MPI_CHAR cuco_mpi_type
#define MPI_INT cuco_mpi_type
#define MPI_LONG cuco_mpi_type
#define MPI_UINT64_T cuco_mpi_type
#define MPI_FLOAT cuco_mpi_type
#define MPI_DOUBLE cuco_mpi_type
#define MPI_DATATYPE_NULL cuco_mpi_type
#define MPI_SUM cuco_mpi_op
#define MPI_MAX cuco_mpi_op
#define MPI_MIN cuco_mpi_op
#define MPI_LAND cuco_mpi_op
#define MPI_INFO_NULL ((MPI_Info)0)
#define MPI_IN_PLACE ((void *)1)
#define MPI_STATUS_IGNORE ((MPI_Status *)0)
#define MPI_STATUSES_IGNORE ((MPI_Status *)0)
#define MPI_SUCCESS 0
#define MPI_COMM_TYPE_SHARED 1
#define MPI_MAX_ERROR_STRING 256
#define MPI_MAX_PROCESSOR_NAME 256
#define MPI_THREAD_MULTIPLE 3
int MPI_Init(int *, char ***); int MPI_Init_thread(int *, char ***, int, int *); int MPI_Finalize(void); int MPI_Abort(MPI_Comm, int);
int MPI_Comm_rank(MPI_Comm, int *); int MPI_Comm_size(MPI_Comm, int *); int MPI_Comm_split(MPI_Comm, int, int, MPI_Comm *);
int MPI_Comm_split_type(MPI_Comm, int, int, MPI_Info, MPI_Comm *); int MPI_Comm_free(MPI_Comm *); int MPI_Barrier(MPI_Comm);
int MPI_Bcast(void *, int, MPI_Datatype, int, MPI_Comm); int MPI_Allgather(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
int MPI_Gather(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm); int MPI_Reduce(const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm);
int MPI_Allreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm); int MPI_Alltoall(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
int MPI_Send(const void *, int, MPI_Datatype, int, int, MPI_Comm); int MPI_Recv(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
int MPI_Isend(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *); int MPI_Irecv(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
int MPI_Wait(MPI_Request *, MPI_Status *); int MPI_Waitall(int, MPI_Request *, MPI_Status *); int MPI_Error_string(int, char *, int *);
int MPI_Get_processor_name(char *, int *); double MPI_Wtime(void);
#ifdef __cplusplus
}
#endif

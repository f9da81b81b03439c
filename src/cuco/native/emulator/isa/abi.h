// The contract between translated PTX (kernels .so) and the emulator core.
//
// Upper half: data that the core owns and translated code reads. Middle: functions the core implements and translated
// code calls. Lower half: the tables that a kernels .so exports through emu_module().
//
// Rules
// - Addresses are host virtual addresses ("generic"); a PTX shared address is a 32-bit offset from EmuBlock::shared and
//   is turned into a generic address before any call. 16-byte accesses that are aligned are single (never torn).
// - Everything here runs on fibers of one OS thread: nothing is atomic, everything is deterministic.
// - All memory that PTX calls weak is accessed directly. Only strong operations, atomics, asynchronous copies, remote
//   addresses (outside [arena_lo, arena_hi) of the own rank) and, in the hooks variant, every access reach the core.
// - A site is an index into EmuModule::sites; 0 is reserved for "no site".
// Bump EMU_ABI on every change of layout or meaning; the core refuses any other number.
#pragma once
#include <cstddef>
#include <cstdint>

#define EMU_ABI 3u

// ---------------------------------------------------------------------------------------------- threads and blocks
struct EmuBlock {                 // one per resident CTA; owned by the core; lives as long as the CTA
  uint32_t ntid[3], ctaid[3], nctaid[3];
  char* shared;                   // shared memory, 1024-byte aligned; static part first, then dynamic at dynamic_base
  uint32_t shared_bytes;          // static + padding + dynamic
  uint32_t dynamic_base;          // offset of dynamic shared memory: static_shared rounded up to EmuKernel::dynamic_align
  uint32_t dynamic_bytes;         // as given at launch
  uint32_t smid, nsmid, nwarps;
  uint64_t gridid;
  uint64_t grid_workspace;        // %envreg1:%envreg2 (high:low): cooperative groups' grid workspace, 0 if none
  uint64_t arena_lo, arena_hi;    // the own rank's memory; anything else global is remote
  const uint64_t* globals;        // address of every entry of EmuModule::globals, in this rank
  uint64_t* counters;             // [EmuModule::nblocks] executions per basic block, summed over the CTA's threads;
                                  // the core reads and clears it at the end of a phase
  uint64_t* dynamic_classes;      // [EmuModule::nclasses] amounts that are not static (bytes of bulk copies); as counters
  void* core;                     // the core's own
};

struct EmuThread {                // one per GPU thread; owned by the core; address stable until the thread ends
  uint32_t tid[3];
  uint32_t linear, lane, warp;    // linear = tid.x + ntid.x * (tid.y + ntid.y * tid.z); lane = linear & 31
  EmuBlock* block;
  uint64_t progress;              // sum of EmuModule::block_weight over executed basic blocks: position of events
  uint64_t fuel;                  // when progress passes fuel at a loop's back edge, emu_out_of_fuel is called
  void* core;
};

typedef void (*EmuEntry)(EmuThread*, const char* params);   // a kernel; returns when the thread ends

// ---------------------------------------------------------------------------------------------- modes of an access
enum EmuOrder : uint32_t { EMU_WEAK = 0, EMU_VOLATILE, EMU_RELAXED, EMU_ACQUIRE, EMU_RELEASE, EMU_ACQ_REL, EMU_SC, EMU_MMIO };
enum EmuScope : uint32_t { EMU_CTA = 0, EMU_CLUSTER, EMU_GPU, EMU_SYS };
enum EmuSpace : uint32_t { EMU_GENERIC = 0, EMU_GLOBAL, EMU_SHARED, EMU_LOCAL, EMU_CONST, EMU_PARAM };
// mode = order | scope << 8 | space << 16. Volatile has system scope. SPACE_GENERIC: the core decides by address.
#define EMU_MODE(order, scope, space) ((uint32_t)(order) | (uint32_t)(scope) << 8 | (uint32_t)(space) << 16)
#define EMU_MODE_ORDER(m) ((EmuOrder)((m) & 255))
#define EMU_MODE_SCOPE(m) ((EmuScope)((m) >> 8 & 255))
#define EMU_MODE_SPACE(m) ((EmuSpace)((m) >> 16 & 255))

enum EmuAtomOp : uint32_t { EMU_ADD = 0, EMU_MIN, EMU_MAX, EMU_INC, EMU_DEC, EMU_AND, EMU_OR, EMU_XOR, EMU_EXCH, EMU_CAS };
enum EmuType : uint32_t {
  EMU_B16 = 0, EMU_B32, EMU_B64, EMU_B128, EMU_U32, EMU_S32, EMU_U64, EMU_S64,
  EMU_F16, EMU_F16X2, EMU_BF16, EMU_BF16X2, EMU_F32, EMU_F64
};
enum EmuAccess : uint32_t { EMU_READ = 0, EMU_WRITE = 1, EMU_UPDATE = 2 };
enum EmuProxy : uint32_t { EMU_PROXY_ASYNC = 0, EMU_PROXY_ASYNC_GLOBAL, EMU_PROXY_ASYNC_SHARED, EMU_PROXY_ALIAS, EMU_PROXY_TENSORMAP };
enum EmuBarRed : uint32_t { EMU_RED_POPC = 0, EMU_RED_AND, EMU_RED_OR };
#define EMU_BAR_CLUSTER 16u       // barrier id used for barrier.cluster (cluster size 1); PTX ids are 0..15

// A warp-wide operation. args[l] is lane l's argument, valid where lanes has bit l set; called once, by whoever arrives
// last, and everything it leaves in the arguments is seen by the lanes when they resume.
typedef void (*EmuWarpFn)(void* const args[32], uint32_t lanes);

extern "C" {
// ---------------------------------------------------------------------------------------------- strong memory
// size 1, 2, 4, 8 or 16, aligned. Blocks the fiber on a re-poll (see the core's documentation of sync words).
void emu_ld(EmuThread*, uint64_t addr, void* out, uint32_t size, uint32_t mode, uint32_t site);
// A store of order EMU_WEAK arrives here for st.wt only: plain, but somebody outside the GPU may be watching the memory.
void emu_st(EmuThread*, uint64_t addr, const void* value, uint32_t size, uint32_t mode, uint32_t site);
// old == nullptr: red (nothing is read). compare only for EMU_CAS. The arithmetic is emu_atomic_apply of atomics.h.
void emu_atom(EmuThread*, uint64_t addr, void* old, const void* operand, const void* compare, EmuAtomOp, EmuType,
              uint32_t mode, uint32_t site);
void emu_fence(EmuThread*, EmuOrder, EmuScope, uint32_t site);              // fence, membar (= sc)
void emu_fence_proxy(EmuThread*, EmuProxy, uint32_t site);

// ---------------------------------------------------------------------------------------------- barriers and warps
// count 0: all threads of the CTA. bar.red returns the popcount, or 0/1.
void emu_bar_sync(EmuThread*, uint32_t id, uint32_t count, uint32_t site);
void emu_bar_arrive(EmuThread*, uint32_t id, uint32_t count, uint32_t site);
uint32_t emu_bar_red(EmuThread*, uint32_t id, uint32_t count, EmuBarRed, uint32_t predicate, uint32_t site);
// Rendezvous of the lanes in mask that have not exited; fn == nullptr is __syncwarp (also orders memory among them).
// Different fn for one mask, or a caller outside its mask, is an error that names the site.
void emu_warp_call(EmuThread*, EmuWarpFn fn, void* arg, uint32_t mask, uint32_t site);
uint32_t emu_activemask(EmuThread*);

// ---------------------------------------------------------------------------------------------- mbarrier (shared)
// Token of an arrival: phase number << 32 | pending count before the arrival.
void emu_mbar_init(EmuThread*, uint64_t addr, uint32_t count, uint32_t site);
void emu_mbar_inval(EmuThread*, uint64_t addr, uint32_t site);
uint64_t emu_mbar_arrive(EmuThread*, uint64_t addr, uint32_t count, uint32_t expect_tx, uint32_t drop, uint32_t mode, uint32_t site);
void emu_mbar_tx(EmuThread*, uint64_t addr, int64_t delta, uint32_t mode, uint32_t site);   // expect_tx > 0, complete_tx < 0
// by_parity: value is 0/1, else a token. may_block: try_wait (the core may suspend until the phase completes).
uint32_t emu_mbar_test(EmuThread*, uint64_t addr, uint64_t value, uint32_t by_parity, uint32_t may_block, uint32_t mode, uint32_t site);

// ---------------------------------------------------------------------------------------------- asynchronous copies
void emu_cp_async(EmuThread*, uint64_t dst, uint64_t src, uint32_t size, uint32_t src_size, uint32_t site);
void emu_cp_async_commit(EmuThread*, uint32_t site);
void emu_cp_async_wait(EmuThread*, uint32_t groups_left, uint32_t site);     // ~0u: wait_all (uncommitted ones too)
void emu_cp_async_mbar(EmuThread*, uint64_t mbar, uint32_t noinc, uint32_t site);
// mbar != 0: completes size bytes of transactions there; else part of the current bulk group.
void emu_cp_bulk(EmuThread*, uint64_t dst, uint64_t src, uint32_t size, uint64_t mbar, uint32_t site);
void emu_cp_reduce_bulk(EmuThread*, uint64_t dst, uint64_t src, uint32_t size, uint64_t mbar, EmuAtomOp, EmuType, uint32_t site);
void emu_cp_bulk_commit(EmuThread*, uint32_t site);
void emu_cp_bulk_wait(EmuThread*, uint32_t groups_left, uint32_t read_only, uint32_t site);

// ---------------------------------------------------------------------------------------------- everything else
uint32_t emu_isspace(EmuThread*, EmuSpace, uint64_t addr);
uint64_t emu_clock(EmuThread*, uint32_t site);                 // %clock64; the core may yield
uint64_t emu_globaltimer(EmuThread*, uint32_t site);           // nanoseconds
void emu_nanosleep(EmuThread*, uint32_t ns, uint32_t site);
int32_t emu_vprintf(EmuThread*, const char* format, const char* args, uint32_t site);
uint64_t emu_malloc(EmuThread*, uint64_t bytes, uint32_t site);
void emu_free(EmuThread*, uint64_t addr, uint32_t site);
[[noreturn]] void emu_assertfail(EmuThread*, const char* message, const char* file, uint32_t line, const char* function, uint32_t site);
[[noreturn]] void emu_trap(EmuThread*, uint32_t site, const char* why);
[[noreturn]] void emu_unsupported(EmuThread*, uint32_t site);  // the site's text is the PTX instruction
[[noreturn]] void emu_exit(EmuThread*);                        // exit inside a device function
void emu_out_of_fuel(EmuThread*, uint32_t site);               // may raise fuel and return, yield, or stop the run

// A weak access outside the own arena (remote, or shared/local/constant through a generic address: then it is a no-op).
void emu_remote(EmuThread*, uint64_t addr, uint32_t size, EmuAccess, uint32_t site);
// Slice only, in place of a weak store of a computed value through an address of unknown origin: what emu_remote does for
// a remote address, and the bytes count as not filled (see emu_control_read).
void emu_dropped_store(EmuThread*, uint64_t addr, uint32_t size, uint32_t site);
// Slice only, before a weak load whose value decides control, synchronisation or an address: stops the run (the slice is
// invalid) if the memory was not filled: it belongs to an allocation into which a sliced kernel's stores were dropped
// (EmuGuard::stores), holds a dropped store, or holds data that the run was not given. spoiled: bit 0, the
// same for shared memory; bit 1, for local memory (of this kernel, reached through a generic pointer).
void emu_control_read(EmuThread*, uint64_t addr, uint32_t size, uint32_t spoiled, uint32_t site);
// Hooks variant only, before the access. Strong operations and asynchronous copies are not hooked: they have their calls.
void emu_hook_global(EmuThread*, uint64_t addr, uint32_t size, EmuAccess, uint32_t site);   // global or generic
void emu_hook_shared(EmuThread*, uint64_t addr, uint32_t size, EmuAccess, uint32_t site);
}

// ---------------------------------------------------------------------------------------------- tables of a kernels .so
struct EmuSite {
  uint32_t ptx_line;
  uint32_t line;                  // innermost source position
  const char* file;
  const char* function;           // innermost function, demangling left to the reader; "" if unknown
  const char* inlined_at;         // outer frames, innermost first: "function@file:line;function@file:line", or ""
  const char* text;               // the PTX instruction
};

struct EmuParam { uint32_t offset, size, align; };
struct EmuRange { uint32_t first, count; };
// A slice drops accesses through the 8-byte pointer at param_offset: at launch it must be null or lie in the own arena,
// else the slice is invalid. stores: computed values are not written there, so nothing may read them for control (the
// core remembers the allocation, and emu_control_read refuses it).
struct EmuGuard { uint32_t param_offset, param_index, stores; };

struct EmuKernel {
  const char* name;
  EmuEntry entry;
  uint32_t static_shared;         // bytes of .shared variables reachable from this kernel
  uint32_t dynamic_align;         // alignment of extern .shared (at least 16)
  uint32_t local_bytes;           // .local per thread on the deepest known call chain (a hint for the stack)
  uint32_t param_bytes;
  uint32_t nparams;
  const EmuParam* params;
  uint32_t maxntid[3], reqntid[3], minnctapersm;   // 0 where not given
  uint32_t nranges;               // basic blocks reachable from this kernel
  const EmuRange* ranges;
  uint32_t may_block;             // contains an operation that can suspend the thread
  // slice variant
  uint32_t sliced;                // 1: value work is counted, not executed
  const char* refusal;            // why this kernel is not sliced (it is then translated whole), or nullptr
  uint32_t nguards;
  const EmuGuard* guards;
};

enum EmuRelocKind : uint32_t { EMU_RELOC_GLOBAL = 0, EMU_RELOC_FUNCTION };
struct EmuReloc { uint32_t offset; EmuRelocKind kind; uint32_t global; void* function; int64_t addend; };  // 8 bytes each

struct EmuGlobal {
  const char* name;
  uint64_t size, align;
  const unsigned char* init;      // init_bytes bytes; the rest is zero
  uint64_t init_bytes;
  uint32_t nrelocs;
  const EmuReloc* relocs;
  EmuSpace space;                 // EMU_GLOBAL or EMU_CONST
};

enum EmuVariant : uint32_t { EMU_PLAIN = 0, EMU_HOOKS, EMU_SLICE };

struct EmuModule {
  uint32_t abi;
  EmuVariant variant;
  const char* source;
  uint32_t nkernels;  const EmuKernel* kernels;
  uint32_t nglobals;  const EmuGlobal* globals;
  uint32_t nsites;    const EmuSite* sites;
  uint32_t nclasses;  const char* const* class_names;
  uint32_t nblocks;                               // basic blocks of the whole module
  const uint32_t* block_classes;                  // [nblocks][nclasses] per execution by one thread
  const uint32_t* block_weight;                   // [nblocks] progress per execution
};
extern "C" const EmuModule* emu_module(void);     // the only symbol a kernels .so exports

// dev.h -- one device: its memory, its kernels, its streams. dev_cpu.c is the one there is.
//
// Cells are queued; each stream runs its own instructions of them in order and meets the others at events only. Between
// dev_sync and the next dev_cell all is still, and the host may read and write the device's memory.
#ifndef MT_DEV_H
#define MT_DEV_H
#include "runtime/comm.h"
#include "runtime/plan.h"
#include "runtime/work.h"

typedef struct Dev Dev;

typedef struct {
  int  threads;                              // CPU: threads that compute, 1 and more
  bool times;                                // measure each instruction: dev_time
  int64_t spans;                             // keep so many timed instructions: dev_span
  Comm *comm;                                // the ranks, whose memory the blocks lie in; 0: there is one
} DevOptions;

enum { DEV_SETS = 8 };
// a scalar that the host writes: 1 + index of its slot
typedef struct { uint32_t slot; uint64_t bits; } DevSet;
typedef struct {
  uint32_t fn;
  // instructions of WHEN_first run, those of WHEN_later do not; else the other way
  bool first, last;                          // last: those of WHEN_last run
  int64_t microbatch;                        // handed to the feed
  uint32_t nset; DevSet set[DEV_SETS];       // written before the cell's first instruction on the compute stream
} DevCell;

// Puts the values of one input for one microbatch at `to`. Called on the input's stream.
typedef Status DevFeed(void *with, uint32_t input, int64_t microbatch, void *to);

// Called on the compute stream after each of its instructions.
typedef void DevWatch(void *with, const DevCell *c, uint32_t ins);

Status dev_open(Arena *a, const Plan *p, DevOptions o, Dev **d);  // memory (zeroed), kernels, libraries, threads
void   dev_close(Dev *d);                                         // 0 is allowed
Status dev_touch(Dev *d);                                         // all memory is got from the system, on all threads
Str    dev_name(const Dev *d);                                    // "2 threads, OpenBLAS 0.3.21 Zen"
Str    dev_libraries(const Dev *d);                               // "OpenBLAS 0.3.21 Zen"; "": none
void   dev_feed(Dev *d, DevFeed *feed, void *with);               // from the next cell on
void   dev_watch(Dev *d, DevWatch *watch, void *with);            // from the next cell on; 0: nobody looks
void   dev_cell(Dev *d, const DevCell *c);                        // waits while the queue is full
// all queued cells are done; the first failure of the feed
Status dev_sync(Dev *d);
void  *dev_at(Dev *d, PlanArg at);                                // host address of a byte of a buffer
void  *dev_slot(Dev *d, uint32_t slot);                           // of a scalar's 8 bytes; slot: 1 + index
// Bytes of all blocks of one rank, as they lie behind each other in its memory; at[i]: where block i begins. at may be 0.
size_t dev_bytes(const Plan *p, size_t at[MEM_COUNT]);
int64_t dev_rooms(const Dev *d);                                  // bytes that its threads have for products
int64_t dev_planned(const Dev *d);                                // those and the plan's memory
int64_t dev_before(const Dev *d);                                 // peak_bytes before it took the plan's memory
Comm  *dev_comm(const Dev *d);
Work  *dev_work(Dev *d);                                          // its workers, for the host while all is still

// ---- measurements ------------------------------------------------------------------------------------------------
typedef struct { int64_t runs; double seconds, left_out; } DevTime;          // left_out: FLOP, see gemm_run
DevTime dev_time(const Dev *d, uint32_t fn, uint32_t ins);        // since dev_open or dev_time_reset
void    dev_time_reset(Dev *d);
typedef struct { uint32_t fn, ins; int64_t microbatch; double begin, end; } DevSpan;  // now_seconds
const DevSpan *dev_spans(const Dev *d, PlanStream s, int64_t *n);
#endif

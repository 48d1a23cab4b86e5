// tiles.h -- how the C emitter cuts the points of a kernel into units, blocks and tiles. It depends on the kernel only, never on
// threads or the machine: so do the bits of every sum.
#ifndef MT_TILES_H
#define MT_TILES_H
#include "compiler/kernel.h"

enum {
  BLOCK = 1024,                              // terms added up at once in a row: MT_BLOCK of kernel_math.h
  MAP_BLOCK = 4096,                          // points of a map unit
  COLUMNS = 4096, ROWS = 64,                 // neighbouring columns at once; rows added up in the terms' own format
  LANE_BLOCK = 4096,                         // terms of a row of a col kernel by lanes
  TILE = 32, TILE_WIDTH = 32,                // the square for accesses across the innermost loop
  ROW_TILE = 16, TILED_ROW = 1024            // rows at once that store across; the longest such row
};

typedef struct { uint32_t n, at[KERNEL_RANGES]; } Ranges;         // some ranges, the slowest first
Ranges  ranges_in(const Kernel *k, uint8_t mask);
int64_t range_count(const Kernel *k, const Ranges *rs, bool whole);  // points, with the padding when whole
static inline int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

// An access that walks along range `tile` while the innermost loop is along `inner` touches a line per element. Such loads and
// stores go through a small square on the stack, TILE (ROW_TILE) points of `tile` high.
bool is_across(const Ins *x, uint32_t tile, uint32_t inner);

// map: the ranges of `order` before `cut` are units, range order[cut] is cut into blocks, the rest is inside.
typedef struct { Ranges order; uint32_t cut; int tile; int64_t block, blocks, units, inside; } MapTiles;
MapTiles map_tiles(const Kernel *k);

// row: every point of the parallel ranges is a unit; with a tile, ROW_TILE points along it.
typedef struct { Ranges other, red; int tile; int64_t blocks, units; } RowTiles;
RowTiles row_tiles(const Kernel *k, const Facts *f);

// col: the terms of a result are cut into `chunks` of `rows`. By columns: a block of COLUMNS neighbours along range col at
// once, a row being a point of the reduced ranges. By lanes: one result at a time, a row being a block of range lane.
typedef struct {
  bool by_lanes;
  int col, lane;                             // ranges, -1: none
  Ranges other, outer;                       // parallel ranges but col; reduced ranges but lane
  int64_t others, ncol, colblocks, laneblocks, rows, chunks, all_rows, units0, units1;
  uint32_t reduces;
} ColTiles;
ColTiles col_tiles(const Kernel *k);

// scatter: the index depends on the `batch` ranges (and reduced ones); `key` is the range of destinations; the other parallel
// ranges are columns, the last of them the fastest.
typedef struct {
  uint32_t reduce, key;
  int col;
  Ranges batch, other, red, columns;         // columns: other and col
  int64_t batches, terms, keyblock, keyblocks;
  bool wide;                                 // the lists hold i64
} ScatterTiles;
ScatterTiles scatter_tiles(const Kernel *k, const Facts *f);
#endif

// tiles.c -- see tiles.h.
#include "compiler/tiles.h"

enum { GRAIN = 16384, SPREAD = 64 };         // points worth claiming at once; units that a col kernel aims at

int64_t range_count(const Kernel *k, const Ranges *rs, bool whole) {
  int64_t n = 1;
  for (uint32_t j = 0; j < rs->n; j++) n *= whole ? k->range[rs->at[j]].n : k->range[rs->at[j]].valid;
  return n;
}

Ranges ranges_in(const Kernel *k, uint8_t mask) {
  Ranges rs = {0};
  for (uint32_t r = 0; r < k->nrange; r++)
    if (mask >> r & 1) rs.at[rs.n++] = r;
  return rs;
}

static uint8_t reduced(const Kernel *k) {
  uint8_t m = 0;
  for (uint32_t r = 0; r < k->nrange; r++) m |= (uint8_t)(k->range[r].reduced << r);
  return m;
}
static uint8_t parallel(const Kernel *k) { return (uint8_t)(((1 << k->nrange) - 1) & ~reduced(k)); }
static int64_t clamp(int64_t x, int64_t lo, int64_t hi) { return x < lo ? lo : x > hi ? hi : x; }

bool is_across(const Ins *x, uint32_t tile, uint32_t inner) {
  int64_t far = x->at.stride[inner];
  return (x->op == KI_load || x->op == KI_store) && !x->at.index && x->at.stride[tile] == 1 && (far >= 16 || far <= -16);
}

// The range of `from` that most accesses walk along while they jump along `inner`; -1: none. most: so many accesses at most.
static int choose_tile(const Kernel *k, uint8_t from, uint32_t inner, bool loads, uint32_t most) {
  int best = -1;
  uint32_t best_n = 0;
  for (uint32_t r = 0; r < k->nrange; r++) {
    uint32_t n = 0;
    if (!(from >> r & 1) || r == inner || k->range[r].n < 8 || k->range[inner].n < 8) continue;
    for (uint32_t v = 1; v < k->ins.n; v++)
      if (is_across(kernel_ins(k, v), r, inner) && (loads || kernel_ins(k, v)->op == KI_store)) n++;
    if (n > best_n && n <= most) best_n = n, best = (int)r;
  }
  return best;
}

MapTiles map_tiles(const Kernel *k) {
  MapTiles t = {.tile = -1, .block = 1, .blocks = 1, .units = 1, .inside = 1};
  uint32_t n = k->nrange;
  if (!n) return t;
  t.tile = choose_tile(k, (uint8_t)((1 << n) - 1), n - 1, true, 8);
  for (uint32_t r = 0; r < n; r++)
    if ((int)r != t.tile && r != n - 1) t.order.at[t.order.n++] = r;
  if (t.tile >= 0) t.order.at[t.order.n++] = (uint32_t)t.tile;
  t.order.at[t.order.n++] = n - 1;
  if (t.tile >= 0) t.cut = n - 2, t.inside = k->range[n - 1].n;
  else
    for (t.cut = n - 1; t.cut && k->range[t.cut].n <= MAP_BLOCK / t.inside; t.cut--) t.inside *= MAX(k->range[t.cut].n, 1);
  t.block = MAX(MAP_BLOCK / MAX(t.inside, 1), 1);
  if (t.tile >= 0) t.block = (t.block + TILE - 1) / TILE * TILE;
  t.blocks = ceil_div(k->range[t.order.at[t.cut]].n, t.block);
  t.units = t.blocks;
  for (uint32_t j = 0; j < t.cut; j++) t.units *= k->range[t.order.at[j]].n;
  return t;
}

RowTiles row_tiles(const Kernel *k, const Facts *f) {
  RowTiles t = {.red = ranges_in(k, f->red), .tile = -1, .blocks = 1};
  if (t.red.n && range_count(k, &t.red, false) <= TILED_ROW) t.tile = choose_tile(k, f->par, t.red.at[t.red.n - 1], false, 2);
  t.other = ranges_in(k, t.tile < 0 ? f->par : f->par & (uint8_t)~(1 << t.tile));
  if (t.tile >= 0) t.blocks = ceil_div(k->range[t.tile].n, ROW_TILE);
  t.units = range_count(k, &t.other, true) * t.blocks;
  return t;
}

// Elements that are loaded side by side when the innermost loop is along r.
static double unit_loads(const Kernel *k, uint32_t r) {
  double n = 0;
  for (uint32_t v = 1; v < k->ins.n; v++) {
    const Ins *x = kernel_ins(k, v);
    double size = 1;
    for (uint32_t i = 0; i < k->nrange; i++) size *= x->at.stride[i] ? (double)k->range[i].n : 1;
    if (x->op == KI_load && (x->at.stride[r] == 1 || x->at.stride[r] == -1)) n += size;
  }
  return n * (double)MIN(k->range[r].n, 16);
}

ColTiles col_tiles(const Kernel *k) {
  ColTiles t = {.col = -1, .lane = -1, .ncol = 1, .laneblocks = 1};
  Ranges par = ranges_in(k, parallel(k)), red = ranges_in(k, reduced(k));
  double best_par = -1, best_red = -1;
  for (uint32_t j = 0; j < par.n; j++)
    if (unit_loads(k, par.at[j]) >= best_par) best_par = unit_loads(k, par.at[j]), t.col = (int)par.at[j];
  for (uint32_t j = 0; j < red.n; j++)
    if (unit_loads(k, red.at[j]) >= best_red) best_red = unit_loads(k, red.at[j]), t.lane = (int)red.at[j];
  t.by_lanes = t.col < 0 || best_red > best_par;
  if (!t.by_lanes) t.lane = -1;
  else if (par.n) t.col = (int)par.at[par.n - 1];
  uint8_t col_bit = t.col < 0 ? 0 : (uint8_t)(1 << t.col), lane_bit = t.lane < 0 ? 0 : (uint8_t)(1 << t.lane);
  t.other = ranges_in(k, parallel(k) & (uint8_t)~col_bit), t.outer = ranges_in(k, reduced(k) & (uint8_t)~lane_bit);
  t.others = range_count(k, &t.other, true);
  if (t.col >= 0) t.ncol = k->range[t.col].n;
  t.colblocks = t.by_lanes ? t.ncol : ceil_div(k->range[t.col].valid, COLUMNS);
  if (t.lane >= 0) t.laneblocks = ceil_div(k->range[t.lane].valid, LANE_BLOCK);
  t.all_rows = range_count(k, &t.outer, false) * t.laneblocks;
  int64_t row = t.lane >= 0 ? MIN(k->range[t.lane].valid, LANE_BLOCK) : 1, least = MAX((t.by_lanes ? LANE_BLOCK : ROWS) / MAX(row, 1), 1);
  int64_t results = MAX(t.others * t.colblocks, 1);
  int64_t chunks = clamp(ceil_div(t.all_rows, least), 1, MAX(SPREAD / results, 1));
  t.rows = MAX(ceil_div(t.all_rows, chunks), 1), t.chunks = ceil_div(t.all_rows, t.rows);
  t.units0 = t.chunks * t.others * t.colblocks, t.units1 = t.others * ceil_div(t.ncol, COLUMNS);
  for (uint32_t v = 1; v < k->ins.n; v++) t.reduces += kernel_ins(k, v)->op == KI_reduce;
  return t;
}

ScatterTiles scatter_tiles(const Kernel *k, const Facts *f) {
  ScatterTiles t = {.col = -1};
  for (uint32_t v = 1; v < k->ins.n; v++)
    if (kernel_ins(k, v)->op == KI_reduce) t.reduce = v;
  t.key = kernel_ins(k, t.reduce)->range;
  uint8_t key = (uint8_t)(1 << t.key), batch = f->deps[kernel_ins(k, t.reduce)->b] & f->par;
  t.columns = ranges_in(k, f->par & (uint8_t)~(key | batch));
  if (t.columns.n) t.col = (int)t.columns.at[t.columns.n - 1];
  t.other = t.columns;
  if (t.other.n) t.other.n--;
  t.batch = ranges_in(k, batch), t.red = ranges_in(k, f->red);
  t.batches = range_count(k, &t.batch, true), t.terms = range_count(k, &t.red, false);
  int64_t row = MAX(range_count(k, &t.columns, true), 1), keys = k->range[t.key].n;
  t.keyblock = clamp(MAP_BLOCK / row, 1, MAX(keys, 1)), t.keyblocks = ceil_div(keys, t.keyblock);
  t.wide = t.terms > INT32_MAX || keys > INT32_MAX;
  return t;
}

Launch kernel_launch(const Kernel *k) {
  Launch l = {.stages = 1, .grain = {1, 1}};
  Arena *a = arena_create();
  Facts f = kernel_facts(k, a);
  int64_t work = 1;                          // points of a unit
  if (k->class == LOOP_map) {
    MapTiles t = map_tiles(k);
    l.units[0] = t.units, work = t.block * t.inside;
  } else if (k->class == LOOP_row) {
    RowTiles t = row_tiles(k, &f);
    l.units[0] = t.units, work = range_count(k, &t.red, true) * f.phases * (t.tile < 0 ? 1 : ROW_TILE);
  } else if (k->class == LOOP_col) {
    ColTiles t = col_tiles(k);
    l.stages = 2, l.units[0] = t.units0, l.units[1] = t.units1;
    l.work = t.chunks * t.others * t.ncol * t.reduces * 8, work = GRAIN;
  } else if (k->class == LOOP_scatter) {
    ScatterTiles t = scatter_tiles(k, &f);
    l.stages = 2, l.units[0] = t.batches, l.units[1] = t.batches * t.keyblocks;
    l.work = t.batches * (k->range[t.key].n + t.terms) * (t.wide ? 8 : 4);
    l.grain[1] = clamp(GRAIN / MAX(t.keyblock * range_count(k, &t.columns, true), 1), 1, MAX(l.units[1], 1));
    work = MAX(t.terms, 1);
  } else {
    bug("a kernel without a class is run");
  }
  l.grain[0] = clamp(GRAIN / MAX(work, 1), 1, MAX(l.units[0], 1));
  l.work = (l.work + 63) & ~(int64_t)63;
  arena_destroy(a);
  return l;
}

// indexed.h -- token files as Megatron-LM keeps them: PREFIX.bin holds the tokens back to back, PREFIX.idx says where
// each sequence lies and which sequences make a document.
//
//   .idx  9 bytes "MMIDIDX\0\0", u64 version 1, u8 format, u64 n sequences, u64 m document entries,
//         i32[n] lengths in tokens, i64[n] byte offsets in .bin, i64[m] documents (first 0, last n), maybe i8[n] modes;
//         little endian, unaligned
#ifndef MT_INDEXED_H
#define MT_INDEXED_H
#include "runtime/dtype.h"

typedef struct {
  Str prefix, idx, bin;       // as given; the two paths
  int idx_fd, bin_fd;
  DType dtype;                // of the tokens in .bin: an integer format
  int64_t n, m;               // sequences; entries of the document table
  int64_t tokens;             // sum of the lengths
  int64_t bin_bytes;          // size of .bin when it was opened
  const int32_t *length;      // [n] tokens of each sequence; a copy in the arena
} Indexed;

// Every entry is checked: a later read fails only if a file changes or the disk does (a message, never a signal).
Status indexed_open(Arena *a, const char *prefix, Indexed *x);
void   indexed_close(Indexed *x);
// Tokens [from, from + n) of a sequence. From any thread.
Status indexed_read(const Indexed *x, int64_t sequence, int64_t from, int64_t n, int32_t *tokens);
// Entries [from, from + n) of the document table.
Status indexed_documents(const Indexed *x, int64_t from, int64_t n, int64_t *entries);
// Of the .idx, and of bytes all over the .bin.
Status indexed_hash(const Indexed *x, uint64_t *hash);

// ---- writing ----------------------------------------------------------------------------------------------------
// Streams: memory does not grow with the tokens, and by 12 bytes per sequence. Nothing is at PREFIX before finish.
typedef struct IndexedWriter IndexedWriter;
Status indexed_create(Arena *a, const char *prefix, DType dtype, IndexedWriter **w);
Status indexed_add(IndexedWriter *w, const int32_t *tokens, int64_t n);      // to the open sequence
Status indexed_end_sequence(IndexedWriter *w);                               // it may be empty
Status indexed_end_document(IndexedWriter *w);                               // the sequences since the last one
Status indexed_finish(IndexedWriter *w);                                     // .bin, then .idx take their names
void   indexed_abandon(IndexedWriter *w);                                    // removes what was written
#endif

// sema.h -- what the parts of sema share: the files of the user's text, and what overrides say.
#ifndef MT_SEMA_H
#define MT_SEMA_H
#include "compiler/program.h"

typedef struct { Str name; const Ast *value; Span at; const char *from; } ConfigOverride;
typedef struct { Str path; const Ast *set; } SettingOverride;

typedef struct {
  Program *p;
  Module *m;
  Status status;               // of a file that cannot be read
  uint16_t main;               // the source that the command names
  VEC(const Ast *) item;       // of the user's files, imports first
  Map loaded;                  // real paths
  VEC(ConfigOverride) config;  // in the command line's order
  VEC(SettingOverride) setting;
  VEC(const Ast *) rule;  // --map: a map; --no-map: a name
  VEC(const Ast *) keep;  // of the text and of parallel files
  const Ast *mesh;        // the last --mesh; 0: as written
} Sema;

#define ERR(at, code, ...) diag_error(s->p->diag, at, code, __VA_ARGS__)

// load.c: the text and its imports, and parallel files; 0 after an error
void load_text(Sema *s, const char *path);
const Ast *load_parallel(Sema *s, const char *path);
// override.c: the command line and its presets, sorted out
void overrides_read(Sema *s, const Override *o, size_t n);
const char *setting_block(NodeKind kind);  // "train" of N_train; 0 for other items
// mesh.c: axes and map rules
void mesh_read(Sema *s);
void mesh_check(Sema *s);  // rules name dims that exist, an axis above 1 has a rule
#endif

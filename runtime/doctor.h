// doctor.h -- what training needs of a machine: what is there, what is missing, and how to get it.
#ifndef MT_DOCTOR_H
#define MT_DOCTOR_H
#include "runtime/base.h"

typedef struct { bool json, color; } DoctorOptions;

// Looks at everything and prints a table, or one JSON object. EXIT_UNAVAILABLE when something required is missing.
Status doctor(Arena *a, const DoctorOptions *o, FILE *to);
#endif

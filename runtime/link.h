// link.h -- a link between ranks that is slower than this machine's memory, for tests of what hides communication.
#ifndef MT_LINK_H
#define MT_LINK_H
#include "runtime/base.h"

typedef struct { double rate, latency; } Link;       // bytes a second, 0: as fast as it goes; seconds

Status link_read(const char *text, Link *l);         // "1GB/s,1ms"
double link_seconds(const Link *l, double bytes);    // that a collective takes at least, which moves so many for a rank
#endif

/* Numbers of jobs.csv as text. A table of a million jobs has ten million of them, and printf's way to the
 * shortest text took most of the time of writing it. */
#ifndef SIM_COMPARE_RECORD_NUMBER_H
#define SIM_COMPARE_RECORD_NUMBER_H

#include <stdint.h>

#include "common/strbuf.h"

/* The very text of text_shortest(); nothing for NaN and infinity. */
void record_put_double(struct strbuf *out, double v);
/* Nanoseconds as seconds, exactly: 2.5, -0.000000001. */
void record_put_seconds(struct strbuf *out, int64_t ns);
void record_put_whole(struct strbuf *out, uint64_t v);

#endif

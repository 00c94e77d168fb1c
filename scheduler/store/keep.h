/* How much is kept of jobs that ended: `keep` of the configuration. */
#ifndef SCHEDULER_STORE_KEEP_H
#define SCHEDULER_STORE_KEEP_H

#include <stddef.h>

#define KEEP_KEYS_S (7 * 86400) /* how long a retried submit finds its job; so long a job with a key stays */
/* A job that ended less than this ago stays: `durability_interval_s` is at most 60. A power cut may take back
 * the row of its end, and then its records must still say that it ran. */
#define KEEP_SETTLED_S 120

struct store_keep {
	size_t ended, ended_per_uid; /* jobs that were admitted */
	double ended_s; /* 0: of any age */
	size_t rejected, rejected_per_uid;
	double rejected_s; /* 0: of any age */
	size_t observations; /* plausible ones, of each type; they outlive their jobs */
};

#endif

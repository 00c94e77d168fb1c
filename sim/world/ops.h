/* The table of worlds: one file an entry, found by name in world.c. world.h says what each member must do;
 * world.c does what is common (parsing the spec, the cluster, conversion of time, folds of one).
 * Optional ones may be NULL. */
#ifndef SIM_WORLD_OPS_H
#define SIM_WORLD_OPS_H

#include "sim/world/world.h"

struct world_open {                /* what an implementation is opened with */
	const char *argument;      /* behind the ':' of the spec; NULL: none */
	const struct schema *schema;  /* NULL: the default */
	const struct cluster *given;  /* NULL: its own */
	const struct cluster *cluster;/* NULL: as given */
	const struct what_if *what;   /* NULL: no changes */
	struct disturbances disturbances;
	const struct trace *trace; /* NULL: none yet; only for tests and for `world_training` */
	size_t hold_out;
	bool mark_unknown;
};

struct world_machines {            /* in effect */
	struct cluster given, cluster; /* as a whole */
};
/* `own` is the one that the world itself knows, or NULL if it must be given. */
int world_machines(const struct world_open *o, const struct cluster *own, struct world_machines *out,
                   struct err *err);

struct world_count {                /* of a run up to now */
	double busy_s;             /* core-seconds worked */
	uint64_t events;           /* starts, ends, ends of services */
};

struct world_ops {
	const char *name, *title;
	/* out: the machines in effect. A run is one course of events on what jobs share of them. */
	int (*open)(const struct world_open *o, void **out_self, struct world_machines *out, struct err *err);
	void (*close)(void *self);
	size_t (*folds)(const void *self);                         /* NULL: 1 */
	size_t (*runs)(const void *self);                          /* NULL: not made of runs */
	const char *(*unknown)(const void *self, uint32_t kind);   /* NULL: all kinds are known */
	int (*training)(const void *self, size_t fold, uint64_t seed, struct csv **out, struct err *err);
	void (*split_text)(const void *self, size_t fold, char *out, size_t size);
	void (*describe)(const void *self, struct json_writer *w); /* members of an open object */
	size_t (*batches)(const void *self, const double **out);

	int (*run_new)(const void *self, size_t fold, void **out_run, struct err *err);
	void (*run_free)(void *run);
	int (*start)(void *run, double now_s, const struct world_job *j, struct err *err);
	/* Of the whole job among so many processes; NULL: the world has no such law. */
	int (*law_s)(const void *run, const struct world_job *j, double processes, double *out,
	             struct err *err);
	double (*next_s)(void *run);                               /* INFINITY: nothing runs */
	bool (*end)(void *run, struct world_end *out, double *out_at_s);
	/* Stops a job that runs; NULL: the world cannot. False: no such job runs. */
	bool (*stop)(void *run, double now_s, uint64_t id, struct world_end *out);
	/* Both or neither may be NULL: world_ends_early(). False: no such job runs. */
	bool (*progress)(void *run, double now_s, uint64_t id, double *out);
	int (*accuracy)(const void *run, const struct world_job *j, double *out, struct err *err);
	/* world_run_mixed(); NULL: the world cannot. */
	int (*mixed)(const void *run, const struct world_job *j, const struct world_stage *stage, size_t n,
	             double *out, struct err *err);
	int (*copy)(void *to, const void *from, struct err *err);
	struct world_count (*count)(const void *run);
};
extern const struct world_ops world_measured, world_queueing, world_fluid;

#endif

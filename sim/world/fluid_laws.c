/* Tables of the time of an iteration by the number of processes, for each sort of job once. */
#include "sim/world/fluid_laws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "sim/world/queueing_machine.h"

#define PLAYED_EVENTS 10000.0 /* of one population */
#define PLAYED_SEED 0x666c756964 /* the tables of a world are the same in every run */
#define PLAYED_POINTS 24

struct law {
	uint32_t cpus;
	double compute_s, disk_s, device_s;
};

struct fluid_laws {
	const struct world_file *file;
	double node_cores;
	uint32_t nodes;
	bool played;
	double point[FLUID_MAX_POINTS]; /* processes: 1, 2, ..., FLUID_EXACT, then sparser */
	size_t n_points;
	double *node_s; /* scratch: the cycle in a node of n processes */
	size_t most_in_node;
	struct law *law;
	double *cycle_s; /* [law * n_points + point] */
	size_t n, cap, n_played;
	uint32_t *slot; /* hash table of indexes + 1; 0: free */
	size_t n_slots;
};

/* ---- making ---- */

int fluid_laws_new(const struct world_file *f, const struct cluster *c, double most, struct fluid_laws **out,
		   struct err *err)
{
	struct fluid_laws *l = mem_calloc(1, sizeof *l);

	if (!l)
		return err_nomem(err, "the laws of a world");
	l->file = f;
	l->nodes = c->nodes;
	l->node_cores = c->cores / c->nodes;
	l->played = f->barrier || f->disk_law != WORLD_DISK_EXPONENTIAL;
	for (double p = 1.0; l->n_points < FLUID_MAX_POINTS;) {
		l->point[l->n_points++] = p;
		if (p >= most && l->n_points >= 2)
			break;
		p = p < FLUID_EXACT ? p + 1.0 : floor(p * FLUID_RATIO);
	}
	l->most_in_node = (size_t)(l->point[l->n_points - 1] / l->nodes) + 2;
	l->node_s = mem_array(l->most_in_node + 1, sizeof *l->node_s);
	l->n_slots = 64;
	l->slot = mem_calloc(l->n_slots, sizeof *l->slot);
	if (!l->node_s || !l->slot) {
		fluid_laws_free(l);
		return err_nomem(err, "the laws of a world");
	}
	*out = l;
	return 0;
}

void fluid_laws_free(struct fluid_laws *l)
{
	if (!l)
		return;
	free(l->node_s);
	free(l->law);
	free(l->cycle_s);
	free(l->slot);
	free(l);
}

/* ---- the product form ---- */

/* Throughput X(n) = G(n-1) / G(n), with G(n) = F(n) + disk_s G(n-1) and F(n) the product of compute_s /
 * min(i, cores). Written in h(n) = F(n) / G(n), which is never above 1 and may fall to 0 without harm. */
static void solve_node(struct fluid_laws *l, const struct law *law)
{
	double h = 1.0;

	for (size_t n = 1; n <= l->most_in_node; n++) {
		double speed = (double)n < l->node_cores ? (double)n : l->node_cores;
		double demand = law->disk_s * speed / law->compute_s;

		l->node_s[n] = (double)n * (h + demand) * law->compute_s / speed;
		h /= h + demand;
	}
}

/* P processes spread evenly: some nodes have one more than the others. A job waits for its last process, so
 * what counts is whether any of its processes is on such a node: cpus neighbours out of all nodes. */
static double spread_cycle_s(const struct fluid_laws *l, uint32_t cpus, double processes)
{
	double each = floor(processes / l->nodes), more = processes - each * l->nodes, on_full;

	if (more == 0.0)
		return l->node_s[(size_t)each];
	if (each == 0.0) /* no two processes share a node */
		return l->node_s[1];
	on_full = fmin(1.0, (more + cpus - 1.0) / l->nodes);
	return on_full * l->node_s[(size_t)each + 1] + (1.0 - on_full) * l->node_s[(size_t)each];
}

/* ---- the machine itself ---- */

/* The mean over `njobs` equal jobs that start together. */
static int play(const struct fluid_laws *l, const struct law *law, size_t njobs, double *out_cycle_s,
		struct err *err)
{
	struct qmachine_params p = {
		.node_cores = l->node_cores,
		.nodes = l->nodes,
		.barrier = l->file->barrier,
		.law = l->file->disk_law,
		.measured = l->file->measured.v,
		.n_measured = l->file->measured.n,
	};
	double cycles = fmax(20.0, ceil(PLAYED_EVENTS / (2.0 * (double)njobs * law->cpus))), sum = 0.0;
	struct qmachine *m = NULL;
	struct qmachine_end e;
	int rc = qmachine_new(&p, &m, err);

	for (size_t i = 0; i < njobs && !rc; i++) {
		struct qmachine_job j = {
			.id = i,
			.cpus = law->cpus,
			.cycles = (uint64_t)cycles,
			.compute_s = law->compute_s,
			.disk_s = law->disk_s,
			.device_s = law->device_s,
			.seed = rng_stream(PLAYED_SEED, i).state,
		};

		rc = qmachine_start(m, 0.0, &j, err);
	}
	while (!rc && qmachine_end(m, &e))
		sum += e.at_s;
	qmachine_free(m);
	*out_cycle_s = sum / (double)njobs / cycles;
	return rc;
}

static double line(double x0, double y0, double x1, double y1, double x)
{
	return y0 + (y1 - y0) * ((x - x0) / (x1 - x0));
}

/* Numbers of jobs 1, 2, 3, 4, 6, 8, 12, ... up to what the tables hold, and straight lines between them. */
static int fill_played(const struct fluid_laws *l, const struct law *law, double *cycle_s, struct err *err)
{
	double at[PLAYED_POINTS], y[PLAYED_POINTS], most = l->point[l->n_points - 1];
	size_t n = 0, k = 0;

	for (size_t njobs = 1; n < PLAYED_POINTS; njobs += njobs < 4 ? 1 : njobs / 2) {
		int rc = play(l, law, njobs, &y[n], err);

		if (rc)
			return rc;
		at[n] = (double)njobs * law->cpus;
		if (at[n++] >= most && n >= 2)
			break;
	}
	for (size_t i = 0; i < l->n_points; i++) {
		while (k + 2 < n && l->point[i] > at[k + 1])
			k++;
		cycle_s[i] = l->point[i] <= at[0] ? y[0]
						  : line(at[k], y[k], at[k + 1], y[k + 1], l->point[i]);
	}
	return 0;
}

/* ---- tables ---- */

static size_t hash_of(const struct law *law, size_t n_slots)
{
	uint64_t a, b, c;

	memcpy(&a, &law->compute_s, sizeof a);
	memcpy(&b, &law->disk_s, sizeof b);
	memcpy(&c, &law->device_s, sizeof c);
	return rng_mix(rng_mix(a) + 3 * rng_mix(b) + 5 * rng_mix(c) + law->cpus) & (n_slots - 1);
}

/* Where the law is, or the free place where it belongs. */
static size_t find(const struct fluid_laws *l, const struct law *law)
{
	size_t i = hash_of(law, l->n_slots);

	for (; l->slot[i]; i = (i + 1) & (l->n_slots - 1)) {
		const struct law *other = &l->law[l->slot[i] - 1];

		if (other->cpus == law->cpus && other->compute_s == law->compute_s &&
		    other->disk_s == law->disk_s && other->device_s == law->device_s)
			break;
	}
	return i;
}

static int grow_slots(struct fluid_laws *l)
{
	uint32_t *slot = mem_calloc(2 * l->n_slots, sizeof *slot);

	if (!slot)
		return -1;
	free(l->slot);
	l->slot = slot;
	l->n_slots *= 2;
	for (size_t i = 0; i < l->n; i++)
		l->slot[find(l, &l->law[i])] = (uint32_t)i + 1;
	return 0;
}

static int make_room(struct fluid_laws *l, struct err *err)
{
	size_t cap = l->cap ? 2 * l->cap : 16;
	void *law, *cycle_s;

	if (l->n_played == FLUID_MAX_PLAYED)
		return err_fail(err, ERR_ARG,
				"more than %d sorts of jobs in a fluid world with devices, a barrier or a "
				"disk that is not exponential; the world queueing takes them",
				FLUID_MAX_PLAYED);
	if (l->n < l->cap && 2 * l->n < l->n_slots)
		return 0;
	if (l->n == l->cap) {
		if (cap * l->n_points > FLUID_MAX_CELLS)
			return err_fail(err, ERR_ARG, "%zu sorts of jobs: too many for a fluid world", l->n);
		law = mem_resize(l->law, cap, sizeof *l->law);
		if (law)
			l->law = law;
		cycle_s = law ? mem_resize(l->cycle_s, cap * l->n_points, sizeof *l->cycle_s) : NULL;
		if (!cycle_s)
			return err_nomem(err, "the laws of a world");
		l->cycle_s = cycle_s;
		l->cap = cap;
	}
	if (2 * l->n >= l->n_slots && grow_slots(l))
		return err_nomem(err, "the laws of a world");
	return 0;
}

int fluid_laws_add(struct fluid_laws *l, uint32_t cpus, const struct world_work *work, uint32_t *out,
		   struct err *err)
{
	struct law law = { cpus, work->compute_s, work->disk_s, work->device_s };
	size_t at = find(l, &law);
	double *cycle_s;
	int rc;

	if (l->slot[at]) {
		*out = l->slot[at] - 1;
		return 0;
	}
	rc = make_room(l, err);
	if (rc)
		return rc;
	cycle_s = &l->cycle_s[l->n * l->n_points];
	if (l->played || law.device_s > 0.0) {
		l->n_played++;
		rc = fill_played(l, &law, cycle_s, err);
		if (rc)
			return rc;
	} else {
		solve_node(l, &law);
		for (size_t i = 0; i < l->n_points; i++)
			cycle_s[i] = spread_cycle_s(l, cpus, l->point[i]);
	}
	l->law[l->n] = law;
	l->slot[find(l, &law)] = (uint32_t)l->n + 1;
	*out = (uint32_t)l->n++;
	return 0;
}

/* The last point that is not behind `processes`; the last but one at most. */
static size_t point_before(const struct fluid_laws *l, double processes)
{
	size_t low = 0, high = l->n_points - 1;

	while (low + 1 < high) {
		size_t middle = (low + high) / 2;

		if (l->point[middle] <= processes)
			low = middle;
		else
			high = middle;
	}
	return low;
}

double fluid_laws_cycle_s(const struct fluid_laws *l, uint32_t law, double processes)
{
	const double *y = &l->cycle_s[law * l->n_points];
	size_t i;

	if (processes <= FLUID_EXACT && processes <= (double)l->n_points && processes == floor(processes))
		return y[processes < 1.0 ? 0 : (size_t)processes - 1];
	i = point_before(l, processes);
	return line(l->point[i], y[i], l->point[i + 1], y[i + 1], processes);
}

double fluid_laws_job_s(const void *owner, const struct sharing_job *j, double processes)
{
	return j->extra[0] * fluid_laws_cycle_s(owner, j->tag, processes);
}

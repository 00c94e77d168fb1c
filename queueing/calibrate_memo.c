/* Remembers calibrations. A search tries several models on the same rows, and each of them begins with the
 * same calibration, which takes longer than all the rest of a small table. See calibrate.h. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/sha256.h"
#include "queueing/calibrate_internal.h"

#define MOST_KEPT 256 /* a training makes some dozens */

struct kept {
	unsigned char key[SHA256_BYTES]; /* of all that the search looks at */
	double cores;
	struct solution solution;
	struct kept *next;
};

struct calibrate_memo {
	pthread_mutex_t lock;
	struct kept *first;
	size_t n;
};

int calibrate_memo_new(struct calibrate_memo **out, struct err *err)
{
	struct calibrate_memo *m = mem_calloc(1, sizeof *m);

	if (!m)
		return err_nomem(err, "calibrations");
	pthread_mutex_init(&m->lock, NULL);
	*out = m;
	return 0;
}

void calibrate_memo_free(struct calibrate_memo *m)
{
	if (!m)
		return;
	while (m->first) {
		struct kept *k = m->first;

		m->first = k->next;
		free(k);
	}
	pthread_mutex_destroy(&m->lock);
	free(m);
}

/* False: there is no memory for it. */
static bool make_key(const struct problem *pr, double cores, unsigned char *out)
{
	size_t each = 7 + N_PHASES + pr->n_categories, n = 2;
	double *v = mem_array(n + pr->n * each, sizeof *v);

	if (!v)
		return false;
	v[0] = cores;
	v[1] = (double)pr->n_categories;
	for (size_t i = 0; i < pr->n; i++) {
		size_t from = pr->row[i].from;
		const struct calibrate_job *j = &pr->p->job[from];

		v[n++] = j->iterations;
		v[n++] = j->batch;
		v[n++] = j->cpus;
		v[n++] = j->processes;
		v[n++] = j->devices;
		v[n++] = j->seen.cpu_used;
		for (size_t k = 0; k < N_PHASES; k++)
			v[n++] = j->seen.phase_s[k];
		v[n++] = pr->p->time_s[from];
		for (size_t k = 0; k < pr->n_categories; k++)
			v[n++] = j->category[k];
	}
	sha256(v, n * sizeof *v, out);
	free(v);
	return true;
}

static bool recall(struct calibrate_memo *m, const unsigned char *key, double *out_cores,
		   struct solution *out)
{
	const struct kept *k;

	pthread_mutex_lock(&m->lock);
	for (k = m->first; k && memcmp(k->key, key, sizeof k->key); k = k->next)
		continue;
	if (k) {
		*out_cores = k->cores;
		*out = k->solution;
	}
	pthread_mutex_unlock(&m->lock);
	return k != NULL;
}

/* Without memory it is not kept, and found again when it is asked for. */
static void keep(struct calibrate_memo *m, const unsigned char *key, double cores, const struct solution *s)
{
	struct kept *k = mem_calloc(1, sizeof *k);

	if (!k)
		return;
	memcpy(k->key, key, sizeof k->key);
	k->cores = cores;
	k->solution = *s;
	pthread_mutex_lock(&m->lock);
	if (m->n < MOST_KEPT) {
		k->next = m->first;
		m->first = k;
		m->n++;
		k = NULL;
	}
	pthread_mutex_unlock(&m->lock);
	free(k);
}

int calibrate_search_once(struct problem *pr, double cores, struct solution *out, struct err *err)
{
	struct calibrate_memo *m = pr->p->memo;
	unsigned char key[SHA256_BYTES];
	bool keyed = m && make_key(pr, cores, key);
	double found;
	int rc;

	if (keyed && recall(m, key, &found, out)) {
		calibrate_set_cores(pr, found);
		return 0;
	}
	rc = calibrate_search(pr, cores, out, err);
	if (!rc && keyed)
		keep(m, key, pr->cores, out);
	return rc;
}

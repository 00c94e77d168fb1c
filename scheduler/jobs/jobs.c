/* Jobs in memory: one job, the lists, the index by id, the keys. See jobs.h. */
#include "scheduler/jobs/jobs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/text/hash.h"

#define FIRST_BUCKETS 1024
#define KEY_BUCKETS 262144 /* a power of two above twice JOBS_MAX_KEYS */
#define NO_KEY UINT32_MAX

struct key_entry {
	uid_t uid;
	uint32_t next; /* in its bucket */
	uint64_t job;
	char *text; /* NULL: empty */
};

/* ---- one job ---- */

/* 0 or -1. NULL stays NULL. */
static int keep_name(struct names *names, const char **at, const char *name)
{
	*at = names_keep(names, name);
	return name && !*at ? -1 : 0;
}

static int copy_text(char **own, const char **row, const char *from)
{
	*own = NULL;
	*row = NULL;
	if (!from)
		return 0;
	*own = mem_strdup(from);
	*row = *own;
	return *own ? 0 : -1;
}

void job_bound_free(struct job_bound *b, const struct job_type *type)
{
	if (!b)
		return;
	if (type)
		job_params_release(&b->params);
	free(b->values.number); /* one block: category[] lies behind it */
	free(b);
}

double job_epochs_given(const struct job *job)
{
	const struct job_type *t = job->type;

	for (size_t i = 0; t && t->epochs_param && job->bound && i < t->n_params; i++)
		if (!strcmp(t->param[i].name, t->epochs_param))
			return job->bound->params.number[i];
	return NAN;
}

const struct job_values *job_values(const struct job *job)
{
	static const struct job_values none;

	return job->bound ? &job->bound->values : &none;
}

void job_drop_live_parts(struct job *job)
{
	job_bound_free(job->bound, job->type);
	job->bound = NULL;
	job->type = NULL;
	free(job->decision_text);
	job->decision_text = NULL;
	job_set_waits(job, NULL);
	free(job->epoch_choice);
	job->epoch_choice = NULL;
	free(job->told);
	job->told = NULL;
	job->n_epoch_choices = 0;
	free(job->batch);
	job->batch = NULL;
	job->n_batches = 0;
}

void job_free(struct job *job)
{
	if (!job)
		return;
	job_drop_live_parts(job);
	free(job->key);
	free(job->type_name);
	free(job->params_text);
	free(job->batches_text);
	free(job->reason);
	free(job->tag);
	free(job->identity);
	free(job->devices);
	free(job->after_more);
	free(job->steered);
	free(job->steer_kept);
	free(job);
}

int job_new(struct names *names, const struct job_record *row, struct job **out, struct err *err)
{
	struct job *job = mem_calloc(1, sizeof *job);
	struct job_record *r;

	if (!job)
		return err_nomem(err, "a job");
	job->id = row->id;
	job->row = *row;
	r = &job->row;
	job->type_number = names_number(names, row->type);
	job->epoch = job->epochs = job->epoch_accuracy = job->guess_s = NAN;
	job->steering = (struct job_steering){ .told = { NAN, NAN, NAN, NAN }, .before = NAN };
	if (copy_text(&job->key, &r->key, row->key) | copy_text(&job->type_name, &r->type, row->type) |
	    copy_text(&job->params_text, &r->params, row->params) |
	    copy_text(&job->batches_text, &r->batches, row->batches) |
	    copy_text(&job->reason, &r->reason, row->reason) | copy_text(&job->tag, &r->tag, row->tag) |
	    copy_text(&job->identity, &r->identity, row->identity) |
	    copy_text(&job->devices, &r->devices, row->devices) |
	    copy_text(&job->after_more, &r->after_more, row->after_more) |
	    copy_text(&job->steered, &r->steered, row->steered) |
	    copy_text(&job->steer_kept, &r->steer_kept, row->steer_kept)) {
		job_free(job);
		return err_nomem(err, "a job");
	}
	if (job->type_number < 0 || keep_name(names, &r->mode, row->mode) ||
	    keep_name(names, &r->tenant, row->tenant) || keep_name(names, &r->policy, row->policy) ||
	    keep_name(names, &r->model, row->model)) {
		job_free(job);
		return err_fail(err, ERR_NOMEM,
				"there is no room for another name of a tenant, type, policy or model (%u)",
				NAMES_MAX);
	}
	*out = job;
	return 0;
}

int job_set_reason(struct job *job, const char *reason)
{
	char *copy = reason ? mem_strdup(reason) : NULL;

	if (reason && !copy)
		return -1;
	free(job->reason);
	job->reason = copy;
	job->row.reason = copy;
	return 0;
}

int job_set_devices(struct job *job, const char *devices)
{
	char *copy = devices ? mem_strdup(devices) : NULL;

	if (devices && !copy)
		return -1;
	free(job->devices);
	job->devices = copy;
	job->row.devices = copy;
	return 0;
}

void job_set_waits(struct job *job, const char *why)
{
	char *copy = why ? mem_strdup(why) : NULL;

	free(job->waits_for);
	job->waits_for = copy;
}

/* ---- lists ---- */

static void cursor_set(struct job_cursor *c, struct job *at)
{
	if (c->at)
		c->at->n_cursors--;
	if (at)
		at->n_cursors++;
	c->at = at;
}

static void list_append(struct job_list *l, struct job *job)
{
	job->before = l->last;
	job->after = NULL;
	if (l->last)
		l->last->after = job;
	else
		l->first = job;
	l->last = job;
	l->n++;
}

/* Cursors at a job that leaves its list go on to the next. */
static void cursors_leave(struct jobs *j, struct job *job)
{
	for (struct job_cursor *c = job->n_cursors ? j->cursor : NULL; c; c = c->next)
		if (c->at == job)
			cursor_set(c, c->upwards ? job->after : job->before);
}

static void list_remove(struct job_list *l, struct job *job)
{
	if (job->before)
		job->before->after = job->after;
	else
		l->first = job->after;
	if (job->after)
		job->after->before = job->before;
	else
		l->last = job->before;
	job->before = job->after = NULL;
	l->n--;
}

void jobs_cursor_open(struct jobs *j, struct job_cursor *c, bool upwards)
{
	*c = (struct job_cursor){ .upwards = upwards, .next = j->cursor };
	j->cursor = c;
	cursor_set(c, upwards ? j->live.first : j->live.last);
}

struct job *jobs_cursor_next(struct jobs *j, struct job_cursor *c)
{
	struct job *job = c->at;

	if (job)
		cursor_set(c, c->upwards ? job->after : job->before);
	else
		jobs_cursor_close(j, c);
	return job;
}

void jobs_cursor_close(struct jobs *j, struct job_cursor *c)
{
	struct job_cursor **at = &j->cursor;

	cursor_set(c, NULL);
	while (*at && *at != c)
		at = &(*at)->next;
	if (*at)
		*at = c->next;
}

static struct job_list *list_of(struct jobs *j, enum job_state s)
{
	return job_state_live(s) ? &j->live : &j->ended;
}

/* ---- the index by id ---- */

static size_t bucket_of(const struct jobs *j, uint64_t id)
{
	return rng_mix(id) & (j->n_buckets - 1);
}

static int index_grow(struct jobs *j)
{
	size_t n = j->n_buckets * 2, old_n = j->n_buckets;
	struct job **old = j->bucket, **bucket = mem_calloc(n, sizeof *bucket);

	if (!bucket)
		return -1;
	j->bucket = bucket;
	j->n_buckets = n;
	for (size_t i = 0; i < old_n; i++) {
		for (struct job *job = old[i], *next; job; job = next) {
			size_t at = bucket_of(j, job->id);

			next = job->same_hash;
			job->same_hash = bucket[at];
			bucket[at] = job;
		}
	}
	free(old);
	return 0;
}

int jobs_init(struct jobs *j, struct err *err)
{
	*j = (struct jobs){ .n_buckets = FIRST_BUCKETS };
	j->bucket = mem_calloc(FIRST_BUCKETS, sizeof *j->bucket);
	j->key = mem_calloc(JOBS_MAX_KEYS, sizeof *j->key);
	j->key_bucket = mem_array(KEY_BUCKETS, sizeof *j->key_bucket);
	if (!j->bucket || !j->key || !j->key_bucket) {
		jobs_release(j);
		return err_nomem(err, "the index of jobs");
	}
	memset(j->key_bucket, 0xff, KEY_BUCKETS * sizeof *j->key_bucket);
	return 0;
}

void jobs_expect(struct jobs *j, size_t n)
{
	while (j->n_buckets < n && !index_grow(j))
		continue;
}

void jobs_release(struct jobs *j)
{
	struct job_list *list[] = { &j->live, &j->ended };

	for (size_t i = 0; i < 2; i++) {
		for (struct job *job = list[i]->first, *next; job; job = next) {
			next = job->after;
			job_free(job);
		}
	}
	for (size_t i = 0; j->key && i < JOBS_MAX_KEYS; i++)
		free(j->key[i].text);
	free(j->key);
	free(j->key_bucket);
	free(j->bucket);
	names_release(&j->names);
	users_release(&j->users);
	free(j->claimed);
	*j = (struct jobs){ 0 };
}

/* ---- what tenants claim ---- */

#define CLAIM_UNIT 1e-6 /* sums are of whole numbers, so that they come out the same whatever came and went */

static uint64_t claim_of(const struct job *job)
{
	double above = job->row.value - 1.0;

	return job_state_live(job->row.state) && job->row.tenant && above > 0.0
		       ? (uint64_t)llround(above / CLAIM_UNIT)
		       : 0;
}

/* The sum of its tenant, which is known; NULL: there is no memory for it. */
static uint64_t *claims_of(struct jobs *j, const char *tenant)
{
	int number = names_number(&j->names, tenant);

	if (number < 0 ||
	    mem_grow((void **)&j->claimed, &j->claimed_cap, (size_t)number + 1, sizeof *j->claimed))
		return NULL;
	while (j->n_claimed <= (size_t)number)
		j->claimed[j->n_claimed++] = 0;
	return &j->claimed[number];
}

static void claim(struct jobs *j, const struct job *job)
{
	uint64_t by = claim_of(job);

	if (by)
		*claims_of(j, job->row.tenant) += by; /* jobs_add() has made room */
}

static void unclaim(struct jobs *j, const struct job *job)
{
	uint64_t by = claim_of(job);

	if (by)
		*claims_of(j, job->row.tenant) -= by;
}

double jobs_claimed(struct jobs *j, const char *tenant)
{
	const uint64_t *sum = claims_of(j, tenant);

	return sum ? CLAIM_UNIT * (double)*sum : 0.0;
}

int jobs_add(struct jobs *j, struct job *job, struct err *err)
{
	size_t at;

	/* A longer chain is slower, not wrong: without memory the index stays as it is. */
	if (j->n >= j->n_buckets && index_grow(j) && j->n >= 64 * j->n_buckets)
		return err_nomem(err, "the index of jobs");
	if (users_know(&j->users, job->row.uid))
		return err_nomem(err, "the index of users");
	if (claim_of(job) && !claims_of(j, job->row.tenant))
		return err_nomem(err, "the values of jobs");
	claim(j, job);
	at = bucket_of(j, job->id);
	job->same_hash = j->bucket[at];
	j->bucket[at] = job;
	j->n++;
	j->count[job->row.state]++;
	users_count(&j->users, job->row.uid, job->row.state == JOB_QUEUED);
	list_append(list_of(j, job->row.state), job);
	return 0;
}

struct job *jobs_find(const struct jobs *j, uint64_t id)
{
	for (struct job *job = j->bucket[bucket_of(j, id)]; job; job = job->same_hash) {
		if (job->id == id)
			return job;
	}
	return NULL;
}

void jobs_set_state(struct jobs *j, struct job *job, enum job_state state)
{
	struct job_list *from = list_of(j, job->row.state), *to = list_of(j, state);

	j->count[job->row.state]--;
	j->count[state]++;
	users_count(&j->users, job->row.uid, (state == JOB_QUEUED) - (job->row.state == JOB_QUEUED));
	unclaim(j, job);
	job->row.state = state;
	claim(j, job);
	if (from != to) {
		cursors_leave(j, job);
		list_remove(from, job);
		list_append(to, job);
	}
}

void jobs_take_out(struct jobs *j, struct job *job)
{
	struct job **at = &j->bucket[bucket_of(j, job->id)];

	while (*at != job)
		at = &(*at)->same_hash;
	*at = job->same_hash;
	j->n--;
	j->count[job->row.state]--;
	users_count(&j->users, job->row.uid, -(job->row.state == JOB_QUEUED));
	unclaim(j, job);
	cursors_leave(j, job);
	list_remove(list_of(j, job->row.state), job);
}

void jobs_trim(struct jobs *j, size_t max_ended)
{
	/* An unsaved one is nowhere else. */
	while (j->ended.n > max_ended && !j->ended.first->unsaved) {
		struct job *oldest = j->ended.first;

		jobs_take_out(j, oldest);
		job_free(oldest);
	}
}

/* ---- keys ---- */

static size_t key_bucket_of(uid_t uid, const char *key)
{
	return rng_mix(hash_text(rng_mix(uid + 1), key)) & (KEY_BUCKETS - 1);
}

/* The latest entry, as it may have been used again; NULL: none. */
static struct key_entry *key_entry_of(const struct jobs *j, uid_t uid, const char *key)
{
	for (uint32_t i = j->key_bucket[key_bucket_of(uid, key)]; i != NO_KEY; i = j->key[i].next) {
		if (j->key[i].uid == uid && !strcmp(j->key[i].text, key))
			return &j->key[i];
	}
	return NULL;
}

uint64_t jobs_key_find(const struct jobs *j, uid_t uid, const char *key)
{
	const struct key_entry *e = key_entry_of(j, uid, key);

	return e ? e->job : 0;
}

/* The entry stays: the ring has no gaps. */
void jobs_key_void(struct jobs *j, uid_t uid, const char *key, uint64_t id)
{
	struct key_entry *e = key_entry_of(j, uid, key);

	if (e && e->job == id)
		e->job = 0;
}

static void key_drop(struct jobs *j, uint32_t i)
{
	uint32_t *at = &j->key_bucket[key_bucket_of(j->key[i].uid, j->key[i].text)];

	while (*at != i)
		at = &j->key[*at].next;
	*at = j->key[i].next;
	free(j->key[i].text);
	j->key[i].text = NULL;
	j->n_keys--;
}

int jobs_key_add(struct jobs *j, uid_t uid, const char *key, uint64_t id, struct err *err)
{
	char *copy = mem_strdup(key);
	uint32_t i, *bucket;

	if (!copy)
		return err_nomem(err, "a key");
	if (j->n_keys == JOBS_MAX_KEYS) {
		key_drop(j, (uint32_t)j->first_key);
		j->first_key = (j->first_key + 1) % JOBS_MAX_KEYS;
	}
	i = (uint32_t)((j->first_key + j->n_keys++) % JOBS_MAX_KEYS);
	bucket = &j->key_bucket[key_bucket_of(uid, key)];
	j->key[i] = (struct key_entry){ .uid = uid, .next = *bucket, .job = id, .text = copy };
	*bucket = i;
	return 0;
}

void jobs_key_forget_newest(struct jobs *j, uint64_t id)
{
	size_t newest = (j->first_key + j->n_keys - 1) % JOBS_MAX_KEYS;

	if (j->n_keys > 0 && j->key[newest].job == id)
		key_drop(j, (uint32_t)newest);
}

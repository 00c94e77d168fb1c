/* Many jobs at a time from several clients, with a note of what was acknowledged. See load.h. */
#include "tests/daemon/load.h"

#include <math.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"

#define PIPELINE 4 /* requests on the way at most */
#define MAX_COMPLAINTS 20
#define QUEUE_FULL_PAUSE_S 0.05

struct entry { /* one job that was acknowledged */
	uint64_t id;
	bool asked, cancelled; /* its cancellation was asked for, acknowledged */
	unsigned begun, ended; /* lines that it wrote */
	bool seen; /* in the database */
};

struct client {
	struct load *load;
	unsigned number;
	pthread_t thread;
	struct rng rng;
	struct entry *entry; /* entry[i] belongs to the key "NUMBER-i" */
	size_t n, cap;
	unsigned long retried, duplicates, cancels;
	char broken[256]; /* what must not be, seen while talking */
};

struct load {
	struct fixture fixture; /* a copy: the daemon's pid changes under us */
	struct load_params p;
	struct client *client;
	atomic_bool ending;
	uint64_t *hit;
	size_t n_hit, hit_cap; /* jobs of which a process was killed */
};

static double chance(struct client *c)
{
	return rng_uniform(&c->rng);
}

__attribute__((format(printf, 2, 3))) static void complain(struct client *c, const char *fmt, ...)
{
	va_list args;

	if (c->broken[0])
		return; /* the first says most */
	va_start(args, fmt);
	vsnprintf(c->broken, sizeof c->broken, fmt, args);
	va_end(args);
}

/* ---- one client ---- */

static bool say_submit(struct client *c, struct talk *t, size_t i)
{
	/* The same for every try of the same key: a few with a limit that can be promised, or that
	 * cannot. */
	const char *objective = i % 16 == 5 ? ",\"slo_s\":1e8" : i % 16 == 6 ? ",\"slo_s\":0.001" : "";
	bool is_long = (rng_mix(c->load->p.seed + 31 * c->number + i) >> 11) * 0x1p-53 <
		       c->load->p.long_share;

	return talk_say(t,
			"{\"op\":\"submit\",\"type\":\"line\",\"key\":\"%u-%zu\",\"id\":%zu,\"params\":{"
			"\"name\":\"%u-%zu\","
			"\"seconds\":%s}%s}",
			c->number, i, i, c->number, i, is_long ? "0.9" : "0", objective);
}

/* 1: an answer; 0: ask again later; -1: the connection is gone. */
static int hear_submit(struct client *c, struct talk *t, size_t i)
{
	struct json *v = talk_hear_json(t, PATIENCE_S);
	uint64_t id;

	if (!v)
		return -1;
	if (!is_ok(v)) {
		const char *code = error_of(v);
		bool later = !strcmp(code, "queue_full") || !strcmp(code, "draining") ||
			     !strcmp(code, "storage_failed");

		if (!later)
			complain(c, "key %u-%zu: refused: %s: %s", c->number, i, code,
				 text_at(v, "error.message"));
		json_free(v);
		return later ? 0 : 1;
	}
	id = strtoull(text_at(v, "job.job"), NULL, 10);
	if (number_at(v, "id") != (double)i)
		complain(c, "key %u-%zu: the answer is to %g", c->number, i, number_at(v, "id"));
	if (id == 0)
		complain(c, "key %u-%zu: an answer without a job", c->number, i);
	if (c->entry[i].id && c->entry[i].id != id)
		complain(c, "key %u-%zu: was job %llu, now is %llu", c->number, i,
			 (unsigned long long)c->entry[i].id, (unsigned long long)id);
	c->duplicates += json_bool(json_get(v, "duplicate"), false);
	c->entry[i].id = id;
	json_free(v);
	return 1;
}

/* Entries first .. first + n - 1, until each has its answer; reconnects as often as it takes. */
static struct talk *submit_some(struct client *c, struct talk *t, size_t first, size_t n)
{
	size_t next = first;
	unsigned tries = 0;

	while (next < first + n) {
		size_t said = next;
		bool later = false;

		if (tries++ > 0)
			c->retried += first + n - next;
		while (!t)
			t = talk_try(&c->load->fixture, 0.2);
		while (said < first + n && say_submit(c, t, said))
			said++;
		for (size_t at = next; at < said; at++) {
			int answer = hear_submit(c, t, at);

			if (answer < 0) {
				talk_close(t);
				t = NULL;
				break;
			}
			if (answer == 0)
				later = true;
			else if (at == next)
				next++;
		}
		if (t && said == next && said < first + n) { /* it went away while we spoke */
			talk_close(t);
			t = NULL;
		}
		if (later)
			sleep_s(QUEUE_FULL_PAUSE_S);
	}
	return t;
}

static struct talk *cancel_one(struct client *c, struct talk *t, size_t i)
{
	struct json *v;

	c->entry[i].asked = true;
	if (!t || !talk_say(t, "{\"op\":\"cancel\",\"job\":\"%llu\"}", (unsigned long long)c->entry[i].id) ||
	    !(v = talk_hear_json(t, PATIENCE_S))) {
		talk_close(t);
		return NULL;
	}
	if (is_ok(v)) {
		c->entry[i].cancelled = true;
		c->cancels++;
	} else if (strcmp(error_of(v), "wrong_state")) {
		complain(c, "cancelling job %llu: %s", (unsigned long long)c->entry[i].id,
			 text_at(v, "error.message"));
	}
	json_free(v);
	return t;
}

static void *run_client(void *arg)
{
	struct client *c = arg;
	struct talk *t = NULL;

	while (!atomic_load(&c->load->ending)) {
		size_t n = 1 + (size_t)(chance(c) * PIPELINE), first = c->n;

		if (mem_grow((void **)&c->entry, &c->cap, c->n + n, sizeof *c->entry))
			die("out of memory");
		memset(c->entry + first, 0, n * sizeof *c->entry);
		c->n += n;
		t = submit_some(c, t, first, n);
		if (chance(c) < 0.05) /* once more, though the answer came: it must be the same job */
			t = submit_some(c, t, first, 1);
		if (chance(c) < c->load->p.cancel_share * (double)n)
			t = cancel_one(c, t, first);
		sleep_s(-log(1.0 - chance(c)) * c->load->p.pause_s * (double)n);
	}
	talk_close(t);
	return NULL;
}

struct load *load_start(const struct fixture *y, const struct load_params *p)
{
	struct load *l = mem_calloc(1, sizeof *l);

	if (!l)
		die("out of memory");
	l->fixture = *y;
	l->p = *p;
	l->client = mem_calloc(p->clients, sizeof *l->client);
	if (!l->client)
		die("out of memory");
	for (unsigned i = 0; i < p->clients; i++) {
		l->client[i].load = l;
		l->client[i].number = i;
		l->client[i].rng = rng_stream(p->seed, i);
		if (pthread_create(&l->client[i].thread, NULL, run_client, &l->client[i]))
			die("no thread for a client");
	}
	return l;
}

void load_hit(struct load *l, uint64_t job)
{
	if (mem_grow((void **)&l->hit, &l->hit_cap, l->n_hit + 1, sizeof *l->hit))
		die("out of memory");
	l->hit[l->n_hit++] = job;
}

static bool was_hit(const struct load *l, uint64_t job)
{
	for (size_t i = 0; i < l->n_hit; i++)
		if (l->hit[i] == job)
			return true;
	return false;
}

void load_finish(struct load *l)
{
	atomic_store(&l->ending, true);
	for (unsigned i = 0; i < l->p.clients; i++)
		pthread_join(l->client[i].thread, NULL);
}

void load_free(struct load *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < l->p.clients; i++)
		free(l->client[i].entry);
	free(l->hit);
	free(l->client);
	free(l);
}

/* ---- the books ---- */

struct audit {
	struct load *load;
	struct load_books *books;
	FILE *to;
	unsigned long n;
};

__attribute__((format(printf, 2, 3))) static void find(struct audit *a, const char *fmt, ...)
{
	va_list args;

	if (a->n++ >= MAX_COMPLAINTS)
		return;
	va_start(args, fmt);
	vfprintf(a->to, fmt, args);
	va_end(args);
	fprintf(a->to, "\n");
}

static struct entry *entry_of(struct load *l, const char *name)
{
	unsigned client;
	size_t i;

	if (sscanf(name, "%u-%zu", &client, &i) != 2 || client >= l->p.clients || i >= l->client[client].n)
		return NULL;
	return &l->client[client].entry[i];
}

/* What the jobs wrote down: each line must belong to a job that was acknowledged. */
static void read_runs(struct audit *a)
{
	FILE *f = fopen(a->load->fixture.runs, "r");
	char mark, name[64];
	unsigned long long id;
	char line[160];

	if (!f) {
		find(a, "%s is not there", a->load->fixture.runs);
		return;
	}
	while (fgets(line, sizeof line, f)) {
		struct entry *e;

		if (sscanf(line, "%c %llu %63s", &mark, &id, name) != 3 || (mark != 'B' && mark != 'E')) {
			find(a, "a job wrote: %s", line);
			continue;
		}
		e = entry_of(a->load, name);
		if (!e || e->id != id)
			find(a, "job %llu (key %s) ran, and nobody was told of it", id, name);
		else if (mark == 'B')
			e->begun++;
		else
			e->ended++;
	}
	fclose(f);
}

static void check_row(struct audit *a, unsigned long long id, const char *key, const char *state,
		      const char *reason)
{
	struct entry *e = entry_of(a->load, key);
	unsigned long *count = !strcmp(state, "done")        ? &a->books->done
			       : !strcmp(state, "failed")    ? &a->books->failed
			       : !strcmp(state, "cancelled") ? &a->books->cancelled
			       : !strcmp(state, "rejected")  ? &a->books->rejected
			       : !strcmp(state, "lost")      ? &a->books->lost
							     : NULL;

	if (!e || e->id != id) {
		find(a, "job %llu (key %s) is in the database, and nobody was told of it", id, key);
		return;
	}
	if (e->seen)
		find(a, "key %s is in the database twice", key);
	e->seen = true;
	if (!count) {
		find(a, "job %llu is still %s", id, state);
		return;
	}
	++*count;
	if (!strcmp(state, "done") && (e->begun != 1 || e->ended != 1))
		find(a, "job %llu is done, began %u times and ended %u times", id, e->begun, e->ended);
	if (!strcmp(state, "rejected") && e->begun)
		find(a, "job %llu was rejected and ran", id);
	if (e->begun > 1)
		find(a, "job %llu is %s and ran %u times", id, state, e->begun);
	if ((!strcmp(state, "lost") || !strcmp(state, "failed")) && !*reason)
		find(a, "job %llu is %s without a reason", id, state);
	if (!strcmp(state, "lost") && !was_hit(a->load, id))
		find(a, "job %llu is lost, and none of its processes was killed: %s", id, reason);
	/* A job of ours fails only where one of its processes was killed, or a cancellation stopped it and
	 * the daemon died before that was on disk. */
	if (!strcmp(state, "failed") && !was_hit(a->load, id) &&
	    (!e->asked || e->cancelled || strcmp(reason, "stopped on request")))
		find(a, "job %llu failed: %s%s", id, reason,
		     e->cancelled ? " (its cancellation was acknowledged)" : "");
	if (!strcmp(state, "cancelled") && !e->asked)
		find(a, "job %llu is cancelled, and nobody asked for that", id);
}

static void read_database(struct audit *a)
{
	char path[160];
	const char *sql = "SELECT id, coalesce(key, ''), state, coalesce(reason, '') FROM jobs";
	sqlite3 *db = NULL;
	sqlite3_stmt *q = NULL;

	snprintf(path, sizeof path, "%s/postrider.db", a->load->fixture.state);
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) ||
	    sqlite3_prepare_v2(db, sql, -1, &q, NULL)) {
		find(a, "%s: %s", path, db ? sqlite3_errmsg(db) : "out of memory");
	} else {
		while (sqlite3_step(q) == SQLITE_ROW)
			check_row(a, (unsigned long long)sqlite3_column_int64(q, 0),
				  (const char *)sqlite3_column_text(q, 1),
				  (const char *)sqlite3_column_text(q, 2),
				  (const char *)sqlite3_column_text(q, 3));
	}
	sqlite3_finalize(q);
	sqlite3_close(db);
}

static int compare_ids(const void *a_, const void *b_)
{
	uint64_t a = *(const uint64_t *)a_, b = *(const uint64_t *)b_;

	return (a > b) - (a < b);
}

static void check_clients(struct audit *a)
{
	struct load *l = a->load;
	uint64_t *id;
	size_t n = 0, total = 0;

	for (unsigned i = 0; i < l->p.clients; i++)
		total += l->client[i].n;
	id = mem_array(total ? total : 1, sizeof *id);
	if (!id)
		die("out of memory");
	for (unsigned i = 0; i < l->p.clients; i++) {
		struct client *c = &l->client[i];

		if (c->broken[0])
			find(a, "%s", c->broken);
		a->books->retried += c->retried;
		a->books->duplicates += c->duplicates;
		a->books->cancels += c->cancels;
		for (size_t k = 0; k < c->n; k++) {
			if (!c->entry[k].seen)
				find(a, "job %llu (key %u-%zu) was acknowledged and is not in the database",
				     (unsigned long long)c->entry[k].id, i, k);
			id[n++] = c->entry[k].id;
		}
	}
	a->books->submitted = n;
	qsort(id, n, sizeof *id, compare_ids);
	for (size_t k = 1; k < n; k++) {
		if (id[k] == id[k - 1])
			find(a, "job %llu was given to two keys", (unsigned long long)id[k]);
	}
	free(id);
}

unsigned long load_check(struct load *l, struct load_books *out, FILE *to)
{
	struct audit a = { .load = l, .books = out, .to = to };
	char *integrity = ask_database(&l->fixture, "PRAGMA integrity_check");

	*out = (struct load_books){ 0 };
	if (strcmp(integrity, "ok"))
		find(&a, "the database is damaged: %s", integrity);
	free(integrity);
	read_runs(&a);
	read_database(&a);
	check_clients(&a);
	if (a.n > MAX_COMPLAINTS)
		fprintf(to, "... and %lu more\n", a.n - MAX_COMPLAINTS);
	return a.n;
}

/* Writes jobs.csv: one row for each job, policy and replication, in pieces, because a million rows are
 * common. */
#include "sim/compare/record.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/csv.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "sim/compare/folder.h"

#define PIECE_ROWS 4096 /* about a megabyte */
#define CLASH "trace_"

static const char *const before[] = { "policy", "replication", "job", "arrival_s", "tenant", "type", "cpus" };
static const char *const behind[] = { "slo_s",
				      "confidence",
				      "promised",
				      "outcome",
				      "start_s",
				      "end_s",
				      "wait_s",
				      "response_s",
				      "run_s",
				      "batch",
				      "epochs",
				      "promised_s",
				      "promised_upper_s",
				      "predicted_s",
				      "upper_s",
				      "predicted_accuracy",
				      "accuracy",
				      "processes",
				      "njobs",
				      "by_chance" };
#define N_BEFORE (sizeof before / sizeof *before)
#define N_BEHIND (sizeof behind / sizeof *behind)
#define EPOCHS "epochs"

/* Traces of a comparison come from one source, so all have the columns of the first. */
struct jobs_table {
	const struct compare_result *r;
	size_t n_columns; /* of the trace, `epochs` aside */
	size_t *column; /* index in the first trace */
	ptrdiff_t epochs; /* index in the first trace; -1: none */
	char **name; /* as the header has them */
	bool chances; /* a policy takes jobs by chance: the last column is there */
};

static bool is_ours(const char *name)
{
	for (size_t i = 0; i < N_BEFORE; i++)
		if (!strcmp(name, before[i]))
			return true;
	for (size_t i = 0; i < N_BEHIND; i++)
		if (!strcmp(name, behind[i]))
			return true;
	return false;
}

static bool is_a_column(const struct trace *t, const char *name)
{
	for (size_t i = 0; i < t->n_columns; i++)
		if (!strcmp(t->column[i], name))
			return true;
	return false;
}

/* A name that neither we nor the trace have yet. To be freed; NULL: out of memory. */
static char *free_name(const struct trace *t, const char *name)
{
	struct strbuf b = { 0 };

	strbuf_puts(&b, name);
	while (!b.failed && (is_ours(strbuf_text(&b)) ||
			     (strcmp(strbuf_text(&b), name) && is_a_column(t, strbuf_text(&b))))) {
		char *longer = mem_strdup(strbuf_text(&b));

		strbuf_reset(&b);
		b.failed = !longer;
		if (longer) {
			strbuf_puts(&b, CLASH);
			strbuf_puts(&b, longer);
		}
		free(longer);
	}
	if (b.failed) {
		strbuf_release(&b);
		return NULL;
	}
	return b.text;
}

static void jobs_table_release(struct jobs_table *t)
{
	for (size_t i = 0; t->name && i < t->n_columns; i++)
		free(t->name[i]);
	free(t->name);
	free(t->column);
}

bool record_jobs_kept(const struct compare_result *r)
{
	for (size_t i = 0; i < r->n_policies; i++)
		for (size_t k = 0; k < r->replications; k++)
			if (!r->policy[i].run || !r->policy[i].run[k].outcome)
				return false;
	return true;
}

static int jobs_table_init(struct jobs_table *t, const struct compare_result *r, struct err *err)
{
	const struct trace *first = r->trace[0];
	size_t n = first->n_columns;

	*t = (struct jobs_table){ .r = r, .epochs = -1 };
	for (size_t i = 0; i < r->n_policies; i++)
		t->chances |= replay_takes_chances(&r->policy[i].policy, first);
	if (!record_jobs_kept(r))
		return err_fail(err, ERR_ARG, "what became of the single jobs was not kept");
	t->column = mem_calloc(n + 1, sizeof *t->column);
	t->name = mem_calloc(n + 1, sizeof *t->name);
	for (size_t i = 0; t->column && t->name && i < n; i++) {
		if (!strcmp(first->column[i], EPOCHS)) {
			t->epochs = (ptrdiff_t)i;
			continue;
		}
		t->column[t->n_columns] = i;
		t->name[t->n_columns] = free_name(first, first->column[i]);
		if (!t->name[t->n_columns++])
			goto fail;
	}
	if (t->column && t->name)
		return 0;
fail:
	jobs_table_release(t);
	return err_nomem(err, "the table of jobs");
}

/* ---- cells ---- */

static void put_header(const struct jobs_table *t, struct strbuf *out)
{
	for (size_t i = 0; i < N_BEFORE; i++)
		strbuf_printf(out, "%s%s", i ? "," : "", before[i]);
	for (size_t i = 0; i < t->n_columns; i++) {
		strbuf_add(out, ",", 1);
		csv_put(out, t->name[i]);
	}
	for (size_t i = 0; i < N_BEHIND - !t->chances; i++)
		strbuf_printf(out, ",%s", behind[i]);
	strbuf_add(out, "\n", 1);
}

static void put_whole(struct strbuf *out, uint64_t v)
{
	char buf[TEXT_NUMBER];

	strbuf_puts(out, text_decimal(false, v, 0, buf));
}

static void put_number(struct strbuf *out, double v)
{
	char buf[TEXT_NUMBER];

	strbuf_add(out, ",", 1);
	if (isfinite(v)) /* a bound that is infinite bounds nothing: an empty cell */
		strbuf_puts(out, text_shortest(v, buf));
}

static void put_text(struct strbuf *out, const char *text)
{
	strbuf_add(out, ",", 1);
	if (text)
		csv_put(out, text);
}

static void put_seconds(struct strbuf *out, int64_t ns)
{
	char buf[TEXT_NUMBER];

	strbuf_add(out, ",", 1);
	strbuf_puts(out, text_decimal(ns < 0, ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns, 9, buf));
}

static void put_times(struct strbuf *out, const struct trace_job *j, const struct outcome *o)
{
	put_seconds(out, o->start_ns);
	put_seconds(out, o->end_ns);
	put_seconds(out, o->start_ns - j->arrival_ns);
	put_seconds(out, o->end_ns - j->arrival_ns);
	put_seconds(out, o->end_ns - o->start_ns);
}

static const char *value_of(const struct trace_kind *k, const struct trace *t, ptrdiff_t column)
{
	return column >= 0 && (size_t)column < t->n_columns ? k->value[column] : NULL;
}

static void put_row(const struct jobs_table *x, const struct trace *t, size_t i, const char *start,
		    const struct outcome *o, struct strbuf *out)
{
	const struct trace_job *j = &t->job[i];
	const struct trace_kind *k = &t->kind[j->kind];
	bool taken = o->state != OUTCOME_REJECTED && o->state != OUTCOME_REFUSED &&
		     o->state != OUTCOME_DROPPED;

	strbuf_puts(out, start);
	put_whole(out, j->id);
	put_seconds(out, j->arrival_ns);
	put_text(out, t->tenant[j->tenant]);
	put_text(out, j->type >= 0 ? t->type[j->type] : NULL);
	strbuf_add(out, ",", 1);
	put_whole(out, k->cpus);
	for (size_t c = 0; c < x->n_columns; c++)
		put_text(out, value_of(k, t, (ptrdiff_t)x->column[c]));
	put_number(out, j->slo_s);
	put_number(out, j->confidence);
	strbuf_puts(out, o->promised ? ",1," : ",0,");
	strbuf_puts(out, outcome_state_name[o->state]);
	if (taken)
		put_times(out, j, o);
	else
		strbuf_puts(out, ",,,,,");
	put_number(out, o->batch);
	if (isnan(o->epochs))
		put_text(out, value_of(k, t, x->epochs));
	else
		put_number(out, o->epochs);
	put_number(out, o->promised_s);
	put_number(out, o->promised_upper_s);
	put_number(out, o->run_s);
	put_number(out, o->run_upper_s);
	put_number(out, o->predicted_accuracy);
	put_number(out, o->accuracy);
	put_number(out, o->processes);
	put_number(out, o->njobs);
	if (x->chances)
		strbuf_puts(out, o->by_chance ? ",1" : ",0");
	strbuf_add(out, "\n", 1);
}

/* ---- to a file, in pieces ---- */

struct part_file {
	const char *path;
	int fd;
	struct strbuf piece; /* what is not written yet */
};

static int write_piece(struct part_file *f, struct err *err)
{
	const char *at = strbuf_text(&f->piece);
	size_t left = f->piece.len;

	if (f->piece.failed)
		return err_nomem(err, "the rows of jobs");
	while (left) {
		ssize_t n = write(f->fd, at, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return folder_error("write", f->path, err);
		at += n;
		left -= (size_t)n;
	}
	strbuf_reset(&f->piece);
	return 0;
}

static int put_run(const struct jobs_table *x, size_t policy, size_t replication, struct part_file *f,
		   struct err *err)
{
	const struct trace *t = x->r->trace[replication];
	const struct replay_result *run = &x->r->policy[policy].run[replication];
	struct strbuf start = { 0 };
	int status = 0;

	csv_put(&start, x->r->policy[policy].policy.name);
	strbuf_printf(&start, ",%zu,", replication + 1);
	if (start.failed)
		status = err_nomem(err, "the rows of jobs");
	for (size_t i = 0; !status && i < run->n && i < t->n_jobs; i++) {
		put_row(x, t, i, strbuf_text(&start), &run->outcome[i], &f->piece);
		if ((i + 1) % PIECE_ROWS == 0)
			status = write_piece(f, err);
	}
	strbuf_release(&start);
	return status ? status : write_piece(f, err);
}

static int put_all(const struct compare_result *r, struct part_file *f, struct err *err)
{
	struct jobs_table t;
	int status = jobs_table_init(&t, r, err);

	if (status)
		return status;
	put_header(&t, &f->piece);
	for (size_t i = 0; !status && i < r->n_policies; i++)
		for (size_t k = 0; !status && k < r->replications; k++)
			if (!r->policy[i].run[k].is_bound) /* a bound of the optimum has no jobs */
				status = put_run(&t, i, k, f, err);
	jobs_table_release(&t);
	return status ? status : write_piece(f, err);
}

static int write_part(const char *part, const struct compare_result *r, struct err *err)
{
	struct part_file f = { .path = part };
	int status;

	unlink(part); /* never write through a link that somebody put there */
	f.fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (f.fd < 0)
		return folder_error("write", part, err);
	status = put_all(r, &f, err);
	if (!status && fsync(f.fd))
		status = folder_error("write", part, err);
	if (close(f.fd) && !status)
		status = folder_error("write", part, err);
	strbuf_release(&f.piece);
	return status;
}

/* The temporary name is fixed, so that the next run replaces what an interrupted one left. */
int record_jobs_write(const char *dir, const char *name, const struct compare_result *r, struct err *err)
{
	char *path = folder_path(dir, name, err), *part = folder_path(dir, JOBS_PART, err);
	int status = path && part ? write_part(part, r, err) : -ERR_NOMEM;

	if (!status && rename(part, path))
		status = folder_error("write", path, err);
	if (status && part)
		unlink(part);
	free(part);
	free(path);
	return status;
}

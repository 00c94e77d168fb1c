/* Whose observations a training learns from. A model is shared, so what one user's jobs say moves the
 * decisions of all others, and a job may report any accuracy. What a user's rows say is compared with what
 * the model in use expected of them, and with how far the rows of others are off. A change of the machine
 * or of the data shows in the rows of most; what shows in those of one user is that user's alone, true or
 * not, and is left out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "predictors/model.h"
#include "scheduler/daemon/learn/training_data.h"
#include "scheduler/store/store.h"

#define FEW 5 /* rows: users who have fewer are judged together */
#define NOT_KNOWN (-1) /* whose rows they are: as of one user */
#define OF_FEW (-2)
/* Of its own noise: how far the median of a user may be from that of the others, beside the error of a median
 * of so many rows. What is within it, in a fifth of the rows, moves the mean by a fifth of it. */
#define MAY_DIFFER 0.5
#define MEDIAN_ERRORS 3.0
/* What is judged: the least noise (runs with one seed repeat to the last digit), and the least rows of a
 * batch. A straggler is no lie: one long time alone says nothing. */
struct judging {
	double noise;
	size_t rows;
};
static const struct judging by_time = { 0.02, 3 }, by_accuracy = { 0.002, 1 };
#define LEAST_SHARE 30 /* rows that a user may have however few others have */

struct voice {
	double says, weight;
};

struct users {
	struct training_rows *rows;
	int64_t *group; /* by row: the user, OF_FEW or NOT_KNOWN */
	int64_t *of;
	size_t n; /* the groups */
	double *batch, *off; /* by row: its batch, and how far off the model is; NaN: not known */
	double *scratch, *median;
	struct voice *voice; /* n + 1 */
	bool *out; /* by row */
	bool *gone; /* by group: all of its rows are */
};

static int by_number(const void *a_, const void *b_)
{
	double a = *(const double *)a_, b = *(const double *)b_;

	return (a > b) - (a < b);
}

/* Of values in any order; of two in the middle the one nearer to 0, which is what the model says. */
static double median_of(double *v, size_t n)
{
	double low, high;

	qsort(v, n, sizeof *v, by_number);
	low = v[(n - 1) / 2];
	high = v[n / 2];
	return fabs(low) < fabs(high) ? low : high;
}

static size_t count_of(const struct users *u, int64_t group)
{
	size_t n = 0;

	for (size_t i = 0; i < u->rows->n; i++)
		n += u->group[i] == group;
	return n;
}

static void find_groups(struct users *u)
{
	memcpy(u->group, u->rows->uid, u->rows->n * sizeof *u->group);
	for (size_t i = 0; i < u->rows->n; i++)
		if (u->group[i] >= 0 && count_of(u, u->group[i]) < FEW)
			u->group[i] = OF_FEW;
	for (size_t i = 0; i < u->rows->n; i++) {
		size_t k = 0;

		while (k < u->n && u->of[k] != u->group[i])
			k++;
		if (k == u->n)
			u->of[u->n++] = u->group[i];
	}
}

/* How far the rows of a group are off with this batch (NaN: any), into scratch. */
static size_t gather(const struct users *u, int64_t group, double batch)
{
	size_t n = 0;

	for (size_t i = 0; i < u->rows->n; i++)
		if (u->group[i] == group && !isnan(u->off[i]) && (isnan(batch) || u->batch[i] == batch))
			u->scratch[n++] = u->off[i];
	return n;
}

/* The usual noise of one user's rows: the median over users, so that none makes it larger. */
static double noise_of(const struct users *u, double least)
{
	size_t n = 0;

	for (size_t k = 0; k < u->n; k++) {
		size_t rows = gather(u, u->of[k], NAN);
		double middle;

		if (rows < FEW)
			continue;
		middle = median_of(u->scratch, rows);
		for (size_t i = 0; i < rows; i++)
			u->scratch[i] = fabs(u->scratch[i] - middle);
		u->median[n++] = 1.4826 * median_of(u->scratch, rows);
	}
	return n ? fmax(median_of(u->median, n), least) : least;
}

static int by_says(const void *a_, const void *b_)
{
	const struct voice *a = a_, *b = b_;

	return (a->says > b->says) - (a->says < b->says);
}

/* The median by rows, since many users may be one. Of two in the middle as in median_of(). */
static double middle_of(struct voice *v, size_t n)
{
	double all = 0.0, below = 0.0;

	qsort(v, n, sizeof *v, by_says);
	for (size_t i = 0; i < n; i++)
		all += v[i].weight;
	for (size_t i = 0; i < n; i++) {
		below += v[i].weight;
		if (2.0 * below > all)
			return v[i].says;
		if (2.0 * below == all)
			return fabs(v[i].says) < fabs(v[i + 1].says) ? v[i].says : v[i + 1].says;
	}
	return 0.0;
}

#define FAR_OFF 3.0 /* of the noise: such a voice does not say which of the others is in the middle */

/* The median of those that are not far off it: liars, and the model where all have moved, would shift it
 * to the next honest user. */
static double agreed_by(struct voice *v, size_t n, double noise)
{
	double first = middle_of(v, n);
	size_t near = 0;

	for (size_t i = 0; i < n; i++)
		if (fabs(v[i].says - first) <= FAR_OFF * noise)
			v[near++] = v[i];
	return middle_of(v, near);
}

/* The rows of those who disagree about this batch. The model in use has a voice, as loud as the
 * loudest user's; those who disagree about all batches have none. */
static void judge(struct users *u, double batch, double noise, size_t least)
{
	double agreed, off;
	size_t n = 1, rows;

	u->voice[0] = (struct voice){ 0.0, 0.0 };
	for (size_t k = 0; k < u->n; k++) {
		if (u->gone[k] || (rows = gather(u, u->of[k], batch)) < least)
			continue;
		u->voice[n++] = (struct voice){ median_of(u->scratch, rows), (double)rows };
		u->voice[0].weight = fmax(u->voice[0].weight, (double)rows);
	}
	agreed = agreed_by(u->voice, n, noise);
	for (size_t k = 0; k < u->n; k++) {
		if (u->gone[k] || (rows = gather(u, u->of[k], batch)) < least)
			continue;
		off = fabs(median_of(u->scratch, rows) - agreed);
		if (off <= noise * (MAY_DIFFER + MEDIAN_ERRORS / sqrt((double)rows)))
			continue;
		u->gone[k] = isnan(batch);
		for (size_t i = 0; i < u->rows->n; i++)
			u->out[i] |= u->group[i] == u->of[k] && (isnan(batch) || u->batch[i] == batch);
	}
}

static void judge_all(struct users *u, const struct judging *j)
{
	double noise = noise_of(u, j->noise);

	judge(u, NAN, noise, FEW);
	for (size_t i = 0; i < u->rows->n; i++) {
		bool seen = isnan(u->batch[i]);

		for (size_t k = 0; k < i && !seen; k++)
			seen = u->batch[k] == u->batch[i];
		if (!seen)
			judge(u, u->batch[i], noise, j->rows);
	}
}

/* ---- what the model says of them ---- */

static int read_batches(struct users *u, const char *name, struct err *err)
{
	struct store_observation *o = mem_alloc(sizeof *o);

	if (!o)
		return err_nomem(err, "the table to learn from");
	for (size_t i = 0; i < u->rows->n; i++) {
		size_t at = u->rows->at[i];

		u->batch[i] = NAN;
		store_observation_next(u->rows->packed, u->rows->len, &at, o);
		for (size_t k = 0; k < o->n; k++)
			if (!strcmp(o->value[k].name, name))
				u->batch[i] = o->value[k].number;
	}
	free(o);
	return 0;
}

/* Into off: the target's own unit, of times the logarithm. */
static int compare(struct users *u, const struct model_target *target, const struct model *m,
		   const struct table *t, bool times, struct err *err)
{
	const double *is = times ? t->time : t->accuracy;
	double *x = NULL, *said = mem_array(t->n_rows + 1, sizeof *said);
	int rc = said ? features_encode_table(m->features, t, &x, err) : err_nomem(err, "a comparison");

	for (size_t i = 0; i < u->rows->n; i++)
		u->off[i] = NAN;
	if (!rc && is && t->n_rows)
		predictor_predict(&target->predictor, x, t->n_rows, said);
	for (size_t i = 0; !rc && is && i < t->n_rows; i++)
		u->off[t->row[i]] = times ? log(is[i] / said[i]) : is[i] - said[i];
	for (size_t i = 0; i < u->rows->n; i++)
		if (!isfinite(u->off[i]))
			u->off[i] = NAN;
	free(x);
	free(said);
	return rc;
}

static int judge_by(struct users *u, const struct model *m, struct err *err)
{
	struct training_table t = { 0 };
	int rc = training_table_make(NULL, u->rows, 0, u->rows->n, m->schema, &t, err);

	if (!rc)
		rc = read_batches(u, m->schema->decision, err);
	if (!rc)
		rc = compare(u, &m->time, m, t.table, true, err);
	if (!rc)
		judge_all(u, &by_time);
	if (!rc && m->accuracy.predictor.ops)
		rc = compare(u, &m->accuracy, m, t.table, false, err);
	if (!rc && m->accuracy.predictor.ops)
		judge_all(u, &by_accuracy);
	training_table_release(&t);
	return rc;
}

/* ---- shares ---- */

/* Of one who has more than all others and the operator, the latest. */
static void bound_shares(struct users *u, size_t n_base)
{
	size_t n = 0;

	for (size_t i = 0; i < u->rows->n; i++)
		n += !u->out[i];
	for (size_t k = 0; k < u->n; k++) {
		size_t own = 0, most;

		for (size_t i = 0; i < u->rows->n; i++)
			own += !u->out[i] && u->group[i] == u->of[k];
		most = n - own + n_base > LEAST_SHARE ? n - own + n_base : LEAST_SHARE;
		for (size_t i = 0; i < u->rows->n && own > most; i++) {
			if (u->out[i] || u->group[i] != u->of[k])
				continue;
			u->out[i] = true;
			own--;
		}
	}
}

static void leave_out(struct users *u)
{
	struct training_rows *r = u->rows;
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (u->out[i])
			continue;
		r->at[n] = r->at[i];
		r->uid[n++] = r->uid[i];
	}
	r->n_left_out = r->n - n;
	r->n = n;
}

int training_rows_share(struct training_rows *r, const struct model *current, size_t n_base, struct err *err)
{
	struct users u = { .rows = r,
			   .group = mem_calloc(r->n + 1, sizeof *u.group),
			   .of = mem_calloc(r->n + 1, sizeof *u.of),
			   .batch = mem_calloc(r->n + 1, sizeof *u.batch),
			   .off = mem_calloc(r->n + 1, sizeof *u.off),
			   .scratch = mem_calloc(r->n + 1, sizeof *u.scratch),
			   .median = mem_calloc(r->n + 1, sizeof *u.median),
			   .voice = mem_calloc(r->n + 2, sizeof *u.voice),
			   .out = mem_calloc(r->n + 1, sizeof *u.out),
			   .gone = mem_calloc(r->n + 1, sizeof *u.gone) };
	int rc = 0;

	if (!u.group || !u.of || !u.batch || !u.off || !u.scratch || !u.median || !u.voice || !u.out ||
	    !u.gone)
		rc = err_nomem(err, "the users to learn from");
	if (!rc && r->n)
		find_groups(&u);
	if (!rc && u.n > 1 && current)
		rc = judge_by(&u, current, err);
	if (!rc && u.n > 1) {
		bound_shares(&u, n_base);
		leave_out(&u);
	}
	free(u.group);
	free(u.of);
	free(u.batch);
	free(u.off);
	free(u.scratch);
	free(u.median);
	free(u.voice);
	free(u.out);
	free(u.gone);
	return rc;
}

/* The latest of one who has more than half go before the window, and the latest of others come into it. */
void training_rows_spread(struct training_rows *r, size_t n)
{
	for (size_t i = r->n; n && i-- > r->n - n;) {
		size_t own = 0, other = r->n - n;

		for (size_t k = i; k < r->n; k++)
			own += r->uid[k] == r->uid[i];
		if (own <= (n + 1) / 2)
			continue;
		while (other > 0 && r->uid[other - 1] == r->uid[i])
			other--;
		if (!other--)
			continue; /* nobody else has one */
		size_t at = r->at[i];
		int64_t uid = r->uid[i];

		r->at[i] = r->at[other];
		r->uid[i] = r->uid[other];
		r->at[other] = at;
		r->uid[other] = uid;
	}
}

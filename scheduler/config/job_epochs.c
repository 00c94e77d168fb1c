/* Epochs of a job type: which parameter holds them, what open ones are chosen from, and whether a job may
 * stop before the last one. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/config/type_parts.h"

/* Entry i of n, thinned out to m of them, both ends kept. */
static size_t thinned(size_t i, size_t n, size_t m)
{
	return n <= m ? i : (size_t)round((double)i * (double)(n - 1) / (double)(m - 1));
}

size_t job_type_epochs(const struct job_type *t, double from, double to, double *out, size_t max)
{
	size_t first = 0, end = t->n_epochs, n, m;

	from = ceil(from);
	if (!(from <= to) || max < 2 || !(to < 0x1p53))
		return 0;
	while (first < end && t->epochs[first] < from)
		first++;
	while (end > first && t->epochs[end - 1] > to)
		end--;
	n = t->n_epochs ? end - first : (size_t)(floor(to) - from) + 1;
	m = n < max ? n : max;
	for (size_t i = 0; i < m; i++) {
		size_t at = thinned(i, n, m);

		out[i] = t->n_epochs ? t->epochs[first + at] : from + (double)at;
	}
	return m;
}

static const struct job_param *epochs_param(const struct job_type *t)
{
	const char *name = t->epochs_param ? t->epochs_param : "epochs";

	return param_find(t, name, strlen(name));
}

double job_type_least_epochs(const struct job_type *t)
{
	const struct job_param *p = epochs_param(t);

	return p ? fmax(1.0, p->min) : 1.0;
}

/* The parameter that holds the number of epochs: one called "epochs", unless another is named. */
void epochs_param_read(struct fields *f, const char *name, void *object)
{
	struct job_type *t = object;
	const struct job_param *p;

	field_text(f, name, JOB_TYPE_MAX_NAME, &t->epochs_param);
	p = epochs_param(t);
	if (t->epochs_param && !p)
		fields_fail(f, ERR_FORMAT, name, "there is no parameter '%s'", t->epochs_param);
	else if (t->epochs_param && p->kind == PARAM_WORD)
		fields_fail(f, ERR_FORMAT, name, "the parameter '%s' is a word, not a number",
			    t->epochs_param);
	for (size_t i = 0; i < t->n_params; i++)
		if (&t->param[i] != p && t->param[i].kind == PARAM_INTEGER && t->param[i].otherwise &&
		    param_is_range(t->param[i].otherwise))
			fields_fail(f, ERR_FORMAT, name, "only epochs may have a range as default, '%s' has",
				    t->param[i].name);
	if (f->rc || t->epochs_param || !p || p->kind == PARAM_WORD)
		return;
	t->epochs_param = mem_strdup("epochs");
	if (!t->epochs_param)
		fields_nomem(f, name);
}

static bool need_epochs(struct fields *f, const char *name, const struct job_type *t)
{
	if (!t->epochs_param)
		fields_fail(f, ERR_FORMAT, name,
			    "needs a parameter that holds the number of epochs: see epochs_param");
	return t->epochs_param != NULL;
}

/* {"min":5,"max":50,"step":5} */
static void read_steps(struct fields *f, const char *name, struct job_type *t)
{
	static const char *const known[] = { "min", "max", "step", NULL };
	uint64_t min = 0, max = 0, step = 1;
	struct fields s;

	if (!fields_open_member(&s, f, name, known))
		return;
	field_whole(&s, "min", 1, EPOCHS_MAX, &min);
	field_whole(&s, "max", 1, EPOCHS_MAX, &max);
	field_whole(&s, "step", 1, EPOCHS_MAX, &step);
	if (!min || !max)
		fields_fail(&s, ERR_FORMAT, min ? "max" : "min", "is needed");
	else if (min > max)
		fields_fail(&s, ERR_FORMAT, "max", "is below min");
	else if ((max - min) / step + 1 > JOB_TYPE_MAX_EPOCHS)
		fields_fail(&s, ERR_FORMAT, "step", "makes %llu counts; at most %d are allowed",
			    (unsigned long long)((max - min) / step + 1), JOB_TYPE_MAX_EPOCHS);
	for (uint64_t v = min; !s.rc && v <= max; v += step)
		t->epochs[t->n_epochs++] = (double)v;
	fields_close(&s, f);
}

void epochs_choices_read(struct fields *f, const char *name, void *object)
{
	struct job_type *t = object;
	const struct json *given = fields_get(f, name);
	const struct job_param *p;
	char shown[32];

	if (!given || !need_epochs(f, name, t))
		return;
	if (json_type(given) == JSON_OBJECT)
		read_steps(f, name, t);
	else
		counts_read(f, name, JOB_TYPE_MAX_EPOCHS, EPOCHS_MAX, t->epochs, &t->n_epochs);
	p = epochs_param(t);
	for (size_t i = 0; i < t->n_epochs && !f->rc; i++) {
		if (t->epochs[i] < p->min || t->epochs[i] > p->max)
			fields_fail(f, ERR_FORMAT, name, "%s is not within the bounds of the parameter %s",
				    text_shortest(t->epochs[i], shown), p->name);
	}
}

void epochs_choices_write(const void *object, struct json_writer *w)
{
	const struct job_type *t = object;

	put_numbers(w, t->epochs, t->n_epochs);
}

void early_stop_read(struct fields *f, const char *name, void *object)
{
	struct job_type *t = object;

	field_bool(f, name, &t->early_stop);
	if (t->early_stop)
		need_epochs(f, name, t);
}

/* job.json may have said it already. */
void steer_read(struct fields *f, const char *name, void *object)
{
	struct job_type *t = object;

	field_bool(f, name, &t->steer);
	if (t->steer)
		need_epochs(f, name, t);
}

void counts_read(struct fields *f, const char *name, size_t max_n, double max, double *out, size_t *out_n)
{
	const struct json *list = fields_list(f, name, 1, max_n);
	struct err why = { 0 };
	char key[64];
	size_t n = 0;

	for (const struct json *e = json_first(list); e && !f->rc; e = json_next(e), n++) {
		out[n] = json_number(e, NAN);
		snprintf(key, sizeof key, "%s[%zu]", name, n);
		if (!(out[n] >= 1.0 && out[n] <= max) || out[n] != floor(out[n]))
			fields_fail(f, ERR_FORMAT, key, "must be a whole number from 1 to %.0f", max);
	}
	if (f->rc)
		return;
	*out_n = n;
	if (text_distinct(out, n, &why))
		fields_fail(f, ERR_FORMAT, name, "%s", why.text);
}

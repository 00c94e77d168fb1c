/* Epochs of a job type: which parameter holds them, what open ones are chosen from, and whether a job may stop
 * before the last one. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/stats.h"
#include "common/text/text.h"
#include "scheduler/config/type_parts.h"

#define MAX_EPOCHS 1000000

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

/* The parameter that says how many epochs there are; one that is called so, unless another is named. */
static void read_epochs_param(struct fields *f, struct job_type *t)
{
	const struct job_param *p;

	field_text(f, "epochs_param", JOB_TYPE_MAX_NAME, &t->epochs_param);
	if (f->rc)
		return;
	p = param_find(t, t->epochs_param ? t->epochs_param : "epochs",
		       strlen(t->epochs_param ? t->epochs_param : "epochs"));
	if (t->epochs_param && !p)
		fields_fail(f, ERR_FORMAT, "epochs_param", "there is no parameter '%s'", t->epochs_param);
	else if (t->epochs_param && p->kind == PARAM_WORD)
		fields_fail(f, ERR_FORMAT, "epochs_param", "the parameter '%s' is a word, not a number",
			    t->epochs_param);
	if (t->epochs_param || !p || p->kind == PARAM_WORD)
		return;
	t->epochs_param = mem_strdup("epochs");
	if (!t->epochs_param)
		fields_nomem(f, "epochs_param");
}

/* One count a job may be given. */
static void add_epochs(struct fields *f, struct job_type *t, const char *key, const struct job_param *p,
		       double v)
{
	char shown[32];

	if (!(v >= 1.0 && v <= MAX_EPOCHS) || v != floor(v))
		fields_fail(f, ERR_FORMAT, key, "must be a whole number from 1 to %d", MAX_EPOCHS);
	else if (v < p->min || v > p->max)
		fields_fail(f, ERR_FORMAT, key, "%s is not within the bounds of the parameter %s",
			    text_shortest(v, shown), p->name);
	else
		t->epochs[t->n_epochs++] = v;
}

/* {"min":5,"max":50,"step":5} */
static void read_epochs_steps(struct fields *f, struct job_type *t, const struct job_param *p)
{
	static const char *const known[] = { "min", "max", "step", NULL };
	uint64_t min = 0, max = 0, step = 1;
	struct fields s;

	if (!fields_open_member(&s, f, "epochs_choices", known))
		return;
	field_whole(&s, "min", 1, MAX_EPOCHS, &min);
	field_whole(&s, "max", 1, MAX_EPOCHS, &max);
	field_whole(&s, "step", 1, MAX_EPOCHS, &step);
	if (!min || !max)
		fields_fail(&s, ERR_FORMAT, min ? "max" : "min", "is needed");
	else if (min > max)
		fields_fail(&s, ERR_FORMAT, "max", "is below min");
	else if ((max - min) / step + 1 > JOB_TYPE_MAX_EPOCHS)
		fields_fail(&s, ERR_FORMAT, "step", "makes %llu counts; at most %d are allowed",
			    (unsigned long long)((max - min) / step + 1), JOB_TYPE_MAX_EPOCHS);
	for (uint64_t v = min; !s.rc && v <= max; v += step)
		add_epochs(&s, t, "max", p, (double)v);
	fields_close(&s, f);
}

static void read_epochs_list(struct fields *f, struct job_type *t, const struct job_param *p)
{
	const struct json *list = fields_list(f, "epochs_choices", 1, JOB_TYPE_MAX_EPOCHS);
	char key[32], shown[32];

	for (const struct json *e = json_first(list); e && !f->rc; e = json_next(e)) {
		snprintf(key, sizeof key, "epochs_choices[%zu]", t->n_epochs);
		add_epochs(f, t, key, p, json_number(e, NAN));
	}
	stats_sort(t->epochs, t->n_epochs);
	for (size_t i = 1; i < t->n_epochs; i++) {
		if (t->epochs[i] == t->epochs[i - 1])
			fields_fail(f, ERR_FORMAT, "epochs_choices", "%s is there twice",
				    text_shortest(t->epochs[i], shown));
	}
}

void epochs_read(struct fields *f, struct job_type *t)
{
	const struct json *choices;
	const struct job_param *p;

	read_epochs_param(f, t);
	choices = fields_get(f, "epochs_choices");
	field_bool(f, "early_stop", &t->early_stop);
	if (f->rc || (!choices && !t->early_stop))
		return;
	if (!t->epochs_param) {
		fields_fail(f, ERR_FORMAT, choices ? "epochs_choices" : "early_stop",
			    "needs a parameter that holds the number of epochs: see epochs_param");
		return;
	}
	p = param_find(t, t->epochs_param, strlen(t->epochs_param));
	if (json_type(choices) == JSON_OBJECT)
		read_epochs_steps(f, t, p);
	else
		read_epochs_list(f, t, p);
}

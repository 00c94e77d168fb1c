/* Reads compare.json and what lies beside it; jobs.c has the rows of jobs.csv. See data.h.
 *
 * Files may come from elsewhere or from another version: each member that is used is checked, and the
 * complaint names file, member and what was expected. Members that this version does not know are left
 * alone. */
#include "sim/report/data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/json/fields.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "sim/compare/folder.h"

/* ---- files ---- */

/* A file that need not be there leaves *out as it was. */
static int read_json(const char *dir, const char *name, bool needed, struct json **out, struct err *err)
{
	char *path = folder_path(dir, name, err);
	struct err why = { 0 };
	int rc;

	if (!path)
		return -ERR_NOMEM;
	rc = json_read_file(path, REPORT_MAX_JSON, out, &why);
	if (!rc && json_type(*out) != JSON_OBJECT)
		rc = err_fail(&why, ERR_FORMAT, "%s:1:1: an object { ... } is expected",
			      text_tail(path, 200));
	if (rc && why.code == ERR_NOTFOUND && needed)
		rc = err_fail(&why, ERR_NOTFOUND,
			      "%s: there is no such file; 'postrider compare' or 'postrider replay' with -o "
			      "DIR writes it",
			      text_tail(path, 200));
	if (rc && why.code == ERR_NOTFOUND && !needed)
		rc = 0;
	if (rc && err)
		*err = why;
	free(path);
	return rc;
}

static int read_csv(const char *dir, const char *name, struct csv **out, struct err *err)
{
	char *path = folder_path(dir, name, err);
	struct err why = { 0 };
	int rc;

	if (!path)
		return -ERR_NOMEM;
	rc = csv_read_file(path, out, &why);
	if (rc && why.code == ERR_NOTFOUND)
		rc = 0;
	if (rc && err)
		*err = why;
	free(path);
	return rc;
}

/* ---- policies ---- */

static const struct text_limits any_number = { .min = -INFINITY, .max = INFINITY };

/* A number, or NaN for null and absent. */
static void read_number(struct fields *f, const char *key, double *out)
{
	*out = NAN;
	field_within(f, key, &any_number, out);
}

static void read_metric(struct fields *f, enum metric m, struct interval *out)
{
	const struct json *ci;
	char name[96];

	read_number(f, metric_info[m].name, &out->mean);
	snprintf(name, sizeof name, "%s_ci", metric_info[m].name);
	ci = fields_list(f, name, 2, 2);
	for (const struct json *v = json_first(ci); v; v = json_next(v)) {
		if (json_type(v) != JSON_NUMBER && json_type(v) != JSON_NULL)
			fields_fail(f, ERR_FORMAT, name, "[low, high] is expected");
	}
	out->low = json_number(json_at(ci, 0), NAN);
	out->high = json_number(json_at(ci, 1), NAN);
}

static void read_versus(struct fields *f, struct paired_result *out)
{
	struct fields versus, one;

	for (size_t m = 0; m < METRICS; m++)
		out[m] = (struct paired_result){ NAN, NAN, NAN, NAN, 0, NAN };
	if (!fields_open_member(&versus, f, "versus", NULL))
		return;
	for (size_t m = 0; m < METRICS; m++) {
		if (!fields_open_member(&one, &versus, metric_info[m].name, NULL))
			continue;
		read_number(&one, "difference", &out[m].difference);
		read_number(&one, "low", &out[m].low);
		read_number(&one, "high", &out[m].high);
		read_number(&one, "p", &out[m].p);
		fields_close(&one, &versus);
	}
	fields_close(&versus, f);
}

static void read_calibration(struct fields *f, struct report_policy *out)
{
	const struct json *list = fields_list(f, "calibration", 0, SIZE_MAX);

	if (!list)
		return;
	out->calibration = mem_calloc(json_size(list) + 1, sizeof *out->calibration);
	if (!out->calibration)
		fields_nomem(f, "calibration");
	for (const struct json *v = json_first(list); v && !f->rc; v = json_next(v)) {
		struct report_calibration c = { .confidence = json_number(json_get(v, "confidence"), NAN),
						.runs = json_number(json_get(v, "runs"), NAN),
						.within = json_number(json_get(v, "within"), NAN) };

		if (!(c.confidence >= 0.0 && c.confidence <= 1.0) || !(c.runs >= 0.0) || !(c.within >= 0.0) ||
		    !(c.within <= c.runs))
			fields_fail(f, ERR_FORMAT, "calibration",
				    "{confidence from 0 to 1, runs, within} with within <= runs is expected");
		else if (c.runs > 0.0)
			out->calibration[out->n_calibrations++] = c;
	}
}

static void read_importances(struct fields *f, struct report_policy *out)
{
	struct fields all;
	double v;

	if (!fields_open_member(&all, f, "importances", NULL))
		return;
	for (const struct json *m = json_first(all.object); m; m = json_next(m))
		read_number(&all, json_key(m), &v);
	fields_close(&all, f);
	out->importances = json_first(all.object) ? all.object : NULL;
}

static void read_policy(struct fields *f, struct report_policy *out)
{
	fields_need(f, "name");
	field_string(f, "name", SIZE_MAX, &out->name);
	if (f->rc)
		return;
	out->title = json_string(fields_get(f, "title"), NULL);
	out->oracle = !strcmp(out->name, "oracle") || !strcmp(out->name, "greedy-oracle") ||
		      !strcmp(out->name, "priced-oracle") || !strcmp(out->name, "optimum");
	read_number(f, "batch", &out->batch);
	for (size_t m = 0; m < METRICS; m++)
		read_metric(f, (enum metric)m, &out->metric[m]);
	read_versus(f, out->versus);
	read_calibration(f, out);
	read_importances(f, out);
}

static void policies_release(struct report_policies *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->policy[i].calibration);
	free(p->policy);
}

/* The list "policies" of the open object. */
static void read_policies(struct fields *f, struct report_policies *out)
{
	const struct json *list =
		fields_need(f, "policies") ? fields_list(f, "policies", 1, REPORT_MAX_POLICIES) : NULL;
	char place[FIELDS_MAX_KEY];
	struct fields one;

	out->policy = list ? mem_calloc(json_size(list), sizeof *out->policy) : NULL;
	if (!out->policy)
		fields_nomem(f, "policies");
	for (const struct json *v = json_first(list); v && !f->rc; v = json_next(v)) {
		if (!fields_open_value(&one, f, fields_element("policies", out->n, place), v, NULL))
			return;
		read_policy(&one, &out->policy[out->n++]);
		if (!one.rc && report_find(out, out->policy[out->n - 1].name) != out->n - 1)
			fields_fail(&one, ERR_FORMAT, "name", "'%.60s' appears twice",
				    out->policy[out->n - 1].name);
		fields_close(&one, f);
	}
}

size_t report_find(const struct report_policies *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(p->policy[i].name, name))
			return i;
	return SIZE_MAX;
}

size_t report_best(const struct report_policies *p, enum metric m, int sign)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < p->n; i++) {
		double v = p->policy[i].metric[m].mean;

		if (isnan(v) || (p->policy[i].oracle && p->n > 1))
			continue;
		if (best == SIZE_MAX || sign * v > sign * p->policy[best].metric[m].mean)
			best = i;
	}
	return best;
}

/* ---- the comparison as a whole ---- */

static int read_baseline(struct report_data *d, struct err *err)
{
	const struct json *v = json_get(d->compare, "baseline");
	double index = json_number(v, NAN);

	d->baseline = SIZE_MAX;
	if (json_type(v) == JSON_STRING) {
		d->baseline = report_find(&d->policies, json_string(v, ""));
		if (d->baseline == SIZE_MAX)
			return err_fail(err, ERR_FORMAT,
					"compare.json: baseline: '%.60s' is none of the policies",
					json_string(v, ""));
	} else if (index >= 0.0 && index < (double)d->policies.n) {
		d->baseline = (size_t)index;
	} else if (json_type(v) != JSON_ABSENT && json_type(v) != JSON_NULL) {
		return err_fail(err, ERR_FORMAT, "compare.json: baseline: the name of a policy is expected");
	}
	if (d->replay)
		d->baseline = SIZE_MAX; /* of itself says nothing */
	return 0;
}

static void choose_focus(struct report_data *d)
{
	d->focus = report_find(&d->policies, "postrider");
	for (size_t i = 0; i < d->policies.n && d->focus == SIZE_MAX; i++)
		if (i != d->baseline && !d->policies.policy[i].oracle)
			d->focus = i;
	if (d->focus == SIZE_MAX)
		d->focus = 0;
}

/* From the single p values, which older comparisons have too. */
static void correct_tests(struct report_data *d)
{
	struct paired_result *versus[REPORT_MAX_POLICIES];

	for (size_t i = 0; i < d->policies.n; i++)
		versus[i] = i == d->baseline ? NULL : d->policies.policy[i].versus;
	d->tests = metrics_correct(versus, d->policies.n);
}

static int read_compare(const char *dir, struct report_data *d, struct err *err)
{
	int rc = read_json(dir, "compare.json", true, &d->compare, err);
	struct fields f;

	if (rc)
		return rc;
	fields_open(&f, "compare.json", ": ", d->compare, NULL, err);
	read_policies(&f, &d->policies);
	d->replay = d->policies.n == 1;
	d->level = 0.95;
	field_within(&f, "level", &any_number, &d->level);
	if (!(d->level > 0.0 && d->level < 1.0))
		fields_fail(&f, ERR_FORMAT, "level", "a number between 0 and 1 is expected");
	d->replications = json_number(json_get(d->compare, "replications"), 1.0);
	if (f.rc)
		return f.rc;
	d->note = json_string(json_get(d->compare, "note"), NULL);
	rc = read_baseline(d, err);
	choose_focus(d);
	correct_tests(d);
	return rc;
}

static int read_sweep(const char *dir, struct report_data *d, struct err *err)
{
	const struct json *points;
	char place[FIELDS_MAX_KEY];
	struct fields f, one;
	int rc = read_json(dir, "sweep.json", false, &d->sweep_json, err);

	if (rc || !d->sweep_json)
		return rc;
	fields_open(&f, "sweep.json", ": ", d->sweep_json, NULL, err);
	fields_need(&f, "points");
	points = fields_list(&f, "points", 1, REPORT_MAX_SWEEP);
	if (!points)
		return f.rc;
	d->sweep_key = json_string(json_get(d->sweep_json, "key"), "value");
	d->sweep_value = mem_calloc(json_size(points), sizeof *d->sweep_value);
	d->sweep = mem_calloc(json_size(points), sizeof *d->sweep);
	if (!d->sweep_value || !d->sweep)
		return err_nomem(err, "a report");
	for (const struct json *v = json_first(points); v && !f.rc; v = json_next(v)) {
		if (!fields_open_value(&one, &f, fields_element("points", d->n_sweep, place), v, NULL))
			break;
		fields_need(&one, "value");
		read_number(&one, "value", &d->sweep_value[d->n_sweep]);
		read_policies(&one, &d->sweep[d->n_sweep++]);
		fields_close(&one, &f);
	}
	return f.rc;
}

int report_data_read(const char *dir, struct report_data **out, struct err *err)
{
	struct report_data *d;
	struct stat st;
	int rc;

	if (stat(dir, &st))
		return err_fail(err, ERR_NOTFOUND, "%s: there is no such folder", text_tail(dir, 200));
	d = mem_calloc(1, sizeof *d);
	if (!d)
		return err_nomem(err, "a report");
	rc = read_compare(dir, d, err);
	if (!rc)
		rc = read_json(dir, "timing.json", false, &d->timing, err);
	if (!rc)
		rc = read_sweep(dir, d, err);
	if (!rc)
		rc = read_csv(dir, "jobs.csv", &d->jobs, err);
	if (!rc && d->jobs)
		rc = report_read_jobs(d, err);
	if (!rc)
		rc = read_csv(dir, "training.csv", &d->training, err);
	if (rc)
		report_data_free(d);
	else
		*out = d;
	return rc;
}

void report_data_free(struct report_data *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n_sweep; i++)
		policies_release(&d->sweep[i]);
	free(d->sweep);
	free(d->sweep_value);
	policies_release(&d->policies);
	free(d->job);
	csv_free(d->jobs);
	csv_free(d->training);
	json_free(d->compare);
	json_free(d->timing);
	json_free(d->sweep_json);
	free(d);
}

/* Reads compare.json and what lies beside it; report_jobs.c has the rows of jobs.csv. See report_data.h.
 *
 * Files may come from elsewhere or from another version: each member that is used is checked, and the complaint names
 * file, member and what was expected. Members that this version does not know are left alone. */
#include "sim/report/data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

struct place { /* where we are, for complaints */
	const char *file;
	size_t policy;
};

static int bad_member(const struct place *at, const char *member, const char *expected, struct err *err)
{
	return err_fail(err, ERR_FORMAT, "%s: policies[%zu].%s: %s is expected", at->file, at->policy, member,
			expected);
}

/* A number, or NaN for null and absent; false: something else. */
static bool number_or_nan(const struct json *v, double *out)
{
	enum json_type t = json_type(v);

	*out = json_number(v, NAN);
	return t == JSON_ABSENT || t == JSON_NULL || t == JSON_NUMBER;
}

static int read_metric(const struct place *at, const struct json *policy, enum metric m, struct interval *out,
		       struct err *err)
{
	const struct json *ci;
	char name[96];

	if (!number_or_nan(json_get(policy, metric_info[m].name), &out->mean))
		return bad_member(at, metric_info[m].name, "a number or null", err);
	snprintf(name, sizeof name, "%s_ci", metric_info[m].name);
	ci = json_get(policy, name);
	out->low = out->high = NAN;
	if (json_type(ci) == JSON_ABSENT || json_type(ci) == JSON_NULL)
		return 0;
	if (json_type(ci) != JSON_ARRAY || json_size(ci) != 2 || !number_or_nan(json_at(ci, 0), &out->low) ||
	    !number_or_nan(json_at(ci, 1), &out->high))
		return bad_member(at, name, "[low, high]", err);
	return 0;
}

static int read_versus(const struct place *at, const struct json *policy, enum metric m,
		       struct paired_result *out, struct err *err)
{
	const struct json *versus = json_get(policy, "versus"), *v;

	*out = (struct paired_result){ NAN, NAN, NAN, NAN, 0 };
	if (json_type(versus) == JSON_ABSENT || json_type(versus) == JSON_NULL)
		return 0;
	if (json_type(versus) != JSON_OBJECT)
		return bad_member(at, "versus", "an object", err);
	v = json_get(versus, metric_info[m].name);
	if (json_type(v) == JSON_ABSENT || json_type(v) == JSON_NULL)
		return 0;
	if (json_type(v) != JSON_OBJECT || !number_or_nan(json_get(v, "difference"), &out->difference) ||
	    !number_or_nan(json_get(v, "low"), &out->low) ||
	    !number_or_nan(json_get(v, "high"), &out->high) || !number_or_nan(json_get(v, "p"), &out->p))
		return bad_member(at, "versus", "for each metric {difference, low, high, p}", err);
	return 0;
}

static int read_calibration(const struct place *at, const struct json *policy, struct report_policy *out,
			    struct err *err)
{
	const struct json *list = json_get(policy, "calibration");

	if (json_type(list) == JSON_ABSENT || json_type(list) == JSON_NULL)
		return 0;
	if (json_type(list) != JSON_ARRAY)
		return bad_member(at, "calibration", "an array", err);
	out->calibration = mem_calloc(json_size(list) + 1, sizeof *out->calibration);
	if (!out->calibration)
		return err_nomem(err, "a report");
	for (const struct json *v = json_first(list); v; v = json_next(v)) {
		struct report_calibration c = { .confidence = json_number(json_get(v, "confidence"), NAN),
						.runs = json_number(json_get(v, "runs"), NAN),
						.within = json_number(json_get(v, "within"), NAN) };

		if (!(c.confidence >= 0.0 && c.confidence <= 1.0) || !(c.runs >= 0.0) || !(c.within >= 0.0) ||
		    !(c.within <= c.runs))
			return bad_member(at, "calibration",
					  "{confidence from 0 to 1, runs, within} with within <= runs", err);
		if (c.runs > 0.0)
			out->calibration[out->n_calibrations++] = c;
	}
	return 0;
}

static int read_importances(const struct place *at, const struct json *policy, struct report_policy *out,
			    struct err *err)
{
	const struct json *v = json_get(policy, "importances");

	if (json_type(v) == JSON_ABSENT || json_type(v) == JSON_NULL)
		return 0;
	if (json_type(v) != JSON_OBJECT)
		return bad_member(at, "importances", "an object", err);
	for (const struct json *m = json_first(v); m; m = json_next(m))
		if (json_type(m) != JSON_NUMBER && json_type(m) != JSON_NULL)
			return bad_member(at, "importances", "a number for each feature", err);
	out->importances = json_size(v) ? v : NULL;
	return 0;
}

static int read_policy(const struct place *at, const struct json *v, struct report_policy *out,
		       struct err *err)
{
	int rc = 0;

	if (json_type(v) != JSON_OBJECT)
		return err_fail(err, ERR_FORMAT, "%s: policies[%zu]: an object is expected", at->file,
				at->policy);
	out->name = json_string(json_get(v, "name"), NULL);
	if (!out->name || !*out->name)
		return bad_member(at, "name", "the name of a policy", err);
	out->title = json_string(json_get(v, "title"), NULL);
	out->oracle = !strcmp(out->name, "oracle");
	for (size_t m = 0; m < METRICS && !rc; m++) {
		rc = read_metric(at, v, (enum metric)m, &out->metric[m], err);
		if (!rc)
			rc = read_versus(at, v, (enum metric)m, &out->versus[m], err);
	}
	if (!rc)
		rc = read_calibration(at, v, out, err);
	if (!rc)
		rc = read_importances(at, v, out, err);
	return rc;
}

static void policies_release(struct report_policies *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->policy[i].calibration);
	free(p->policy);
}

static int read_policies(const char *file, const struct json *list, struct report_policies *out,
			 struct err *err)
{
	size_t n = json_size(list);
	struct place at = { .file = file };

	if (json_type(list) != JSON_ARRAY || !n || n > REPORT_MAX_POLICIES)
		return err_fail(err, ERR_FORMAT, "%s: policies: an array of 1 to %d is expected", file,
				REPORT_MAX_POLICIES);
	out->policy = mem_calloc(n, sizeof *out->policy);
	if (!out->policy)
		return err_nomem(err, "a report");
	for (const struct json *v = json_first(list); v; v = json_next(v)) {
		int rc;

		at.policy = out->n;
		rc = read_policy(&at, v, &out->policy[out->n++], err);
		if (rc)
			return rc;
		if (report_find(out, out->policy[out->n - 1].name) != out->n - 1)
			return bad_member(&at, "name", "a name that no other has", err);
	}
	return 0;
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

static int read_compare(const char *dir, struct report_data *d, struct err *err)
{
	int rc = read_json(dir, "compare.json", true, &d->compare, err);

	if (!rc)
		rc = read_policies("compare.json", json_get(d->compare, "policies"), &d->policies, err);
	if (rc)
		return rc;
	d->replay = d->policies.n == 1;
	d->level = json_number(json_get(d->compare, "level"), 0.95);
	if (!(d->level > 0.0 && d->level < 1.0))
		return err_fail(err, ERR_FORMAT, "compare.json: level: a number between 0 and 1 is expected");
	d->replications = json_number(json_get(d->compare, "replications"), 1.0);
	rc = read_baseline(d, err);
	choose_focus(d);
	return rc;
}

static int read_sweep(const char *dir, struct report_data *d, struct err *err)
{
	const struct json *points;
	size_t n;
	int rc = read_json(dir, "sweep.json", false, &d->sweep_json, err);

	if (rc || !d->sweep_json)
		return rc;
	points = json_get(d->sweep_json, "points");
	n = json_size(points);
	d->sweep_key = json_string(json_get(d->sweep_json, "key"), "value");
	if (json_type(points) != JSON_ARRAY || !n || n > REPORT_MAX_SWEEP)
		return err_fail(err, ERR_FORMAT, "sweep.json: points: an array of 1 to %d is expected",
				REPORT_MAX_SWEEP);
	d->sweep_value = mem_calloc(n, sizeof *d->sweep_value);
	d->sweep = mem_calloc(n, sizeof *d->sweep);
	if (!d->sweep_value || !d->sweep)
		return err_nomem(err, "a report");
	for (const struct json *v = json_first(points); v && !rc; v = json_next(v)) {
		char file[64];

		snprintf(file, sizeof file, "sweep.json: points[%zu]", d->n_sweep);
		d->sweep_value[d->n_sweep] = json_number(json_get(v, "value"), NAN);
		if (isnan(d->sweep_value[d->n_sweep]))
			return err_fail(err, ERR_FORMAT, "%s.value: a number is expected", file);
		rc = read_policies(file, json_get(v, "policies"), &d->sweep[d->n_sweep++], err);
	}
	return rc;
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

/* `postrider predict`: adds predictions to a table (predict_table.c), or shows for one job what every batch
 * size would do and which one scheduler/core/decide.c chooses. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "predictors/models/reach.h"
#include "scheduler/cli/cli.h"
#include "scheduler/cli/model/views.h"
#include "scheduler/core/alternatives.h"

struct options {
	const char *job, *candidates, *slo_column;
	double slo_s, confidence;
	bool time_only;
};

/* ---- one job: what it says and what it must say ---- */

/* Which columns the model looks at, directly or through a derived one that the job does not give. */
static void columns_needed(const struct model *m, const struct job_values *v, bool *need)
{
	const struct schema *s = m->schema;
	bool more = true;

	for (size_t i = 0; i < m->features->n; i++) {
		const struct feature *f = &m->features->feature[i];

		if (!isnan(f->min)) /* a column that training never saw filled teaches nothing */
			need[f->source] = true;
	}
	while (more) { /* derived columns may be made of derived columns */
		more = false;
		for (size_t i = 0; i < s->n_derived; i++) {
			size_t at = s->n_columns + i;

			for (size_t k = 0; need[at] && !job_values_given(v, at) && k < s->derived[i].n_of;
			     k++) {
				size_t of = s->derived[i].source[k];

				if (!need[of])
					need[of] = more = true;
			}
		}
	}
}

/* An optional column that had one value in all of training: the job has it too. Adds it to `taken`. */
static bool fill_from_training(const struct model *m, struct job_values *v, size_t column,
			       struct strbuf *taken)
{
	const struct schema_column *c = &m->schema->column[column];
	char buf[32];

	if (!c->optional || !features_fill_constant(m->features, column, v))
		return false;
	strbuf_printf(taken, "%s%s=%s", taken->len ? ", " : "", c->name,
		      v->category[column] ? v->category[column] : text_shortest(v->number[column], buf));
	return true;
}

static int job_complete(const struct cli *c, const struct model *m, struct job_values *v, struct err *err)
{
	const struct schema *s = m->schema;
	int decision = schema_find_any(s, s->decision);
	bool *need = mem_calloc(s->n_columns + s->n_derived, sizeof *need);
	struct strbuf missing = { 0 }, taken = { 0 };
	int rc = 0;

	if (!need)
		return err_nomem(err, NULL);
	columns_needed(m, v, need);
	if (m->features->other >= 0) {
		size_t other = m->features->feature[m->features->other].source;

		if (isnan(v->number[other])) {
			v->number[other] = 0.0;
			cli_notice(c, "%s is not in --job: no other work on the machine is assumed",
				   schema_source_name(s, other));
		}
	}
	for (size_t i = 0; i < s->n_columns; i++) {
		if (!need[i] || (int)i == decision || job_values_given(v, i) ||
		    fill_from_training(m, v, i, &taken))
			continue;
		strbuf_printf(&missing, "%s%s=...", missing.len ? "," : "", s->column[i].name);
	}
	if (missing.len)
		rc = err_fail(err, ERR_ARG, "--job lacks values that the model needs; add %s",
			      strbuf_text(&missing));
	else if (taken.len)
		cli_notice(c, "not in --job, taken from the training table, which has only one value: %s",
			   strbuf_text(&taken));
	free(need);
	strbuf_release(&missing);
	strbuf_release(&taken);
	return rc;
}

/* "64,128" in ascending order, each once; room for DECIDE_MAX_CANDIDATES. */
static int candidates_parse(const char *text, double *out, size_t *out_n, struct err *err)
{
	const struct text_limits any = { .min = -1e15, .max = 1e15 };
	size_t n = 0, kept = 0;

	if (text_list(text, ',', &any, DECIDE_MAX_CANDIDATES, out, &n, err))
		return err_prefix(err, "--candidates");
	text_distinct(out, n, NULL); /* sorts them; repeated ones are dropped here */
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || out[i] != out[kept - 1])
			out[kept++] = out[i];
	}
	*out_n = kept;
	return 0;
}

/* Is `value` one of the categories that a column had in training? Lists those it had. */
static bool category_known(const struct model *m, size_t column, const char *value, struct strbuf *known)
{
	bool seen = false;

	for (size_t i = 0; i < m->features->n; i++) {
		const struct feature *f = &m->features->feature[i];
		const char *one[2] = { f->category_zero, f->category };

		for (size_t k = 0; f->source == column && k < 2; k++) {
			if (!one[k])
				continue;
			strbuf_printf(known, "%s%s", known->len ? ", " : "", one[k]);
			seen |= !strcmp(one[k], value);
		}
	}
	return seen;
}

/* Notes which values of the job are not in the training table. */
static void note_extrapolation(const struct cli *c, const struct model *m, const struct job_values *v)
{
	const struct schema *s = m->schema;
	int decision = schema_find_any(s, s->decision);
	size_t last = SIZE_MAX;

	for (size_t i = 0; i < m->features->n; i++) {
		const struct feature *f = &m->features->feature[i];
		size_t column = f->source;
		const char *name = schema_source_name(s, column);
		char a[32], b[32], x[32];

		if (column == last || (int)column == decision || !job_values_given(v, column))
			continue;
		last = column; /* one-hot features of a column stand side by side */
		if (feature_is_category(f)) {
			struct strbuf known = { 0 };

			if (!category_known(m, column, v->category[column], &known))
				cli_notice(c, "%s=%s is not in the training table, which has %s", name,
					   v->category[column], strbuf_text(&known));
			strbuf_release(&known);
		} else if (reach_is_notable(m, f, v->number[column])) {
			cli_notice(c, "%s=%s is outside the training table, which has %s to %s", name,
				   text_shortest(v->number[column], x), text_shortest(f->min, a),
				   text_shortest(f->max, b));
		}
	}
}

/* ---- one job: the answer ---- */

struct answer {
	struct decision decision;
	struct alternatives beside;
	double slo_s, headroom_s; /* NaN: none */
	double took_us;
};

static const enum decide_reason reason_all[] = { REASON_SLO_EXCEEDED,   REASON_NO_BOUND, REASON_EXTRAPOLATED,
						 REASON_LOWER_ACCURACY, REASON_SLOWER,   REASON_UNSTABLE,
						 REASON_BEYOND_MODEL };
static const char *const reason_words[] = { "bound above the limit",
					    "no bound at this confidence",
					    "outside the training table",
					    "less accurate",
					    "slower",
					    "no time predicted",
					    "too far outside the training table for a promise" };
enum { N_REASONS = sizeof reason_all / sizeof reason_all[0] };

static void json_candidate(struct json_writer *w, const struct model *m, const struct candidate *k)
{
	json_open(w, '{');
	json_kv_number(w, m->schema->decision, k->decision);
	json_kv_number(w, "time_s", k->time_s);
	json_kv_number(w, "upper_s", k->upper_s);
	json_kv_number(w, "accuracy", k->accuracy);
	json_kv_number(w, "chance", k->chance);
	json_kv_bool(w, "feasible", k->feasible);
	json_kv_bool(w, "extrapolated", k->extrapolated);
	json_kv_open(w, "reasons", '[');
	for (size_t i = 0; i < N_REASONS; i++) {
		if (k->reasons & reason_all[i])
			json_put_string(w, decide_reason_text(reason_all[i]));
	}
	json_close(w, ']');
	json_close(w, '}');
}

static void json_offer(struct json_writer *w, const struct model *m, const struct candidate *k)
{
	json_open(w, '{');
	json_kv_number(w, m->schema->decision, k->decision);
	json_kv_number(w, "chance", k->chance);
	json_kv_number(w, "accuracy", k->accuracy);
	json_kv_number(w, "time_s", k->time_s);
	json_close(w, '}');
}

static void print_json(struct strbuf *out, const struct cli *c, const struct model *m, const struct answer *a)
{
	const struct decision *d = &a->decision;
	struct json_writer w;
	char hex[32];

	json_begin(&w, out, true);
	json_open(&w, '{');
	json_put_key(&w, "chosen");
	if (d->chosen >= 0)
		json_candidate(&w, m, &d->candidate[d->chosen]);
	else
		json_put_null(&w);
	json_kv_open(&w, "candidates", '[');
	for (size_t i = 0; i < d->n_candidates; i++)
		json_candidate(&w, m, &d->candidate[i]);
	json_close(&w, ']');
	json_kv_number(&w, "smallest_slo_s", d->smallest_slo_s);
	alternatives_json(&w, &a->beside);
	json_put_key(&w, "offer");
	if (isnan(d->offer.chance))
		json_put_null(&w);
	else
		json_offer(&w, m, &d->offer);
	json_kv_number(&w, "confidence", d->confidence);
	json_kv_number(&w, "slo_s", a->slo_s);
	json_kv_number(&w, "headroom_s", a->headroom_s);
	json_kv_open(&w, "model", '{');
	json_kv_string(&w, "path", c->arg[0]);
	json_kv_string(&w, "time", m->time.predictor.ops->name);
	json_kv_string(&w, "accuracy", m->accuracy.predictor.ops ? m->accuracy.predictor.ops->name : NULL);
	json_kv_string(&w, "created", m->created);
	json_kv_string(&w, "program", m->program);
	json_kv_int(&w, "data_rows", (long long)m->data_rows);
	snprintf(hex, sizeof hex, "%016llx", (unsigned long long)m->data_fingerprint);
	json_kv_string(&w, "data_fingerprint", hex);
	json_close(&w, '}');
	json_kv_number(&w, "decision_us", a->took_us);
	json_close(&w, '}');
	strbuf_puts(out, "\n");
}

static void print_people(struct strbuf *out, const struct cli *c, const struct model *m,
			 const struct answer *a)
{
	const struct decision *d = &a->decision;
	struct cli_table t;
	char x[32], y[32];

	cli_table_init(&t, isnan(a->slo_s) ? "lrrrrll" : "lrrrrrll");
	cli_table_add(&t, " ");
	cli_table_add(&t, "%s", m->schema->decision);
	cli_table_add(&t, "time");
	cli_table_add(&t, "bound (%g %%)", 100.0 * d->confidence);
	cli_table_add(&t, "accuracy");
	if (!isnan(a->slo_s))
		cli_table_add(&t, "chance");
	cli_table_add(&t, "feasible");
	cli_table_add(&t, "why not");
	for (size_t i = 0; i < d->n_candidates; i++) {
		const struct candidate *k = &d->candidate[i];
		struct decide_out_of_range out_of_range = decide_out_of_range(d, k);
		struct strbuf why = { 0 };

		for (size_t r = 0; r < N_REASONS; r++) {
			if (!(k->reasons & reason_all[r]))
				continue;
			strbuf_puts(&why, why.len ? "; " : "");
			if (reason_all[r] == REASON_EXTRAPOLATED)
				decide_out_of_range_text(&out_of_range, &why);
			else
				strbuf_puts(&why, reason_words[r]);
		}
		cli_table_add(&t, "%s", (int)i == d->chosen ? "*" : " ");
		cli_table_add(&t, "%s", text_shortest(k->decision, x));
		cli_table_add(&t, "%s", isnan(k->time_s) ? "" : text_seconds(k->time_s, x));
		cli_table_add(&t, "%s", isnan(k->upper_s) ? "" : text_seconds(k->upper_s, x));
		cli_table_add(&t, "%s", isnan(k->accuracy) ? "" : text_accuracy(k->accuracy, x));
		if (!isnan(a->slo_s))
			cli_table_add(&t, "%s", isnan(k->chance) ? "" : cli_chance(k->chance, x));
		cli_table_add(&t, "%s", k->feasible ? "yes" : "no");
		cli_table_add(&t, "%s", cli_clean(strbuf_text(&why)));
		if ((int)i == d->chosen)
			cli_table_mark(&t);
		strbuf_release(&why);
	}
	cli_table_print(&t, out, cli_colour(c));
	cli_table_release(&t);

	strbuf_puts(out, "\n");
	if (d->chosen >= 0)
		strbuf_printf(out, "chosen    %s %s\n", cli_clean(m->schema->decision),
			      text_shortest(d->candidate[d->chosen].decision, x));
	else
		strbuf_puts(out, "chosen    none\n");
	alternatives_text(&a->beside, "", out);
	if (!isnan(a->headroom_s))
		strbuf_printf(out, "headroom  %s of a limit of %s\n", text_seconds(a->headroom_s, x),
			      text_seconds(a->slo_s, y));
	strbuf_printf(out, "decided   in %s\n", text_seconds(1e-6 * a->took_us, x));
	strbuf_printf(out, "model     %s%s%s, %zu rows, %s\n", m->time.predictor.ops->name,
		      m->accuracy.predictor.ops ? " and " : "",
		      m->accuracy.predictor.ops ? m->accuracy.predictor.ops->name : "", m->data_rows,
		      cli_clean(m->created));
}

static bool none_stable(const struct decision *d)
{
	for (size_t i = 0; i < d->n_candidates; i++)
		if (!(d->candidate[i].reasons & REASON_UNSTABLE))
			return false;
	return true;
}

static void say_rejected(const struct model *m, const struct answer *a)
{
	const struct decision *d = &a->decision;
	char slo[32], least[32], x[32], y[32];

	fprintf(stderr, "postrider: rejected: no %s meets the limit of %s at %g %%; ",
		cli_clean(m->schema->decision), text_seconds(a->slo_s, slo), 100.0 * d->confidence);
	if (d->beyond)
		fprintf(stderr,
			"%s %.6g is too far outside the training table for a promise: the model goes from "
			"%.6g to %.6g\n",
			cli_clean(d->beyond), d->beyond_value, d->beyond_least, d->beyond_most);
	else if (isnan(d->smallest_slo_s) && none_stable(d))
		fprintf(stderr, "the model predicts no time above 0, or its queue is unstable at this load, "
				"so that there is no time to promise\n");
	else if (isnan(d->smallest_slo_s))
		fprintf(stderr,
			"no time can be promised at this confidence: the model has %zu independent test "
			"errors and needs %zu\n",
			m->time.conformal.groups, conformal_least(d->confidence));
	else
		fprintf(stderr, "the shortest limit that could be promised at %g %%: %s\n",
			100.0 * d->confidence, text_seconds_up(d->smallest_slo_s, least));
	if (!isnan(d->offer.chance))
		fprintf(stderr, "postrider: without a promise: %s chance with %s %s\n",
			cli_chance(d->offer.chance, x), cli_clean(m->schema->decision),
			text_shortest(d->offer.decision, y));
}

/* The bound of the chosen candidate as `sbatch --time` takes it: whole seconds, rounded up. */
static int print_time(struct strbuf *out, const struct decision *d, struct err *err)
{
	const struct candidate *k = d->chosen >= 0 ? &d->candidate[d->chosen] : NULL;
	unsigned long long s;

	if (!k || !isfinite(k->upper_s) || k->upper_s > 1e9)
		return err_fail(err, ERR_NODATA, "--time-only: no time can be stated at confidence %g",
				d->confidence);
	s = (unsigned long long)ceil(k->upper_s);
	strbuf_printf(out, "%llu-%02llu:%02llu:%02llu\n", s / 86400, s / 3600 % 24, s / 60 % 60, s % 60);
	return 0;
}

/* A job that is refused, and says its epochs: what fewer of them would bring. */
static struct alternative with_fewer_epochs(const struct decide_params *p)
{
	struct decide_params fewer = *p;
	struct decision *d = mem_calloc(1, sizeof *d);
	double epochs[DECIDE_MAX_CANDIDATES], below;
	int column = schema_role(p->model->schema, ROLE_EPOCHS);
	size_t n_batches = p->candidate ? p->n_candidates : p->model->n_candidates;
	struct alternative found = alternative_none;

	below = column >= 0 ? p->job->number[column] - 1.0 : NAN;
	if (d && below >= 1.0 && n_batches) {
		fewer.n_epochs = fmin(floor(below), (double)(DECIDE_MAX_CANDIDATES / n_batches));
		for (size_t i = 0; i < fewer.n_epochs; i++)
			epochs[i] = fmax(1.0, floor(below * (double)(i + 1) / (double)fewer.n_epochs));
		fewer.epochs = epochs;
		if (!decide(&fewer, d, NULL))
			found = alternative_shorter(d);
	}
	free(d);
	return found;
}

static int predict_job(const struct cli *c, const struct options *o, struct model *m, struct strbuf *out,
		       int *out_exit, struct err *err)
{
	double candidate[DECIDE_MAX_CANDIDATES];
	struct decide_params p = { .model = m, .slo_s = o->slo_s, .confidence = o->confidence };
	struct answer *a = mem_calloc(1, sizeof *a);
	struct job_values v = { 0 };
	int decision = schema_find_any(m->schema, m->schema->decision);
	char buf[32];
	double from_us;
	int rc;

	if (!a)
		return err_nomem(err, NULL);
	rc = job_values_init(&v, m->schema, err);
	if (!rc && job_values_parse(&v, m->schema, o->job, err))
		rc = err_prefix(err, "--job");
	if (!rc)
		rc = job_complete(c, m, &v, err);
	if (!rc && o->candidates) {
		rc = candidates_parse(o->candidates, candidate, &p.n_candidates, err);
	} else if (!rc && decision >= 0 && !isnan(v.number[decision])) {
		candidate[0] = v.number[decision]; /* the job leaves no choice: what would this one do? */
		p.n_candidates = 1;
	}
	if (rc)
		goto out;
	p.job = &v;
	p.candidate = p.n_candidates ? candidate : NULL;
	note_extrapolation(c, m, &v);
	from_us = clock_monotonic_us();
	rc = decide(&p, &a->decision, err);
	a->took_us = clock_monotonic_us() - from_us;
	if (rc)
		goto out;
	a->slo_s = o->slo_s;
	alternatives_find(&a->decision, NAN, &a->beside);
	if (a->decision.chosen < 0)
		a->beside.shorter = with_fewer_epochs(&p);
	a->headroom_s = a->decision.chosen < 0 ? NAN
					       : o->slo_s - a->decision.candidate[a->decision.chosen].upper_s;
	if (o->time_only && (a->decision.chosen >= 0 || isnan(o->slo_s)))
		rc = print_time(out, &a->decision, err);
	else if (c->json && !o->time_only)
		print_json(out, c, m, a);
	else if (!c->quiet && !o->time_only)
		print_people(out, c, m, a);
	else if (a->decision.chosen >= 0 && !o->time_only)
		strbuf_printf(out, "%s\n",
			      text_shortest(a->decision.candidate[a->decision.chosen].decision, buf));
	if (a->decision.chosen < 0 && !isnan(o->slo_s)) {
		say_rejected(m, a);
		*out_exit = 3;
	}
out:
	job_values_release(&v);
	free(a);
	return rc;
}

/* ---- the verb ---- */

#define AT(member) CLI_AT(struct options, member)
static const struct cli_option option[] = {
	{ 0, "job", CLI_TEXT, "K=V,...", "one job, for example network=lenet5,cpus=4,njobs=2", AT(job) },
	{ 0, "slo", CLI_DURATION, "TIME", "its time limit: 90, 90s, 15m, 2h, D-HH:MM:SS", AT(slo_s) },
	{ 0, "candidates", CLI_TEXT, "N,...", "batch sizes to choose from (default: the model's)",
	  AT(candidates) },
	{ 0, "time-only", CLI_FLAG, NULL,
	  "print the upper bound of the run time and nothing else, as\n`sbatch --time` takes it",
	  AT(time_only) },
	{ 0, "slo-column", CLI_TEXT, "NAME",
	  "for a table: a column of time limits in seconds; adds the\nchance to meet them", AT(slo_column) },
	{ 0, "confidence", CLI_CONFIDENCE, "C", "confidence of the upper bounds (default: 0.9 or 90%)",
	  AT(confidence) },
	{ 0 },
};

static const struct cli_usage usage = {
	.verb = "predict",
	.synopsis = "MODEL DATA.csv [-o OUT.csv] [--slo-column NAME] [--confidence C]\n"
		    "MODEL --job K=V,... [--slo TIME] [--candidates N,...] [--confidence C]\n"
		    "      [--json | --time-only]",
	.what = "Either adds predicted_time_s, upper_time_s, predicted_accuracy and extrapolated to every\n"
		"row of a table. Or shows for one job what each batch size would do, and chooses the most\n"
		"accurate one that meets the time limit (--slo). If no batch size is fast enough, the exit\n"
		"code is 3 and the shortest possible limit is printed. With -q it prints only the choice.",
	.option = option,
	.json = true,
	.output = "write the result here instead of standard output",
	.min_args = 1,
	.max_args = 2,
	.examples = "  postrider predict runs.model new.csv -o predicted.csv\n"
		    "  postrider predict runs.model new.csv --slo-column limit_s -o chances.csv\n"
		    "  postrider predict runs.model --job network=lenet5,cpus=4,njobs=2 --slo 300s\n",
};

int verb_predict(int argc, char **argv)
{
	struct options o = { .slo_s = NAN, .confidence = 0.9 };
	struct strbuf out = { 0 };
	struct model *m = NULL;
	struct err err = { 0 };
	struct cli c;
	int code, rc;

	if (!cli_parse_into(&c, &usage, &o, argc, argv, &code))
		return code;
	if (o.job && c.n_args > 1)
		return cli_usage_error(&c, "give either --job or the table %s", c.arg[1]);
	if (!o.job && c.n_args < 2)
		return cli_usage_error(&c, "add a table to predict, or --job K=V,...");
	if (o.time_only && c.json)
		return cli_usage_error(&c, "give either --time-only or --json");
	if (!o.job && (!isnan(o.slo_s) || o.candidates || c.json || o.time_only))
		return cli_usage_error(&c, "%s needs --job; it does not work with a table",
				       c.json         ? "--json"
				       : o.time_only  ? "--time-only"
				       : o.candidates ? "--candidates"
						      : "--slo");
	if (o.job && o.slo_column)
		return cli_usage_error(&c, "--slo-column needs a table; the limit of one job is --slo");
	rc = cli_check_output(c.output, &err);
	if (!rc)
		rc = cli_model_open(c.arg[0], &m, &err);
	if (!rc)
		rc = o.job ? predict_job(&c, &o, m, &out, &code, &err)
			   : predict_table(&c, o.confidence, o.slo_column, m, &out, &err);
	if (!rc && (out.len || out.failed))
		rc = cli_write(c.output, &out, &err);
	if (rc)
		code = cli_fail(&err);
	strbuf_release(&out);
	model_free(m);
	return code;
}

/* `postrider model`: what is in a model file, whether it is whole, and how two differ; what the daemon has
 * trained (model_talk.c). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/cli/client/model_talk.h"
#include "scheduler/cli/model/views.h"

/* ---- show ---- */

static void json_data(struct json_writer *w, const struct model *m)
{
	char hex[32];

	json_kv_open(w, "data", '{');
	json_kv_string(w, "name", m->data_name);
	json_kv_int(w, "rows", (long long)m->data_rows);
	snprintf(hex, sizeof hex, "%016llx", (unsigned long long)m->data_fingerprint);
	json_kv_string(w, "fingerprint", hex);
	json_close(w, '}');
}

/* What the model itself has to say, as an object. */
static void json_details(struct json_writer *w, const struct model *m, const struct model_target *t)
{
	const char **name = mem_array(m->features->n, sizeof *name);
	struct dataset names = { .n_features = m->features->n, .name = name };

	json_kv_open(w, "details", '{');
	if (!name)
		w->out->failed = true;
	for (size_t i = 0; name && i < m->features->n; i++)
		name[i] = m->features->feature[i].name;
	if (name && t->predictor.ops->describe)
		t->predictor.ops->describe(t->predictor.self, &names, w);
	json_close(w, '}');
	free(name);
}

static void json_by_feature(struct json_writer *w, const char *key, const struct model *m, const double *v)
{
	json_kv_open(w, key, '{');
	for (size_t i = 0; v && i < m->features->n; i++)
		json_kv_number(w, m->features->feature[i].name, v[i]);
	json_close(w, '}');
}

static void json_target(struct json_writer *w, const char *key, const struct model *m,
			const struct model_target *t)
{
	if (!cli_json_target_open(w, key, t))
		return;
	json_kv_int(w, "rows", (long long)t->n_rows);
	cli_json_summary(w, &t->score);
	json_kv_int(w, "folds", (long long)t->score.n_folds);
	json_kv_string(w, "scored_by", t->scored_by);
	json_kv_open(w, "residuals", '{');
	json_kv_int(w, "n", (long long)t->conformal.n);
	json_kv_string(w, "from", t->residuals_by);
	json_kv_number(w, "base", t->conformal.base);
	json_kv_number(w, "slope", t->conformal.slope);
	json_close(w, '}');
	bounds_view_json(w, m, t);
	json_by_feature(w, "importances", m, t->importance);
	json_by_feature(w, "permutation_importances", m, t->permutation);
	json_details(w, m, t);
	json_close(w, '}');
}

static void show_json(struct strbuf *out, const char *path, const struct model *m)
{
	struct json_writer w;

	json_begin(&w, out, true);
	json_open(&w, '{');
	json_kv_string(&w, "path", path);
	json_kv_int(&w, "format", MODEL_FORMAT_VERSION);
	json_kv_string(&w, "program", m->program);
	json_kv_string(&w, "created", m->created);
	json_kv_int(&w, "seed", (long long)m->seed);
	json_data(&w, m);
	json_kv_open(&w, "candidates", '[');
	for (size_t i = 0; i < m->n_candidates; i++)
		json_put_number(&w, m->candidate[i]);
	json_close(&w, ']');
	json_put_key(&w, "features");
	if (features_to_json(m->features, &w))
		out->failed = true;
	json_target(&w, "time", m, &m->time);
	json_target(&w, "accuracy", m, &m->accuracy);
	json_put_key(&w, "schema");
	schema_to_json(m->schema, &w);
	json_close(&w, '}');
	strbuf_puts(out, "\n");
}

/* A value as one would say it: numbers short, lists and objects as in JSON. */
static void put_value(struct strbuf *out, const struct json *v)
{
	char buf[32];

	switch (json_type(v)) {
	case JSON_NUMBER: strbuf_puts(out, text_shortest(json_number(v, NAN), buf)); break;
	case JSON_STRING: strbuf_puts(out, cli_clean(json_string(v, ""))); break;
	case JSON_BOOL: strbuf_puts(out, json_bool(v, false) ? "yes" : "no"); break;
	case JSON_ARRAY:
	case JSON_OBJECT:
		for (const struct json *e = json_first(v); e; e = json_next(e)) {
			if (e != json_first(v))
				strbuf_puts(out, ", ");
			if (json_type(v) == JSON_OBJECT)
				strbuf_printf(out, "%s=", cli_clean(json_key(e)));
			put_value(out, e);
		}
		break;
	case JSON_NULL:
	case JSON_ABSENT: strbuf_puts(out, "-"); break;
	}
}

/* A fitted parameter as people write it: value, standard error, and where it comes from. */
static void put_parameter(struct strbuf *out, const struct json *row)
{
	double value = json_number(json_get(row, "value"), NAN), se = json_number(json_get(row, "se"), NAN);
	char text[CLI_SPREAD_SIZE];

	strbuf_printf(out, "%-28s ", cli_clean(json_string(json_get(row, "name"), "")));
	if (isnan(se))
		strbuf_printf(out, "%-22s", isnan(value) ? "-" : cli_number(value, text));
	else
		strbuf_printf(out, "%-23s", cli_spread(value, se, text)); /* the sign takes two bytes */
	strbuf_printf(out, " %s", cli_clean(json_string(json_get(row, "state"), "")));
}

/* The model's own facts go through JSON: it has one way to tell them. Without `all` only the sentence that
 * sums them up, where there is one. */
static void show_details(struct strbuf *out, const struct model *m, const struct model_target *t, bool all)
{
	struct strbuf text = { 0 };
	struct json_writer w;
	struct json *root = NULL;

	json_begin(&w, &text, false);
	json_open(&w, '{');
	json_details(&w, m, t);
	json_close(&w, '}');
	if (text.failed || json_parse("details", strbuf_text(&text), text.len, &root, NULL)) {
		out->failed |= text.failed;
	} else {
		const struct json *d = json_get(root, "details");

		for (const struct json *e = json_first(d); e; e = json_next(e)) {
			bool rows = json_type(e) == JSON_ARRAY && json_type(json_first(e)) == JSON_OBJECT;

			if (!all && strcmp(json_key(e), "sentence"))
				continue;
			strbuf_printf(out, "  %-12s ", cli_clean(json_key(e)));
			for (const struct json *row = json_first(e); rows && row; row = json_next(row)) {
				strbuf_printf(out, "%s", row == json_first(e) ? "" : "               ");
				if (json_get(row, "state"))
					put_parameter(out, row);
				else
					put_value(out, row);
				strbuf_puts(out, json_next(row) ? "\n" : "");
			}
			if (!rows)
				put_value(out, e);
			strbuf_puts(out, "\n");
		}
	}
	json_free(root);
	strbuf_release(&text);
}

static void show_target(struct strbuf *out, const char *column, const struct model *m,
			const struct model_target *t, bool details)
{
	const struct score *s = cli_score(&t->score), *d = &t->score.sd;
	char a[CLI_SPREAD_SIZE], settings[256];

	strbuf_printf(out, "\n%s\n", cli_clean(column));
	settings_describe(&t->predictor.settings, settings, sizeof settings);
	strbuf_printf(out, "  %-12s %s (%s)%s%s\n", "model", t->predictor.ops->name, t->predictor.ops->title,
		      settings[0] ? ", " : "", settings);
	strbuf_printf(out, "  %-12s %zu\n", "rows", t->n_rows);
	strbuf_printf(out, "  %-12s %s\n", "MSE", cli_spread(s->mse, d->mse, a));
	strbuf_printf(out, "  %-12s %s\n", "R2", cli_spread(s->r2, d->r2, a));
	strbuf_printf(out, "  %-12s %s\n", "MAPE %", cli_spread(100.0 * s->mape, 100.0 * d->mape, a));
	strbuf_printf(out, "  %-12s %s\n", "MAE", cli_spread(s->mae, d->mae, a));
	strbuf_printf(out, "  %-12s %s\n", "scored by", cli_clean(t->scored_by));
	if (t->conformal.n)
		strbuf_printf(out, "  %-12s %zu residuals (%s)\n", "bounds from", t->conformal.n,
			      cli_clean(t->residuals_by));
	else
		strbuf_printf(out, "  %-12s none\n", "bounds from");
	if (t == &m->time)
		bounds_view_text(out, m, t);
	show_details(out, m, t, details);
}

static void put_range(struct cli_table *t, const struct feature *f)
{
	char a[32], b[32];

	if (f->category && f->category_zero)
		cli_table_add(t, "%s = 1, %s = 0", f->category, f->category_zero);
	else if (feature_is_category(f))
		cli_table_add(t, "%s", f->category ? f->category : f->category_zero);
	else if (isnan(f->min))
		cli_table_add(t, "always missing");
	else
		cli_table_add(t, "%s to %s", text_shortest(f->min, a), text_shortest(f->max, b));
}

static void show_features(struct strbuf *out, const struct cli *c, const struct model *m)
{
	struct cli_table t;
	char a[32];

	cli_table_init(&t, "llrr");
	cli_table_add(&t, "feature");
	cli_table_add(&t, "values");
	cli_table_add(&t, "%s importance", m->schema->time);
	cli_table_add(&t, "%s importance", m->schema->accuracy ? m->schema->accuracy : "accuracy");
	for (size_t i = 0; i < m->features->n; i++) {
		cli_table_add(&t, "%s", m->features->feature[i].name);
		put_range(&t, &m->features->feature[i]);
		cli_table_add(&t, "%s", m->time.importance ? cli_percent(m->time.importance[i], a) : "");
		cli_table_add(&t, "%s",
			      m->accuracy.importance ? cli_percent(m->accuracy.importance[i], a) : "");
	}
	strbuf_puts(out, "\n");
	cli_table_print(&t, out, cli_colour(c));
	cli_table_release(&t);
}

static void show_people(struct strbuf *out, const struct cli *c, const char *path, const struct model *m)
{
	char a[32];

	strbuf_printf(out, "%-12s %s\n", "file", cli_clean(path));
	strbuf_printf(out, "%-12s %d\n", "format", MODEL_FORMAT_VERSION);
	strbuf_printf(out, "%-12s %s, %s\n", "written", cli_clean(m->created), cli_clean(m->program));
	strbuf_printf(out, "%-12s %s, %zu rows, fingerprint %016llx\n", "data", cli_clean(m->data_name),
		      m->data_rows, (unsigned long long)m->data_fingerprint);
	strbuf_printf(out, "%-12s %llu\n", "seed", (unsigned long long)m->seed);
	strbuf_printf(out, "%-12s %s of", "chooses", cli_clean(m->schema->decision));
	for (size_t i = 0; i < m->n_candidates; i++)
		strbuf_printf(out, "%s %s", i ? "," : "", text_shortest(m->candidate[i], a));
	strbuf_puts(out, "\n");
	show_target(out, m->schema->time, m, &m->time, c->verbose);
	if (m->accuracy.predictor.ops)
		show_target(out, m->schema->accuracy, m, &m->accuracy, c->verbose);
	show_features(out, c, m);
}

static int show(const struct cli *c, struct strbuf *out, struct err *err)
{
	struct model *m = NULL;
	int rc = cli_model_open(c->arg[1], &m, err);

	if (rc)
		return rc;
	if (c->json)
		show_json(out, c->arg[1], m);
	else
		show_people(out, c, c->arg[1], m);
	model_free(m);
	return 0;
}

/* ---- verify ---- */

/* Loading checks everything there is to check: magic, version, lengths, checksum, every index. */
static int verify(const struct cli *c, struct strbuf *out)
{
	struct json_writer w;
	int code = 0;

	json_begin(&w, out, true);
	if (c->json) {
		json_open(&w, '{');
		json_kv_open(&w, "models", '[');
	}
	for (size_t i = 1; i < c->n_args; i++) {
		struct err err = { 0 };
		struct model *m = NULL;
		bool ok = !cli_model_open(c->arg[i], &m, &err);

		if (c->json) {
			json_open(&w, '{');
			json_kv_string(&w, "path", c->arg[i]);
			json_kv_bool(&w, "ok", ok);
			json_kv_string(&w, "error", ok ? NULL : err.text);
			json_close(&w, '}');
		} else if (ok && !c->quiet) {
			strbuf_printf(out, "%s: ok, %s%s%s, %zu rows, %s\n", cli_clean(c->arg[i]),
				      m->time.predictor.ops->name, m->accuracy.predictor.ops ? " and " : "",
				      m->accuracy.predictor.ops ? m->accuracy.predictor.ops->name : "",
				      m->data_rows, cli_clean(m->created));
		}
		if (!ok) {
			int this = cli_fail(&err);

			code = this > code ? this : code; /* a broken file outweighs a missing one */
		}
		model_free(m);
	}
	if (c->json) {
		json_close(&w, ']');
		json_kv_bool(&w, "ok", code == 0);
		json_close(&w, '}');
		strbuf_puts(out, "\n");
	}
	return code;
}

/* ---- the verb ---- */

static const char *const action[] = { "show", "verify", "diff", "list", "retrain", "rollback", NULL };

/* True: it knows what to do. Else what is wrong was said. */
static bool words_check(const struct cli *c)
{
	/* How many words each action takes beside its name. */
	static const size_t least[] = { 1, 1, 2, 0, 0, 1 }, most[] = { 1, SIZE_MAX, 2, 0, 0, 1 };
	static const char *const takes[] = { "one model",     "at least one model", "two models",
					     "no more words", "no more words",      "one version" };
	char hint[TEXT_HINT];
	size_t i = 0, n = c->n_args - 1;

	while (action[i] && strcmp(action[i], c->arg[0]))
		i++;
	if (!action[i]) {
		cli_usage_error(c, "there is no 'model %s'%s", c->arg[0], text_hint(c->arg[0], action, hint));
		return false;
	}
	if (n > most[i] && most[i] == 1)
		cli_usage_error(c, "%s takes %s; '%s' is one too many", action[i], takes[i], c->arg[2]);
	else if (n < least[i] || n > most[i])
		cli_usage_error(c, "%s takes %s, not %zu", action[i], takes[i], n);
	else
		return true;
	return false;
}

/* What is done with files, here; what the daemon has is asked of it elsewhere. */
static int look_at_files(const struct cli *c)
{
	struct strbuf out = { 0 };
	struct err err = { 0 };
	int code = 0, rc = cli_check_output(c->output, &err);

	if (rc)
		return cli_fail(&err);
	if (!strcmp(c->arg[0], "show"))
		rc = show(c, &out, &err);
	else if (!strcmp(c->arg[0], "verify"))
		code = verify(c, &out);
	else
		rc = model_diff(c, &out, &err);
	if (!rc && (out.len || out.failed))
		rc = cli_write(c->output, &out, &err);
	if (rc)
		code = cli_fail(&err);
	strbuf_release(&out);
	return code;
}

int verb_model(int argc, char **argv)
{
	struct client_params at = { .timeout_s = NAN };
	const char *type = NULL;
	const struct cli_option option[] = {
		{ 0, "type", CLI_TEXT, "NAME",
		  "retrain, rollback: the job type whose own model is meant\n(default: the configuration's "
		  "model)",
		  &type },
		CLIENT_OPTIONS(at),
		{ 0 },
	};
	const struct cli_usage usage = {
		.verb = "model",
		.synopsis = "show MODEL [--json]\nverify MODEL...\ndiff A B [--json]\n"
			    "list [--json]\nretrain [--type NAME]\nrollback VERSION [--type NAME]",
		.what = "show      prints what a model file holds, where it comes from and how good it is; "
			"-v adds\n"
			"          the model's own details\n"
			"verify    checks that model files are complete (exit code 6 if one is not)\n"
			"diff      prints how two models differ in settings, scores, data and features\n"
			"list      prints the models that the daemon has trained, and which one is in use\n"
			"retrain   makes the daemon train a new model now; it is used if it proves better "
			"(admins)\n"
			"rollback  uses an older version again; 0 is the configuration's model (admins)",
		.option = option,
		.json = true,
		.output = "write the result here instead of standard output",
		.min_args = 1,
		.max_args = SIZE_MAX,
		.examples = "  postrider model show runs.model\n"
			    "  postrider model verify *.model\n"
			    "  postrider model diff old.model new.model\n"
			    "  postrider model list\n"
			    "  postrider model rollback 3\n",
	};
	struct cli c;
	int code;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	if (!words_check(&c))
		return 2;
	if (!strcmp(c.arg[0], "list"))
		return model_list(&c, &at);
	if (!strcmp(c.arg[0], "retrain"))
		return model_retrain(&c, &at, type);
	if (!strcmp(c.arg[0], "rollback"))
		return model_rollback(&c, &at, type, c.arg[1]);
	return look_at_files(&c);
}

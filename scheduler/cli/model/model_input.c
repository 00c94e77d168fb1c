/* Shared by the verbs about models: they read a table of runs under a schema, open a model file, and write
 * scores as JSON. See cli.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/cli/cli.h"
#include "scheduler/core/policy/policy.h"

/* Beside the other rules of its column: a schema is written with one list of values a column. */
static int schema_add_exclude(struct schema *s, const char *column, const char *value, struct err *err)
{
	struct schema_exclude *all, one;
	size_t at = s->n_excludes;

	for (size_t i = 0; i < s->n_excludes; i++) {
		if (strcmp(s->exclude[i].column, column))
			continue;
		if (!strcmp(s->exclude[i].value, value))
			return 0;
		at = i + 1;
	}
	all = mem_resize(s->exclude, s->n_excludes + 1, sizeof *all);
	if (!all)
		return err_nomem(err, NULL);
	s->exclude = all;
	one = (struct schema_exclude){ mem_strdup(column), mem_strdup(value) };
	if (!one.column || !one.value) {
		free(one.column);
		free(one.value);
		return err_nomem(err, NULL);
	}
	memmove(all + at + 1, all + at, (s->n_excludes - at) * sizeof *all);
	all[at] = one;
	s->n_excludes++;
	return 0;
}

/* A rule of a schema may name a column that a table lacks; one typed here is then a slip. */
static int exclude_from_option(struct schema *s, const struct csv *csv, const char *rule, struct err *err)
{
	const char *eq = strchr(rule, '=');
	char column[SCHEMA_MAX_NAME + 1], shown[64], hint[TEXT_HINT];
	const char **name;

	if (!eq || eq == rule || !eq[1])
		return err_fail(err, ERR_ARG, "--exclude %s: write COLUMN=VALUE, for example suspect=yes",
				text_printable(rule, shown, sizeof shown));
	if (eq - rule > SCHEMA_MAX_NAME || strlen(eq + 1) > SCHEMA_MAX_NAME)
		return err_fail(err, ERR_ARG, "--exclude %s: a name and a value have at most %d bytes",
				text_printable(rule, shown, sizeof shown), SCHEMA_MAX_NAME);
	snprintf(column, sizeof column, "%.*s", (int)(eq - rule), rule);
	if (schema_find(s, column) >= 0 || csv_column(csv, column) >= 0)
		return schema_add_exclude(s, column, eq + 1, err);
	name = mem_calloc(csv->n_columns + 1, sizeof *name);
	if (!name)
		return err_nomem(err, NULL);
	for (size_t i = 0; i < csv->n_columns; i++)
		name[i] = csv->header[i];
	text_hint(column, name, hint);
	free(name);
	return err_fail(err, ERR_ARG, "--exclude: %s has no column '%s'%s", text_tail(csv->name, 200), column,
			hint);
}

static void note_table(const struct cli *c, const struct table *t, const struct cli_input_params *p)
{
	const char *path = p->path;
	struct strbuf names = { 0 };

	for (size_t i = 0; i < t->n_ignored; i++)
		strbuf_printf(&names, "%s%s", i ? ", " : "", t->ignored[i]);
	if (t->n_ignored && !p->keeps_columns)
		cli_notice(c, "%s: ignored, as the schema does not name %s: %s", path,
			   t->n_ignored == 1 ? "this column" : "these columns", strbuf_text(&names));
	strbuf_reset(&names);
	for (size_t i = 0; i < t->schema->n_excludes; i++)
		strbuf_printf(&names, "%s%s=%s", i ? ", " : "", t->schema->exclude[i].column,
			      t->schema->exclude[i].value);
	if (t->n_excluded)
		cli_notice(c, "%s: %zu of %zu rows left out (%s)", path, t->n_excluded,
			   t->n_excluded + t->n_rows, strbuf_text(&names));
	strbuf_release(&names);
}

/* A policy that ignores the load is trained without it. */
static int as_policy_wants(struct cli_input *in, const struct policy *policy, struct err *err)
{
	struct schema *wanted;
	int rc = policy_schema(policy, in->schema, &wanted, err);

	if (rc)
		return rc;
	if (!in->borrowed)
		schema_free(in->schema);
	in->schema = wanted;
	in->borrowed = false;
	return 0;
}

int cli_input_open(struct cli_input *in, const struct cli *c, const struct cli_input_params *p,
		   struct err *err)
{
	int rc;

	*in = (struct cli_input){ .schema = p->schema, .borrowed = p->schema != NULL };
	rc = p->schema_path && !in->schema ? schema_read_file(p->schema_path, &in->schema, err) : 0;
	if (!rc)
		rc = csv_read_file(p->path, &in->csv, err);
	if (!rc && !in->schema)
		rc = schema_for_table(in->csv, &in->schema, err);
	if (!rc && p->policy)
		rc = as_policy_wants(in, p->policy, err);
	if (rc)
		return rc;
	for (size_t i = 0; p->exclude && i < p->exclude->n; i++) {
		rc = exclude_from_option(in->schema, in->csv, p->exclude->item[i], err);
		if (rc)
			return rc;
	}
	rc = table_read(in->csv, in->schema, p->need_targets, &in->table, err);
	if (rc)
		return rc;
	if (in->table->n_rows == 0)
		return in->table->n_excluded
			       ? err_fail(err, ERR_FORMAT, "%s: all %zu rows are left out by exclude rules",
					  p->path, in->table->n_excluded)
			       : err_fail(err, ERR_FORMAT, "%s: has a header and no rows", p->path);
	note_table(c, in->table, p);
	return 0;
}

void cli_input_release(struct cli_input *in)
{
	table_free(in->table);
	csv_free(in->csv);
	if (!in->borrowed)
		schema_free(in->schema);
	*in = (struct cli_input){ 0 };
}

int cli_model_open(const char *path, struct model **out, struct err *err)
{
	int rc = model_load(path, out, err);

	if (!rc && !(*out)->time.predictor.ops) {
		model_free(*out);
		*out = NULL;
		return err_fail(err, ERR_FORMAT, "%s: holds no model of time", path);
	}
	return rc;
}

/* ---- scores ---- */

const struct score *cli_score(const struct score_summary *s)
{
	static const struct score none = { NAN, NAN, NAN, NAN, NAN };

	return s->n_folds ? &s->mean : &none;
}

void cli_json_score(struct json_writer *w, const char *key, const struct score *s)
{
	json_kv_open(w, key, '{');
	json_kv_number(w, "mse", s->mse);
	json_kv_number(w, "r2", s->r2);
	json_kv_number(w, "mape", s->mape);
	json_kv_number(w, "mae", s->mae);
	json_kv_number(w, "log_mse", s->log_mse);
	json_close(w, '}');
}

void cli_json_summary(struct json_writer *w, const struct score_summary *s)
{
	cli_json_score(w, "scores", cli_score(s));
	cli_json_score(w, "spread", s->n_folds ? &s->sd : cli_score(s));
}

bool cli_json_target_open(struct json_writer *w, const char *key, const struct model_target *t)
{
	json_put_key(w, key);
	if (!t->predictor.ops) {
		json_put_null(w);
		return false;
	}
	json_open(w, '{');
	json_kv_string(w, "name", t->predictor.ops->name);
	json_put_key(w, "settings");
	settings_to_json(&t->predictor.settings, w);
	return true;
}

void cli_json_target(struct json_writer *w, const char *key, const struct model_target *t)
{
	if (!cli_json_target_open(w, key, t))
		return;
	cli_json_score(w, "scores", cli_score(&t->score));
	json_close(w, '}');
}

void cli_importances(const struct model *m, const double *importance, double *out)
{
	size_t n = m->schema->n_columns + m->schema->n_derived;

	for (size_t i = 0; i < n; i++)
		out[i] = NAN;
	for (size_t i = 0; i < m->features->n; i++) {
		double *sum = &out[m->features->feature[i].source];

		*sum = (isnan(*sum) ? 0.0 : *sum) + importance[i];
	}
}

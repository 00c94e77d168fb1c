/* `postrider automl predict`: what a model says about the rows of a table, beside what was measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "automl/cli/verb.h"

struct input {
	struct csv *csv;
	struct table *table;
	char *path;
	int y; /* column of the csv; -1: none */
	double *real;
};

static void input_release(struct input *in)
{
	table_free(in->table);
	csv_free(in->csv);
	free(in->path);
	free(in->real);
}

static bool has_suffix(const char *s, const char *suffix)
{
	size_t n = strlen(s), k = strlen(suffix);

	return n >= k && !strcmp(s + n - k, suffix);
}

/* The table: named directly, or by a campaign, which also names the target. */
static int find_table(const char *given, struct input *in, struct campaign **out_campaign, struct err *err)
{
	int rc = 0;

	*out_campaign = NULL;
	if (has_suffix(given, ".ini") || has_suffix(given, ".json")) {
		rc = campaign_read(given, &(struct campaign_params){ .lenient = true, .predict = true },
				   out_campaign, err);
		if (!rc)
			rc = prepare_find_input(*out_campaign, &in->path, err);
	} else if (!(in->path = mem_strdup(given))) {
		rc = err_nomem(err, "a name");
	}
	return rc ? rc : csv_read_file(in->path, &in->csv, err);
}

/* Takes the target out of sight of the schema, which would want a time above 0, and keeps its numbers. */
static int take_target(struct input *in, const char *name, bool needed, struct err *err)
{
	static char hidden[] = "(target)";

	in->y = csv_column(in->csv, name);
	if (in->y < 0)
		return needed ? err_fail(err, ERR_FORMAT, "%s: there is no column '%s', the target", in->path,
					 name)
			      : 0;
	in->real = mem_array(in->csv->n_rows ? in->csv->n_rows : 1, sizeof *in->real);
	if (!in->real)
		return err_nomem(err, "%zu rows", in->csv->n_rows);
	for (size_t i = 0; i < in->csv->n_rows; i++) {
		int rc = csv_number(in->csv, i, (size_t)in->y, &in->real[i], err);

		if (rc)
			return rc;
	}
	in->csv->header[in->y] = hidden;
	return 0;
}

/* True and False are numbers to a campaign. */
static void booleans_as_numbers(struct input *in, const struct schema *s)
{
	static char one[] = "1", zero[] = "0";

	for (size_t k = 0; k < s->n_columns; k++) {
		int at = csv_column(in->csv, s->column[k].name);

		for (size_t i = 0; at >= 0 && s->column[k].kind == COLUMN_NUMBER && i < in->csv->n_rows;
		     i++) {
			char **cell = &in->csv->cell[i * in->csv->n_columns + (size_t)at];

			if (!strcmp(*cell, "True") || !strcmp(*cell, "true") || !strcmp(*cell, "TRUE"))
				*cell = one;
			else if (!strcmp(*cell, "False") || !strcmp(*cell, "false") ||
				 !strcmp(*cell, "FALSE"))
				*cell = zero;
		}
	}
}

static bool known_value(const struct features *f, size_t source, const char *value)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct feature *at = &f->feature[i];

		if (at->source == source && ((at->category && !strcmp(at->category, value)) ||
					     (at->category_zero && !strcmp(at->category_zero, value))))
			return true;
	}
	return false;
}

/* A category that training did not have is an error; a missing one of those it had is fine. */
static int check_values(const struct input *in, const struct model *m, struct err *err)
{
	for (size_t k = 0; k < m->schema->n_columns; k++) {
		const struct table_column *c = &in->table->column[k];

		for (size_t i = 0; i < in->table->n_rows; i++) {
			const char *category = c->kind == COLUMN_CATEGORY && c->category ? c->category[i]
											 : NULL;
			bool wrong = c->kind == COLUMN_CATEGORY
					     ? !category || !known_value(m->features, k, category)
					     : isnan(c->number[i]);

			if (wrong)
				return err_fail(err, ERR_FORMAT, "%s:%u: column %s: '%s' %s", in->path,
						in->csv->line[in->table->row[i]], m->schema->column[k].name,
						category ? cli_clean(category) : "",
						c->kind == COLUMN_CATEGORY && category
							? "is a value that training did not have"
							: "is missing");
		}
	}
	return 0;
}

static void put_rows(struct strbuf *out, const struct input *in, const double *predicted)
{
	strbuf_puts(out, "real,pred\n");
	for (size_t i = 0; i < in->table->n_rows; i++) {
		if (in->real)
			csv_put_number(out, in->real[in->table->row[i]]);
		strbuf_puts(out, ",");
		csv_put_number(out, predicted[i]);
		strbuf_puts(out, "\n");
	}
}

static int predict_rows(const struct cli *c, const struct model *m, const struct input *in,
			struct strbuf *out, struct err *err)
{
	size_t n = in->table->n_rows, known = 0;
	double *x = NULL, *predicted = mem_array(n ? n : 1, sizeof *predicted);
	double *y = mem_array(n ? n : 1, sizeof *y), *p = mem_array(n ? n : 1, sizeof *p);
	struct automl_score s;
	int rc = predicted && y && p ? features_encode_table(m->features, in->table, &x, err)
				     : err_nomem(err, "%zu rows", n);

	if (!rc) {
		predictor_predict(&m->time.predictor, x, n, predicted);
		for (size_t i = 0; i < n; i++) {
			if (in->real && isfinite(in->real[in->table->row[i]])) {
				y[known] = in->real[in->table->row[i]];
				p[known++] = predicted[i];
			}
		}
		s = automl_score_of(y, p, known);
		if (c->json) {
			struct json_writer w;

			json_begin(&w, out, true);
			json_open(&w, '{');
			json_kv_int(&w, "rows", (long long)n);
			json_kv_number(&w, "mape", s.mape);
			json_kv_number(&w, "rmse", s.rmse);
			json_kv_number(&w, "r2", s.r2);
			json_close(&w, '}');
			strbuf_puts(out, "\n");
		} else {
			put_rows(out, in, predicted);
			if (known)
				cli_notice(c, "%zu rows: MAPE %.4g %%, RMSE %.4g, R2 %.4g", known,
					   100.0 * s.mape, s.rmse, s.r2);
			else
				cli_notice(c, "%zu rows; the table has no column '%s', so there is no MAPE",
					   n, m->schema->time);
		}
	}
	free(x);
	free(predicted);
	free(y);
	free(p);
	return rc;
}

static int predict(const struct cli *c, struct err *err)
{
	struct campaign *campaign = NULL;
	struct input in = { .y = -1 };
	struct strbuf out = { 0 };
	struct model *m = NULL;
	int rc = cli_model_open(c->arg[0], &m, err);

	if (!rc)
		rc = find_table(c->arg[1], &in, &campaign, err);
	if (!rc)
		rc = take_target(&in, campaign ? campaign->y : m->schema->time, campaign != NULL, err);
	if (!rc) {
		booleans_as_numbers(&in, m->schema);
		rc = table_read(in.csv, m->schema, TABLE_NEEDS_FACTORS, &in.table, err);
	}
	if (!rc)
		rc = check_values(&in, m, err);
	if (!rc)
		rc = predict_rows(c, m, &in, &out, err);
	if (!rc)
		rc = cli_write(c->output, &out, err);
	strbuf_release(&out);
	input_release(&in);
	campaign_free(campaign);
	model_free(m);
	return rc;
}

int automl_predict(int argc, char **argv)
{
	const struct cli_usage usage = {
		.verb = "automl predict",
		.synopsis = "MODEL CAMPAIGN.ini|DATA.csv [-o FILE]",
		.what = "Predicts the rows of a table with a model that a campaign made, and writes what was "
			"measured "
			"and\nwhat was predicted (real,pred). The table is named directly, or by the "
			"input_path of a "
			"campaign,\nwhose y then is the target. The MAPE goes to standard error; with --json "
			"it is the "
			"output.",
		.json = true,
		.output = "write the CSV here",
		.min_args = 2,
		.max_args = 2,
		.examples = "  postrider automl predict results/best.model new.csv -o prediction.csv\n"
			    "  postrider automl predict results/LRRidge.model predict.ini --json\n",
	};
	struct err err = { 0 };
	struct cli c;
	int code;

	if (!cli_parse(&c, &usage, argc, argv, &code))
		return code;
	return predict(&c, &err) ? cli_fail(&err) : 0;
}

/* Writes a table again with the predictions of its rows, and the chance of each to be in time. */
#include "scheduler/cli/model/views.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/rng.h"
#include "common/text/text.h"

/* Below this many rows, building the look-up tables costs more than walking the trees. */
#define COMPILE_FROM_ROWS 1000

static const char *const appended[] = { "predicted_time_s", "upper_time_s", "predicted_accuracy",
					"extrapolated", NULL };

static bool is_appended(const char *column, bool chances)
{
	for (size_t i = 0; appended[i]; i++) {
		if (!strcmp(appended[i], column))
			return true;
	}
	return chances && !strcmp(column, "chance");
}

struct columns { /* one number a row */
	double *x, *time, *accuracy;
	struct belief *believed;
	double *chance; /* NULL: not asked for */
};

/* The chance of each row to take at most the time in that column; NaN where the cell is empty. */
static int find_chances(const struct csv *csv, const char *slo_column, const struct table *t,
			struct columns *p, struct err *err)
{
	int column = csv_column(csv, slo_column);
	char shown[64], hint[TEXT_HINT];
	const char **names;
	double slo_s;
	int rc = 0;

	if (is_appended(slo_column, true))
		return err_fail(err, ERR_ARG, "--slo-column %s: this is a column that predict adds",
				slo_column);
	if (column < 0) {
		names = mem_calloc(csv->n_columns + 1, sizeof *names);
		for (size_t i = 0; names && i < csv->n_columns; i++)
			names[i] = csv->header[i];
		rc = err_fail(err, ERR_FORMAT, "%s: there is no column '%s' for --slo-column%s", csv->name,
			      text_printable(slo_column, shown, sizeof shown),
			      names ? text_hint(slo_column, names, hint) : "");
		free(names);
		return rc;
	}
	p->chance = mem_array(t->n_rows, sizeof *p->chance);
	if (!p->chance)
		return err_nomem(err, "the chances of %zu rows", t->n_rows);
	for (size_t r = 0; r < t->n_rows && !rc; r++) {
		rc = csv_number(csv, t->row[r], (size_t)column, &slo_s, err);
		if (rc || isnan(slo_s) || isnan(p->time[r]))
			p->chance[r] = NAN;
		else
			p->chance[r] = belief_chance(p->believed[r], slo_s);
	}
	return rc;
}

/* Finding the shortest text of a number takes longer than predicting it, and the rows of a designed
 * experiment repeat a few predictions over and over. */
#define MEMO_SLOTS 4096
struct memo {
	double value;
	char text[32]; /* empty: nothing here yet */
};

static void put_number(struct strbuf *out, struct memo *memo, double v)
{
	struct rng hash = { 0 };
	struct memo *slot;

	if (isnan(v))
		return;
	memcpy(&hash.state, &v, sizeof v);
	slot = &memo[rng_next(&hash) % MEMO_SLOTS];
	if (!slot->text[0] || slot->value != v) {
		slot->value = v;
		text_shortest(v, slot->text);
	}
	strbuf_puts(out, slot->text);
}

static int put_table(struct strbuf *out, const struct csv *csv, const struct model *m, const struct table *t,
		     const struct columns *p, double confidence, struct err *err)
{
	struct memo *memo = mem_calloc(MEMO_SLOTS, sizeof *memo);
	size_t n_features = m->features->n;
	bool has_accuracy = m->accuracy.predictor.ops != NULL;

	if (!memo)
		return err_nomem(err, NULL);
	for (size_t c = 0; c < csv->n_columns; c++) {
		if (is_appended(csv->header[c], p->chance))
			continue;
		csv_put(out, csv->header[c]);
		strbuf_puts(out, ",");
	}
	strbuf_puts(out, "predicted_time_s,upper_time_s,predicted_accuracy,extrapolated");
	strbuf_puts(out, p->chance ? ",chance\n" : "\n");
	for (size_t r = 0; r < t->n_rows; r++) {
		for (size_t c = 0; c < csv->n_columns; c++) {
			if (is_appended(csv->header[c], p->chance))
				continue;
			csv_put(out, csv_cell(csv, t->row[r], c));
			strbuf_puts(out, ",");
		}
		put_number(out, memo, p->time[r]);
		strbuf_puts(out, ",");
		put_number(out, memo, belief_bound(p->believed[r], confidence));
		strbuf_puts(out, ",");
		if (has_accuracy)
			put_number(out, memo, p->accuracy[r]);
		strbuf_puts(out, features_extrapolated(m->features, p->x + r * n_features) ? ",1" : ",0");
		strbuf_puts(out, p->chance ? "," : "");
		if (p->chance)
			put_number(out, memo, p->chance[r]);
		strbuf_puts(out, "\n");
	}
	free(memo);
	return 0;
}

static void note_other(const struct cli *c, const struct model *m, const struct table *t)
{
	const struct table_column *column;
	size_t source, n = 0;

	if (m->features->other < 0)
		return;
	source = m->features->feature[m->features->other].source;
	column = &t->column[source];
	for (size_t i = 0; i < t->n_rows; i++)
		n += !column->present || isnan(column->number[i]);
	if (n)
		cli_notice(c, "%zu of %zu rows have no %s: no other work on the machine is assumed for them",
			   n, t->n_rows, schema_source_name(m->schema, source));
}

int predict_table(const struct cli *c, double confidence, const char *slo_column, struct model *m,
		  struct strbuf *out, struct err *err)
{
	/* Rows that training left out are predicted, too: every row of the table is in the result. */
	struct schema all_rows = *m->schema;
	struct columns p = { 0 };
	struct cli_input in = { 0 };
	struct err no_bound = { 0 };
	double q;
	size_t no_time = 0;
	bool bounded, again = false;
	int rc;

	all_rows.exclude = NULL;
	all_rows.n_excludes = 0;
	rc = cli_input_open(
		&in, c,
		&(struct cli_input_params){ .path = c->arg[1], .schema = &all_rows, .keeps_columns = true },
		err);
	if (rc)
		goto out;
	for (size_t i = 0; i < in.csv->n_columns; i++)
		again |= is_appended(in.csv->header[i], slo_column);
	if (again)
		cli_notice(c, "%s already has predictions; they are replaced", c->arg[1]);
	bounded = !conformal_quantile(&m->time.conformal, belief_asks(confidence), &q, &no_bound);
	if (!bounded)
		cli_notice(c, "upper_time_s stays empty: %s", no_bound.text);
	if (!m->accuracy.predictor.ops)
		cli_notice(c, "predicted_accuracy stays empty: %s has no model of accuracy", c->arg[0]);
	if (in.table->n_rows > COMPILE_FROM_ROWS) {
		rc = model_compile(m, err);
		if (rc)
			goto out;
	}
	note_other(c, m, in.table);
	rc = features_encode_table(m->features, in.table, &p.x, err);
	if (rc)
		goto out;
	p.time = mem_array(in.table->n_rows, sizeof *p.time);
	p.accuracy = mem_array(in.table->n_rows, sizeof *p.accuracy);
	p.believed = mem_array(in.table->n_rows, sizeof *p.believed);
	if (!p.time || !p.accuracy || !p.believed) {
		rc = err_nomem(err, "the predictions of %zu rows", in.table->n_rows);
		goto out;
	}
	predictor_predict(&m->time.predictor, p.x, in.table->n_rows, p.time);
	for (size_t r = 0; r < in.table->n_rows; r++) {
		no_time += p.time[r] <= 0.0;
		p.time[r] = p.time[r] > 0.0 ? p.time[r] : NAN;
		p.believed[r] = model_belief(m, &m->time, p.x + r * m->features->n, p.time[r], confidence);
	}
	if (no_time)
		cli_notice(c,
			   "%zu of %zu rows have no time: %s says 0 or less for them; train it with --set "
			   "log=yes",
			   no_time, in.table->n_rows, m->time.predictor.ops->name);
	if (m->accuracy.predictor.ops)
		predictor_predict(&m->accuracy.predictor, p.x, in.table->n_rows, p.accuracy);
	if (slo_column)
		rc = find_chances(in.csv, slo_column, in.table, &p, err);
	if (!rc && slo_column && !bounded)
		cli_notice(c, "chance stays empty: %s has too few test errors to tell it from", c->arg[0]);
	if (!rc)
		rc = put_table(out, in.csv, m, in.table, &p, confidence, err);
out:
	free(p.x);
	free(p.time);
	free(p.accuracy);
	free(p.believed);
	free(p.chance);
	cli_input_release(&in);
	return rc;
}

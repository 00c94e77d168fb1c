/* The learning curve of `postrider train --learning-curve`: as a table, as JSON and as a picture. */
#include <math.h>
#include <stdio.h>

#include "common/draw/frame.h"
#include "scheduler/cli/model/views.h"

void learning_view_text(struct strbuf *out, const struct cli *c, const struct learning *l)
{
	struct cli_table t;
	char a[32], b[32];

	cli_table_head(&t, "rrr", "runs", "MAPE %", "95 % interval");
	for (size_t i = 0; i < l->n; i++) {
		cli_table_add(&t, "%zu", l->point[i].runs);
		cli_table_add(&t, "%s", cli_number(100.0 * l->point[i].mape, a));
		cli_table_add(&t, "%s to %s",
			      cli_number(100.0 * fmax(l->point[i].mape - l->point[i].half, 0.0), a),
			      cli_number(100.0 * (l->point[i].mape + l->point[i].half), b));
	}
	if (l->n)
		cli_table_print(&t, out, cli_colour_stdout(c));
	cli_table_release(&t);
	learning_text(l, out);
	strbuf_puts(out, "\n");
}

void learning_view_json(struct json_writer *w, const struct learning *l)
{
	json_kv_open(w, "learning_curve", '{');
	json_kv_int(w, "runs", (long long)l->runs);
	json_kv_open(w, "points", '[');
	for (size_t i = 0; i < l->n; i++) {
		json_open(w, '{');
		json_kv_int(w, "runs", (long long)l->point[i].runs);
		json_kv_number(w, "mape", l->point[i].mape);
		json_kv_number(w, "half_interval", l->point[i].half);
		json_kv_int(w, "repetitions", (long long)l->point[i].n);
		json_close(w, '}');
	}
	json_close(w, ']');
	json_kv_number(w, "last_doubling", l->last_gain);
	json_kv_number(w, "with_twice_the_runs", l->next);
	json_close(w, '}');
}

int learning_plot(const struct learning *l, const struct model *m, const char *path, struct err *err)
{
	struct svg_point line[LEARNING_MAX_SIZES];
	double half[LEARNING_MAX_SIZES];
	struct strbuf see = { 0 }, svg = { 0 };
	struct sheet_panel panel = { .title = m->time.predictor.ops->title,
				     .note = "error on settings that were held out, with 95 % intervals",
				     .x_label = "runs learnt from",
				     .y_label = "mean absolute percentage error",
				     .line = line,
				     .n_line = l->n,
				     .half = half,
				     .log_x = true,
				     .zero = true };
	int rc;

	for (size_t i = 0; i < l->n; i++) {
		line[i] = (struct svg_point){ (double)l->point[i].runs, 100.0 * l->point[i].mape };
		half[i] = 100.0 * l->point[i].half;
	}
	learning_text(l, &see);
	if (see.len)
		see.text[--see.len] = '\0';
	sheet_draw(&svg, "How many runs are needed", strbuf_text(&see), &panel, 1);
	rc = svg.failed || see.failed ? err_nomem(err, "a picture") : cli_write(path, &svg, err);
	strbuf_release(&see);
	strbuf_release(&svg);
	return rc;
}

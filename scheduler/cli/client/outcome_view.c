/* A job in `postrider list --outcomes`: what was predicted and promised, and what happened. */
#include "scheduler/cli/client/outcome_view.h"

#include <math.h>
#include <string.h>

#include "common/text/text.h"
#include "scheduler/core/outcome.h"

void outcome_header(struct cli_table *t)
{
	cli_table_head(t, OUTCOME_ALIGN, "job", "state", "with", "batch", "objective", "predicted",
		       "promised", "actual", "kept", "accuracy", "predicted");
}

static void add_params(struct cli_table *t, const struct job_view *j)
{
	struct strbuf text = { 0 };
	char number[32];

	for (const struct json *m = json_first(j->params); m; m = json_next(m)) {
		double v = json_number(m, NAN);

		strbuf_printf(&text, "%s%s", text.len ? " " : "",
			      isnan(v) ? cli_clean(json_string(m, "")) : text_shortest(v, number));
	}
	cli_table_add(t, "%s", strbuf_text(&text));
	strbuf_release(&text);
}

void outcome_row(struct cli_table *t, const struct job_view *j, struct outcome_sums *sums)
{
	bool promised = j->verdict && !strcmp(j->verdict, "promised"), done = !strcmp(j->state, "done");
	char buf[32];

	cli_table_add(t, "%s", j->id);
	cli_table_add(t, "%s", j->state);
	add_params(t, j);
	cli_table_add(t, "%s", isnan(j->batch) ? "" : text_shortest(j->batch, buf));
	cli_table_seconds(t, j->slo_s);
	cli_table_seconds(t, j->predicted_s);
	cli_table_seconds(t, promised ? j->upper_s : NAN);
	cli_table_seconds(t, done ? j->response_s : NAN);
	cli_table_add(t, "%s", !promised || !j->outcome ? "" : !strcmp(j->outcome, "met") ? "yes" : "NO");
	cli_table_percent(t, j->accuracy);
	cli_table_percent(t, done ? j->predicted_accuracy : NAN);

	sums->rejected += !strcmp(j->state, "rejected");
	if (promised && j->outcome) {
		sums->promised++;
		sums->kept += !strcmp(j->outcome, "met");
	}
	if (done && j->predicted_s > 0.0 && j->response_s > 0.0) {
		sums->predicted++;
		sums->within += j->response_s <= j->upper_s;
		sums->error += outcome_error(j->predicted_s, j->response_s);
	}
}

void outcome_summary(const struct outcome_sums *s, struct strbuf *out)
{
	char share[32], error[32];

	strbuf_puts(out, "\n");
	if (s->promised)
		strbuf_printf(out, "objectives   %zu of %zu promised were met: %s\n", s->kept, s->promised,
			      cli_percent((double)s->kept / (double)s->promised, share));
	if (s->predicted)
		strbuf_printf(out,
			      "predictions  off by %s on average; %zu of %zu responses within their bound\n",
			      cli_percent(s->error / (double)s->predicted, error), s->within, s->predicted);
	if (s->rejected)
		strbuf_printf(out, "rejected     %zu: no batch size was fast enough\n", s->rejected);
}

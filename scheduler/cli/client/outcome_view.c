/* A job in `postrider list --outcomes`: what was predicted and promised, and what happened. */
#include "scheduler/cli/client/outcome_view.h"

#include <math.h>
#include <string.h>

#include "common/text/text.h"
#include "scheduler/core/outcome.h"

void outcome_header(struct cli_table *t)
{
	cli_table_head(t, OUTCOME_ALIGN, "job", "state", "with", "batch", "limit", "time predicted",
		       "at most", "time", "kept", "accuracy predicted", "accuracy");
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
	bool promised = j->r.verdict == VERDICT_PROMISED, done = j->r.state == JOB_DONE;
	char buf[32];

	cli_table_add(t, "%s", j->id);
	cli_table_add(t, "%s", job_state_name[j->r.state]);
	add_params(t, j);
	cli_table_add(t, "%s", isnan(j->r.batch) ? "" : text_shortest(j->r.batch, buf));
	cli_table_seconds(t, j->r.slo_s);
	cli_table_seconds(t, j->r.predicted_s);
	cli_table_seconds(t, promised ? j->r.upper_s : NAN);
	cli_table_seconds(t, done ? j->t.response_s : NAN);
	cli_table_add(t, "%s",
		      !promised || !j->r.slo_outcome ? ""
		      : j->r.slo_outcome == SLO_MET  ? "yes"
						     : "NO");
	cli_table_accuracy(t, done ? j->r.predicted_accuracy : NAN);
	cli_table_accuracy(t, j->r.accuracy);

	sums->rejected += j->r.state == JOB_REJECTED;
	if (promised && j->r.slo_outcome) {
		sums->promised++;
		sums->kept += j->r.slo_outcome == SLO_MET;
	}
	if (j->r.verdict == VERDICT_CHANCE && j->r.slo_outcome) {
		sums->by_chance++;
		sums->by_chance_met += j->r.slo_outcome == SLO_MET;
	}
	if (done && j->r.predicted_s > 0.0 && j->t.response_s > 0.0) {
		sums->predicted++;
		sums->within += j->t.response_s <= j->r.upper_s;
		sums->error += outcome_error(j->r.predicted_s, j->t.response_s);
	}
}

void outcome_summary(const struct outcome_sums *s, struct strbuf *out)
{
	char share[32], error[32];

	strbuf_puts(out, "\n");
	if (s->promised)
		strbuf_printf(out, "promises     %zu of %zu were kept: %s\n", s->kept, s->promised,
			      cli_percent((double)s->kept / (double)s->promised, share));
	if (s->by_chance)
		strbuf_printf(out, "by chance    %zu of %zu were in time, without a promise\n",
			      s->by_chance_met, s->by_chance);
	if (s->predicted)
		strbuf_printf(out,
			      "predictions  off by %s on average; %zu of %zu responses within their bound\n",
			      cli_percent(s->error / (double)s->predicted, error), s->within, s->predicted);
	if (s->rejected)
		strbuf_printf(out, "rejected     %zu: no batch size was fast enough\n", s->rejected);
}

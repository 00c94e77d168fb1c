/* What an answer says beside the choice, as JSON and in words. See alternatives.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"
#include "scheduler/core/alternatives.h"

/* ---- JSON ---- */

static void put(struct json_writer *w, const char *name, const struct alternative *a)
{
	if (isnan(a->batch))
		return;
	json_kv_open(w, name, '{');
	json_kv_fixed(w, "batch", a->batch, 6);
	json_kv_fixed(w, "epochs", a->epochs, 6);
	json_kv_fixed(w, "accuracy", a->accuracy, 6);
	/* rounded up: what is typed back must be enough */
	json_kv_fixed(w, "needs_s", ceil(a->needs_s * 1e6) / 1e6, 6);
	if (a->why[0])
		json_kv_string(w, "why", a->why);
	if (a->job[0])
		json_kv_string(w, "job", a->job);
	if (a->cost > 0.0)
		json_kv_fixed(w, "cost", a->cost, 6);
	json_close(w, '}');
}

void alternatives_json(struct json_writer *w, const struct alternatives *a)
{
	put(w, "passed_over", &a->passed);
	put(w, "with_more_time", &a->later);
	put(w, "shorter", &a->shorter);
}

static struct alternative get(const struct json *v)
{
	struct alternative a = { .batch = json_number(json_get(v, "batch"), NAN),
				 .epochs = json_number(json_get(v, "epochs"), NAN),
				 .accuracy = json_number(json_get(v, "accuracy"), NAN),
				 .needs_s = json_number(json_get(v, "needs_s"), NAN),
				 .cost = json_number(json_get(v, "cost"), 0.0) };

	snprintf(a.why, sizeof a.why, "%s", json_string(json_get(v, "why"), ""));
	snprintf(a.job, sizeof a.job, "%s", json_string(json_get(v, "job"), ""));
	return a;
}

void alternatives_read(const struct json *v, struct alternatives *out)
{
	*out = (struct alternatives){ .passed = get(json_get(v, "passed_over")),
				      .later = get(json_get(v, "with_more_time")),
				      .shorter = get(json_get(v, "shorter")) };
}

/* ---- words ---- */

void alternative_name(const struct alternative *a, struct strbuf *out)
{
	char batch[32], epochs[32];

	strbuf_puts(out, text_shortest(a->batch, batch));
	if (!isnan(a->epochs))
		strbuf_printf(out, " x %s epoch%s", text_shortest(a->epochs, epochs),
			      a->epochs == 1.0 ? "" : "s");
	if (!isnan(a->accuracy))
		strbuf_printf(out, ", accuracy %.4f", a->accuracy);
}

static void put_why(const struct alternative *a, struct strbuf *out)
{
	static const char *const words[][2] = {
		{ "breaks_promise", "another job would miss its promise" },
		{ "too_wide", "it needs more cpus than there are for jobs" },
		{ "devices", "it needs more gpus than it may have, or more of their memory" },
		{ "memory", "it needs more memory than it may have" },
		{ "beyond_model", "too far outside the training table for a promise" },
		{ "no_bound", "too few past runs for a promise" },
		{ "not_picked", "the policy chooses by another rule" },
		{ "price", "to leave room for other jobs" },
	};
	const char *say = a->why;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (!strcmp(a->why, words[i][0]))
			say = words[i][1];
	if (a->job[0])
		strbuf_printf(out, ": job %s would miss its promise", a->job);
	else if (*say)
		strbuf_printf(out, ": %s", say);
	if (!strcmp(a->why, "price") && a->cost > 0.0)
		strbuf_printf(out, ", which would lose %.3g of accuracy", a->cost);
}

void alternatives_text(const struct alternatives *a, const char *before, struct strbuf *out)
{
	char s[32];

	if (!isnan(a->passed.batch)) {
		strbuf_printf(out, "%spassed     ", before);
		alternative_name(&a->passed, out);
		put_why(&a->passed, out);
		strbuf_puts(out, "\n");
	}
	if (!isnan(a->later.batch)) {
		strbuf_printf(out, "%smore time  with %s: ", before, text_seconds_up(a->later.needs_s, s));
		alternative_name(&a->later, out);
		strbuf_puts(out, "\n");
	}
	if (!isnan(a->shorter.batch)) {
		strbuf_printf(out, "%sshorter    in time with ", before);
		alternative_name(&a->shorter, out);
		if (!isnan(a->shorter.needs_s))
			strbuf_printf(out, ", at most %s", text_seconds_up(a->shorter.needs_s, s));
		strbuf_puts(out, "\n");
	}
}

/* What an answer says beside the choice, as JSON and in words. See alternatives.h. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"
#include "scheduler/core/alternatives.h"

/* ---- words ---- */

void alternative_name(const struct alternative *a, struct strbuf *out)
{
	char batch[32], epochs[32], accuracy[32];

	strbuf_puts(out, text_shortest(a->batch, batch));
	if (!isnan(a->epochs))
		strbuf_printf(out, " x %s epoch%s", text_shortest(a->epochs, epochs),
			      a->epochs == 1.0 ? "" : "s");
	if (!isnan(a->accuracy))
		strbuf_printf(out, ", accuracy %s", text_accuracy(a->accuracy, accuracy));
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
	const char *say = NULL;
	char shown[64];

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (!strcmp(a->why, words[i][0]))
			say = words[i][1];
	if (a->job[0])
		strbuf_printf(out, ": job %s would miss its promise",
			      text_printable(a->job, shown, sizeof shown));
	else if (a->why[0])
		strbuf_printf(out, ": %s", say ? say : text_printable(a->why, shown, sizeof shown));
	if (!strcmp(a->why, "price") && a->cost > 0.0)
		strbuf_printf(out, ", which would lose %.3g of accuracy", a->cost);
}

static void put_passed(const struct alternative *a, struct strbuf *out)
{
	alternative_name(a, out);
	put_why(a, out);
}

static void put_later(const struct alternative *a, struct strbuf *out)
{
	char s[32];

	strbuf_printf(out, "with %s: ", text_seconds_up(a->needs_s, s));
	alternative_name(a, out);
}

static void put_shorter(const struct alternative *a, struct strbuf *out)
{
	char s[32];

	strbuf_puts(out, "in time with ");
	alternative_name(a, out);
	if (!isnan(a->needs_s))
		strbuf_printf(out, ", at most %s", text_seconds_up(a->needs_s, s));
}

/* In the order in which they are shown. */
static const struct kind {
	const char *label, *member;
	size_t at;
	void (*put)(const struct alternative *a, struct strbuf *out);
} kind[] = {
	{ "passed     ", "passed_over", offsetof(struct alternatives, passed), put_passed },
	{ "more time  ", "with_more_time", offsetof(struct alternatives, later), put_later },
	{ "shorter    ", "shorter", offsetof(struct alternatives, shorter), put_shorter },
};
enum { N_KINDS = sizeof kind / sizeof *kind };

static const struct alternative *of_kind(const struct alternatives *a, int i)
{
	return (const struct alternative *)((const char *)a + kind[i].at);
}

void alternatives_text(const struct alternatives *a, const char *before, struct strbuf *out)
{
	for (int i = 0; i < N_KINDS; i++) {
		if (isnan(of_kind(a, i)->batch))
			continue;
		strbuf_printf(out, "%s%s", before, kind[i].label);
		kind[i].put(of_kind(a, i), out);
		strbuf_puts(out, "\n");
	}
}

/* ---- JSON ---- */

void alternatives_json(struct json_writer *w, const struct alternatives *all)
{
	for (int i = 0; i < N_KINDS; i++) {
		const struct alternative *a = of_kind(all, i);
		struct strbuf text = { 0 };

		if (isnan(a->batch))
			continue;
		kind[i].put(a, &text);
		json_kv_open(w, kind[i].member, '{');
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
		json_kv_string(w, "text", strbuf_text(&text));
		json_close(w, '}');
		strbuf_release(&text);
	}
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
	for (int i = 0; i < N_KINDS; i++)
		*(struct alternative *)((char *)out + kind[i].at) = get(json_get(v, kind[i].member));
}

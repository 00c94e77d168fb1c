/* Reads the names of policies, the oracle included. */
#include "sim/replay/policies.h"

#include <stdio.h>
#include <string.h>

static const struct sim_policy only_here[] = {
	{ "greedy-oracle",
	  "knows what will happen to every job that has come, and plays it before it promises",
	  .oracle = true },
	{ "priced-oracle",
	  "the same, and a job takes no more from others than it brings, as postrider counts it",
	  .oracle = true, .priced = true },
	{ "optimum", "the best schedule there is, all arrivals known; of many jobs an upper bound",
	  .optimum = true },
	{ "fifo", "the paper's models, jobs in the order of arrival", .queue = SIM_QUEUE_FIFO },
	{ "edf", "the paper's models, the earliest deadline first", .queue = SIM_QUEUE_EDF },
	{ "courier-waits",
	  "the paper's, in the order of arrival, with the work ahead by the slots as the wait",
	  .queue = SIM_QUEUE_WAITS },
	{ "fixed:best", "the best of all fixed batches, as found on a pilot", .best_fixed = true },
};

const char *sim_policy_name(const char *text)
{
	return strcmp(text, "oracle") ? text : "greedy-oracle";
}

int sim_policy_parse(const char *text, struct sim_policy *out, struct err *err)
{
	struct sim_policy p = { 0 };
	const char *given = text;
	int status = 0;

	text = sim_policy_name(given);
	for (size_t i = 0; i < sizeof only_here / sizeof *only_here; i++)
		if (!strcmp(text, only_here[i].name))
			p = only_here[i];
	if (!p.title && strlen(text) >= sizeof p.name)
		return err_fail(err, ERR_ARG, "a policy's name has fewer than %d letters", SIM_POLICY_NAME);
	if (!p.title || p.queue || p.best_fixed) {
		status = policy_parse(p.queue ? "courier" : p.best_fixed ? "fixed:1" : text, &p.choice, err);
		if (status && err && !strchr(text, ':'))
			strncat(err->text,
				", greedy-oracle, priced-oracle, optimum, fifo, edf, courier-waits, "
				"fixed:best",
				sizeof err->text - strlen(err->text) -
					1); /* the list of names ends the sentence */
	}
	if (!status) {
		snprintf(p.name, sizeof p.name, "%s", text);
		p.old_name = text != given;
		p.title = p.title ? p.title : p.choice.policy->title;
		*out = p;
	}
	return status;
}

/* Of the first policy in a list. A part with an equals sign and no colon is a setting of the policy before
 * it. */
static size_t length_of(const char *list)
{
	size_t len = strcspn(list, ",");

	while (list[len] == ',' && list[len + 1 + strcspn(list + len + 1, ",:=")] == '=')
		len += 1 + strcspn(list + len + 1, ",");
	return len;
}

int sim_policies_parse(const char *list, struct sim_policy *out, size_t max, size_t *out_n, struct err *err)
{
	size_t n = 0;
	int status = 0;

	for (const char *at = list; !status; n++) {
		size_t len = length_of(at);
		char name[SIM_POLICY_NAME];

		if (!len || len >= sizeof name)
			return err_fail(err, ERR_ARG,
					"policies are named like courier,postrider,fixed:128, "
					"and one of these has %s letters",
					len ? "too many" : "no");
		if (n >= max)
			return err_fail(err, ERR_ARG, "at most %zu policies can be compared at a time", max);
		snprintf(name, sizeof name, "%.*s", (int)len, at);
		status = sim_policy_parse(name, &out[n], err);
		for (size_t i = 0; !status && i < n; i++)
			if (!strcmp(out[i].name, out[n].name))
				status = err_fail(err, ERR_ARG, "policy %s appears twice", name);
		if (!at[len])
			break;
		at += len + 1;
	}
	if (!status)
		*out_n = n + 1;
	return status;
}

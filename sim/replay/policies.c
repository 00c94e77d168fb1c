/* Reads the names of policies, the oracle included. */
#include "sim/replay/policies.h"

#include <stdio.h>
#include <string.h>

int sim_policy_parse(const char *text, struct sim_policy *out, struct err *err)
{
	struct sim_policy p = { 0 };
	int status = 0;

	if (strlen(text) >= sizeof p.name)
		return err_fail(err, ERR_ARG, "a policy's name has fewer than %d letters", SIM_POLICY_NAME);
	snprintf(p.name, sizeof p.name, "%s", text);
	if (!strcmp(text, "greedy-oracle") || !strcmp(text, "oracle")) { /* the second is its old name */
		p.oracle = true;
		p.title =
			"knows what will happen to every job that has come, and plays it before it promises";
	} else if (!strcmp(text, "optimum")) {
		p.optimum = true;
		p.title = "the best schedule there is, all arrivals known; of many jobs an upper bound";
	} else {
		status = policy_parse(text, &p.choice, err);
		if (!status)
			p.title = p.choice.policy->title;
		else if (err && !strchr(text, ':') && strlen(err->text) + 32 < sizeof err->text)
			strcat(err->text,
			       ", greedy-oracle, optimum"); /* the list of names ends the sentence */
	}
	if (!status)
		*out = p;
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
				status = err_fail(err, ERR_ARG, "policy %s is there twice", name);
		if (!at[len])
			break;
		at += len + 1;
	}
	if (!status)
		*out_n = n + 1;
	return status;
}

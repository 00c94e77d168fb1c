/* The table of policies, and which model each accepts. */
#include "scheduler/core/policy/policy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"
#include "predictors/models/queueing_models.h"
#include "scheduler/core/decide.h"

#define MAX_BATCH 1e12 /* of fixed:B */

/* ---- choosing without a prediction: the paper's naive scheduler, and one batch for all jobs ---- */

/* One that neither fits the memory nor the slots would never start, and all behind it would wait for ever. */
static bool can_run(const struct candidate *c)
{
	return !(c->reasons & REASONS_NO_ROOM);
}

/* Uniformly among the batches that can run at all. */
static int choose_naive(const struct policy_choice *by, const struct decision *d, double noise,
			struct rng *rng)
{
	uint32_t n = 0, pick;

	(void)by;
	(void)noise;
	for (size_t i = 0; i < d->n_candidates; i++)
		n += can_run(&d->candidate[i]);
	if (!n)
		return -1;
	pick = rng_below(rng, n);
	for (size_t i = 0; i < d->n_candidates; i++)
		if (can_run(&d->candidate[i]) && pick-- == 0)
			return (int)i;
	return -1;
}

/* The batch of the configuration, or the nearest one that the job allows. */
static int choose_fixed(const struct policy_choice *by, const struct decision *d, double noise,
			struct rng *rng)
{
	double least = INFINITY;
	int nearest = -1;

	(void)noise;
	(void)rng;
	for (size_t i = 0; i < d->n_candidates; i++) {
		double off = fabs(d->candidate[i].decision - by->batch);

		/* candidates ascend, so of two as near the smaller one is taken */
		if (can_run(&d->candidate[i]) && (nearest < 0 || off < least)) {
			nearest = (int)i;
			least = off;
		}
	}
	return nearest;
}

/* ---- the table ---- */

static const struct policy courier = {
	.name = "courier",
	.title = "the paper's: forests as in its Table 7, the jobs that run as a feature, expected time",
	.predictor = "forest",
	.settings = "trees=2000,depth=6,criterion=absolute",
	.exact = true,
};

static const struct policy courier_tuned = {
	.name = "courier-tuned",
	.title = "the paper's, with the settings of the forest found by a search",
	.predictor = "forest",
	.exact = true,
};

static const struct policy card = {
	.name = "card",
	.title = "the paper's queue times the paper's forest, expected time; an unstable queue is not "
		 "feasible",
	.predictor = "hybrid",
	.settings = "queue=paper,trees=2000,depth=6,criterion=absolute",
	.accuracy = "forest",
	.accuracy_settings = "trees=150,depth=9,criterion=absolute",
	.open_queue = true,
	.exact = true,
};

static const struct policy postrider = {
	.name = "postrider",
	.title = "a queueing model times a forest on what it gets wrong, upper bounds, a look ahead, a price",
	.predictor = "hybrid",
	.or_predictor = "gp",
	.bounds = true,
	.looks_ahead = true,
	.priced = true,
};

static const struct policy greedy = {
	.name = "greedy",
	.title = "as postrider, but each job takes the most accurate batch that it can have",
	.predictor = "hybrid",
	.or_predictor = "gp",
	.bounds = true,
	.looks_ahead = true,
};

static const struct policy naive = {
	.name = "naive",
	.title = "a batch drawn at random, as in the paper's comparison",
	.admits_all = true,
	.choose = choose_naive,
};

static const struct policy boost = {
	.name = "boost",
	.title = "gradient boosting as in the paper's Table 10, which knows nothing of the load",
	.predictor = "boost",
	.settings = "trees=50,depth=3,loss=absolute",
	.accuracy = "boost",
	.accuracy_settings = "trees=50,depth=3,loss=squared",
	.without_load = true,
	.exact = true,
};

static const struct policy boost_full = {
	.name = "boost-full",
	.title = "gradient boosting that knows the load",
	.predictor = "boost",
};

static const struct policy queueing = {
	.name = "queueing",
	.title = "the calibrated queueing model alone, expected time",
	.predictor = "queueing",
};

static const struct policy anova = {
	.name = "anova",
	.title = "a linear model with all products of factors, as in the paper's Table 4, expected time",
	.predictor = "linear",
	.settings = "degree=0",
};

static const struct policy fixed = {
	.name = "fixed",
	.title = "one batch for every job, or the nearest one it allows",
	.admits_all = true,
	.takes_batch = true,
	.choose = choose_fixed,
};

const struct policy *const policy_all[] = { &courier, &courier_tuned, &card,     &postrider, &greedy, &naive,
					    &boost,   &boost_full,    &queueing, &anova,     &fixed,  NULL };
enum { N_POLICIES = sizeof policy_all / sizeof policy_all[0] - 1 };

const char *policy_names(void)
{
	static char text[256];
	size_t used = 0;

	/* Always the same text, so that two threads writing it at once do no harm. */
	for (size_t i = 0; policy_all[i] && used < sizeof text; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s", i ? ", " : "",
					 policy_all[i]->name, policy_all[i]->takes_batch ? ":B" : "");
	return text;
}

static int unknown(const char *text, size_t len, struct err *err)
{
	const char *known[N_POLICIES + 1] = { 0 };
	char name[64], shown[64], hint[TEXT_HINT];

	for (size_t i = 0; i < N_POLICIES; i++)
		known[i] = policy_all[i]->name;
	snprintf(name, sizeof name, "%.*s", (int)(len < sizeof name ? len : sizeof name - 1), text);
	return err_fail(err, ERR_ARG, "there is no policy '%s'%s; there are: %s",
			text_printable(name, shown, sizeof shown), text_hint(name, known, hint),
			policy_names());
}

/* ---- settings: NAME:key=value,key=value ---- */

static int bad_setting(const struct policy *p, const char *text, const char *why, struct err *err)
{
	char shown[64];

	return err_fail(err, ERR_ARG, "policy %s: '%s' %s", p->name,
			text_printable(text, shown, sizeof shown), why);
}

/* Those that can be left out of it; 0: none. */
static unsigned layers_of(const struct policy *p)
{
	if (!p->bounds || !p->looks_ahead)
		return 0;
	return p->priced ? LAYERS_ALL : LAYERS_ALL & ~(unsigned)(LAYER_PRICE | LAYER_GIVE_BACK);
}

static int parse_layer(const char *value, enum layer layer, struct policy_choice *io)
{
	if (!strcmp(value, "no"))
		io->without |= layer;
	else if (!strcmp(value, "yes"))
		io->without &= ~(unsigned)layer;
	else
		return -1;
	return 0;
}

static int parse_setting(const char *key, const char *value, struct policy_choice *io, struct err *err)
{
	const struct policy *p = io->policy;
	const struct predictor_ops *ops;
	char shown[64];

	if (!strcmp(key, "chance") && !p->admits_all) {
		io->no_chance = !strcmp(value, "no");
		if (!io->no_chance && strcmp(value, "yes") &&
		    (!text_number(value, &io->chance) || !(io->chance > 0.0 && io->chance < 1.0)))
			return err_fail(
				err, ERR_ARG,
				"policy %s: the chance '%s' is neither no nor a number between 0 and 1",
				p->name, text_printable(value, shown, sizeof shown));
	} else if (!strcmp(key, "bounds") && p->bounds) {
		if (parse_layer(value, LAYER_BOUNDS, io))
			return bad_setting(p, value, "is neither yes nor no (bounds)", err);
	} else if (!strcmp(key, "look_ahead") && p->looks_ahead) {
		if (parse_layer(value, LAYER_LOOK_AHEAD, io))
			return bad_setting(p, value, "is neither yes nor no (look_ahead)", err);
	} else if (!strcmp(key, "price") && p->priced) {
		if (parse_layer(value, LAYER_PRICE, io) &&
		    (!text_number(value, &io->price) || !(io->price > 0.0 && io->price < INFINITY)))
			return bad_setting(p, value, "is neither yes, no, nor a price above 0", err);
	} else if (!strcmp(key, "steer") && layers_of(p)) {
		if (parse_layer(value, LAYER_STEER, io))
			return bad_setting(p, value, "is neither yes nor no (steer)", err);
	} else if (!strcmp(key, "without") && layers_of(p)) {
		return layers_parse(value, p->name, layers_of(p), &io->without, err);
	} else if (!strcmp(key, "model") && p->predictor) {
		ops = predictor_find(value);
		if (!ops)
			return bad_setting(p, value, "is not the name of a model", err);
		io->model = ops->name;
	} else {
		return err_fail(err, ERR_ARG, "policy %s has no setting '%s'; it has %s%s%s%s%s", p->name,
				text_printable(key, shown, sizeof shown), p->admits_all ? "none" : "chance",
				p->predictor ? ", model" : "", p->bounds ? ", bounds, look_ahead" : "",
				layers_of(p) ? ", steer, without" : "", p->priced ? ", price" : "");
	}
	return 0;
}

static int parse_settings(const char *text, struct policy_choice *io, struct err *err)
{
	char pair[LAYERS_TEXT + 16], shown[64]; /* "without=" and every layer is the longest */

	for (const char *at = text;; at++) {
		size_t len = strcspn(at, ",");
		char *equals;
		int rc;

		snprintf(pair, sizeof pair, "%.*s", (int)(len < sizeof pair ? len : sizeof pair - 1), at);
		equals = strchr(pair, '=');
		if (!equals)
			return err_fail(err, ERR_ARG, "policy %s: '%s' is not a setting like chance=0.5",
					io->policy->name, text_printable(pair, shown, sizeof shown));
		*equals = '\0';
		rc = parse_setting(pair, equals + 1, io, err);
		if (rc)
			return rc;
		at += len;
		if (!*at)
			return 0;
	}
}

int policy_parse(const char *text, struct policy_choice *out, struct err *err)
{
	const char *colon = strchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : strlen(text);
	struct policy_choice made = { .batch = NAN };
	char shown[64];
	int rc = 0;

	for (size_t i = 0; policy_all[i] && !made.policy; i++)
		if (strlen(policy_all[i]->name) == len && !strncmp(policy_all[i]->name, text, len))
			made.policy = policy_all[i];
	if (!made.policy)
		return unknown(text, len, err);
	if (made.policy->takes_batch && !colon)
		return err_fail(err, ERR_ARG, "policy %s: which batch? Write %s:128", made.policy->name,
				made.policy->name);
	if (made.policy->takes_batch &&
	    (!text_number(colon + 1, &made.batch) || !(made.batch > 0.0 && made.batch <= MAX_BATCH)))
		return err_fail(err, ERR_ARG, "policy %s: the batch '%s' is not a number above 0",
				made.policy->name, text_printable(colon + 1, shown, sizeof shown));
	if (colon && !made.policy->takes_batch)
		rc = parse_settings(colon + 1, &made, err);
	if (!rc)
		*out = made;
	return rc;
}

struct policy policy_resolve(const struct policy_choice *c)
{
	struct policy p = *c->policy;

	p.bounds &= !(c->without & LAYER_BOUNDS);
	p.looks_ahead &= !(c->without & LAYER_LOOK_AHEAD);
	p.priced &= !(c->without & LAYER_PRICE);
	if (c->model) {
		p.predictor = c->model;
		p.or_predictor = p.settings = NULL;
		p.open_queue = false;
	}
	return p;
}

static bool knows_load(const struct model *m)
{
	for (size_t i = 0; i < m->features->n; i++) {
		int source = (int)m->features->feature[i].source;

		if (source == schema_role(m->schema, ROLE_NJOBS) ||
		    source == schema_role(m->schema, ROLE_PROCESSES))
			return true;
	}
	return false;
}

static bool wants(const struct policy *p, const char *predictor)
{
	return !p->predictor || !strcmp(predictor, p->predictor) ||
	       (p->or_predictor && !strcmp(predictor, p->or_predictor));
}

bool policy_wants_with(const struct policy *p, const struct predictor *predictor)
{
	return wants(p, predictor->ops->name) &&
	       (!p->open_queue || settings_get(&predictor->settings, "queue") == QUEUE_PAPER);
}

/* The winner of a campaign: for policies that leave the model open. Retraining cannot fit it, so they want
 * the others. */
static bool from_campaign(const struct policy *p, const struct model *m)
{
	return p->or_predictor && m->time.predictor.ops && !strcmp(m->time.predictor.ops->name, "automl");
}

int policy_accepts(const struct policy_choice *c, const struct model *m, struct err *err)
{
	struct policy resolved = policy_resolve(c), *p = &resolved;

	if (!p->predictor)
		return 0;
	if (!m)
		return err_fail(err, ERR_ARG,
				"policy %s needs a model: postrider train DATA.csv --policy %s -o MODEL",
				p->name, p->name);
	if (!m->time.predictor.ops || (!wants(p, m->time.predictor.ops->name) && !from_campaign(p, m)))
		return err_fail(
			err, ERR_ARG,
			"policy %s wants the model %s%s%s of response time, and this one is %s: postrider "
			"train DATA.csv --policy %s -o MODEL makes it",
			p->name, p->predictor, p->or_predictor ? " or " : "",
			p->or_predictor ? p->or_predictor : "",
			m->time.predictor.ops ? m->time.predictor.ops->name : "none", p->name);
	if (!from_campaign(p, m) && !policy_wants_with(p, &m->time.predictor))
		return err_fail(
			err, ERR_ARG,
			"policy %s wants a hybrid on the paper's queue (queue=paper), and this one stands "
			"on another: postrider train DATA.csv --policy %s -o MODEL makes one",
			p->name, p->name);
	if (p->without_load && knows_load(m))
		return err_fail(err, ERR_ARG,
				"policy %s wants a model that knows nothing of the load, and this one has it "
				"among its columns: postrider train DATA.csv --policy %s -o MODEL makes one",
				p->name, p->name);
	return 0;
}

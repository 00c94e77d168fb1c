/* Prior distributions of hyper-parameters. See prior.h. */
#include "automl/prior.h"

#include <gsl/gsl_cdf.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/text/text.h"

enum form { FORM_UNIFORM, FORM_INT, FORM_RANDINT, FORM_NORMAL };

static const struct {
	const char *name;
	enum form form;
	bool log, quantised;
} known[] = {
	{ "uniform", FORM_UNIFORM, false, false },   { "quniform", FORM_UNIFORM, false, true },
	{ "uniformint", FORM_INT, false, false },    { "randint", FORM_RANDINT, false, false },
	{ "normal", FORM_NORMAL, false, false },     { "qnormal", FORM_NORMAL, false, true },
	{ "loguniform", FORM_UNIFORM, true, false }, { "qloguniform", FORM_UNIFORM, true, true },
	{ "lognormal", FORM_NORMAL, true, false },   { "qlognormal", FORM_NORMAL, true, true },
};
#define N_KNOWN (sizeof known / sizeof *known)

bool prior_is(const char *text)
{
	size_t n = 0;

	while (isalnum((unsigned char)text[n]) || text[n] == '_')
		n++;
	return n && text[n] == '(' && text[strlen(text) - 1] == ')';
}

static int read_arguments(const char *text, double *out, size_t *out_n, struct err *err)
{
	char buf[128], *rest = buf, *one;
	const char *from = strchr(text, '(') + 1;
	size_t len = strlen(from) - 1, n = 0;

	if (len >= sizeof buf)
		return err_fail(err, ERR_ARG, "'%.40s...': this prior is too long", text);
	memcpy(buf, from, len);
	buf[len] = '\0';
	while ((one = strsep(&rest, ","))) {
		while (isspace((unsigned char)*one))
			one++;
		for (size_t k = strlen(one); k && isspace((unsigned char)one[k - 1]); k--)
			one[k - 1] = '\0';
		if (n == 3 || !text_number(one, &out[n]))
			return err_fail(err, ERR_ARG,
					"'%.80s': '%.20s' is not a number, or there are too many", text, one);
		n++;
	}
	*out_n = n;
	return 0;
}

static int check(const char *text, enum form form, bool log_scale, const double *v, struct err *err)
{
	if (form == FORM_NORMAL && !(v[1] > 0.0))
		return err_fail(err, ERR_ARG, "'%.80s': the standard deviation must be above 0", text);
	if (form != FORM_NORMAL && !(v[0] < v[1]))
		return err_fail(err, ERR_ARG, "'%.80s': the lower end must be below the upper one", text);
	if (form == FORM_UNIFORM && log_scale && !(v[0] > 0.0))
		return err_fail(err, ERR_ARG, "'%.80s': both ends of a log-uniform prior must be above 0",
				text);
	return 0;
}

static void ends(struct prior *p)
{
	double reach = p->shape == PRIOR_NORMAL ? INFINITY : 0.0;

	p->low = p->shape == PRIOR_NORMAL ? (p->log ? 0.0 : -reach) : prior_value(p, p->a);
	p->high = p->shape == PRIOR_NORMAL ? reach : prior_value(p, p->b);
}

int prior_parse(const char *text, struct prior *out, struct err *err)
{
	const char *name[N_KNOWN + 1] = { NULL };
	char given[32], hint[TEXT_HINT];
	double v[3] = { 0 };
	size_t k = 0, n = 0, want;
	int rc;

	snprintf(given, sizeof given, "%.*s", (int)strcspn(text, "("), text);
	for (size_t i = 0; i < N_KNOWN; i++)
		name[i] = known[i].name;
	while (k < N_KNOWN && strcmp(known[k].name, given))
		k++;
	if (k == N_KNOWN)
		return err_fail(err, ERR_ARG, "'%.80s': there is no prior '%s'%s", text, given,
				text_hint(given, name, hint));
	rc = read_arguments(text, v, &n, err);
	if (rc)
		return rc;
	want = known[k].quantised ? 3 : 2;
	if (known[k].form == FORM_RANDINT && n == 1) {
		v[1] = v[0];
		v[0] = 0.0;
		n = 2;
	}
	if (n != want)
		return err_fail(err, ERR_ARG, "'%.80s': %s takes %zu numbers, not %zu", text, given, want, n);
	rc = check(text, known[k].form, known[k].log, v, err);
	if (rc)
		return rc;
	if (known[k].quantised && !(v[2] > 0.0))
		return err_fail(err, ERR_ARG, "'%.80s': the quantum must be above 0", text);
	*out = (struct prior){ .shape = known[k].form == FORM_NORMAL ? PRIOR_NORMAL : PRIOR_UNIFORM,
			       .log = known[k].log,
			       .a = v[0],
			       .b = v[1],
			       .quantum = known[k].quantised ? v[2] : 0.0 };
	if (known[k].form == FORM_INT || known[k].form == FORM_RANDINT) { /* each whole number is as likely */
		out->quantum = 1.0;
		out->a = v[0] - 0.5 + 1e-9;
		out->b = v[1] + (known[k].form == FORM_INT ? 0.5 : -0.5) - 1e-9;
	} else if (out->log && known[k].form == FORM_UNIFORM) {
		out->a = log(v[0]);
		out->b = log(v[1]);
	}
	ends(out);
	return 0;
}

double prior_value(const struct prior *p, double z)
{
	double v = p->log ? exp(z) : z;

	if (p->quantum > 0.0) {
		v = p->quantum * nearbyint(v / p->quantum);
	} else if (p->shape == PRIOR_UNIFORM && p->log) { /* exp(log(x)) may miss the ends by a bit */
		v = fmin(fmax(v, exp(p->a)), exp(p->b));
	}
	return v;
}

double prior_draw(const struct prior *p, struct rng *rng)
{
	return p->shape == PRIOR_NORMAL ? p->a + p->b * rng_normal(rng)
					: p->a + (p->b - p->a) * rng_uniform(rng);
}

double prior_at(const struct prior *p, double u)
{
	return p->shape == PRIOR_NORMAL ? p->a + gsl_cdf_gaussian_Pinv(u, p->b) : p->a + (p->b - p->a) * u;
}

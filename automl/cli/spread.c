/* The experiments of a campaign as jobs of an engine: each runs `postrider automl --part K/N`, and its
 * journal is taken over when it has ended. See automl.h. */
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "automl/cli/verb.h"
#include "scheduler/cli/profile/engine_option.h"
#include "scheduler/engines/profile_run.h"

/* As a design of one run: as many copies as there are parts. */
static int make_design(struct profile_design *d, const struct cli *c, const char *dir,
		       const struct automl_spread *s, struct err *err)
{
	char self[PATH_MAX], folder[PATH_MAX], part[64], threads[32], copies[32], cpus[32];
	unsigned long long n_threads = c->threads ? c->threads : 1;
	char *word[16];
	size_t n = 0;
	ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
	int rc;

	if (len <= 0 || strpbrk(dir, "{}") || strpbrk(c->arg[0], "{}") ||
	    snprintf(folder, sizeof folder, "%s/part-{copy}", dir) >= (int)sizeof folder)
		return err_fail(err, ERR_ARG, "%s: a path that is too long, or with { or } in it", dir);
	self[len] = '\0';
	snprintf(part, sizeof part, "{copy}/%zu", s->parts);
	snprintf(threads, sizeof threads, "%llu", n_threads);
	snprintf(copies, sizeof copies, "njobs=%zu", s->parts);
	snprintf(cpus, sizeof cpus, "cpus=%llu", n_threads);
	word[n++] = self;
	word[n++] = "automl";
	word[n++] = c->arg[0];
	word[n++] = "-o";
	word[n++] = folder;
	word[n++] = "--part";
	word[n++] = part;
	word[n++] = "--threads";
	word[n++] = threads;
	word[n++] = "-q";
	if (s->lenient)
		word[n++] = "--lenient";
	if (s->restart)
		word[n++] = "--restart";
	profile_design_init(d);
	d->timeout_s = INFINITY;
	rc = profile_design_argv(d, word, n, err);
	if (!rc)
		rc = profile_design_factor(d, copies, err);
	if (!rc)
		rc = profile_design_factor(d, cpus, err);
	return rc;
}

int automl_spread(const struct cli *c, const char *dir, const struct automl_spread *s, struct err *err)
{
	const struct config_engine *e = NULL;
	const struct profile_point point = { .replication = 1 };
	struct profile_outcome out = { 0 };
	struct profile_signals signals;
	struct profile_design d;
	struct engine_runner runner = { 0 };
	struct config *config = NULL;
	int number = 0, rc = make_design(&d, c, dir, s, err);

	if (!rc)
		rc = cli_engine(s->executor, s->config, &config, &e, err);
	if (!rc)
		rc = engine_runner_init(&runner, e, err);
	if (!rc) {
		const struct profile_run_params p = {
			.design = &d, .point = &point, .signals = &signals, .dir = dir, .name = "part"
		};

		runner.at_once = true;
		profile_signals_hold(&signals);
		engine_runner_clean(&runner, dir);
		rc = engine_profile_run(&runner, &p, &out, &number, err);
		profile_signals_release(&signals);
	}
	if (!rc && !number && out.status != PROFILE_OK)
		cli_notice(c, "%s; the rest is done here", out.why);
	profile_outcome_release(&out);
	profile_design_release(&d);
	config_free(config);
	if (number)
		raise(number); /* the jobs are cancelled */
	return rc;
}

/* From the options of replay and compare to all that a comparison needs, opened and checked. See sim_options.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/io.h"
#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/cli/sim/sim_options.h"

#define MEASURED "measured:"
#define MAX_HYSTERESIS 10.0

static int share_option(const char *name, const char *text, double most, double *out, struct err *err)
{
	char shown[64];

	if (!text)
		return 0;
	if (sim_share_parse(text, out) && *out >= 0.0 && *out <= most)
		return 0;
	return err_fail(err, ERR_ARG, "--%s: '%s' is not a number from 0 to %g, such as 0.05 or 5%%", name,
			text_printable(text, shown, sizeof shown), most);
}

/* ---- what-ifs ---- */

static int find_metric(const char *name, enum metric *out, struct err *err)
{
	const char *known[METRICS + 1] = { NULL }, *near;
	char shown[64];

	for (int m = 0; m < METRICS; m++) {
		known[m] = metric_info[m].name;
		if (!strcmp(name, metric_info[m].name)) {
			*out = (enum metric)m;
			return 0;
		}
	}
	near = text_nearest(name, known);
	return err_fail(err, ERR_ARG, "--of: there is no metric '%s'%s%s%s",
			text_printable(name, shown, sizeof shown), near ? "; did you mean '" : "",
			near ? near : "", near ? "'?" : "");
}

static int open_capacity(struct sim_setup *s, const struct sim_options *o, struct err *err)
{
	struct sim_capacity *c = &s->capacity;
	char shown[64];
	int rc;

	*c = (struct sim_capacity){ .asked = o->capacity != NULL,
				    .of = METRIC_ATTAINMENT_ALL,
				    .by = WHAT_CORES };
	if (!c->asked && (o->of || o->by || o->from || o->to))
		return err_fail(err, ERR_ARG, "--of, --by, --from and --to go with --capacity");
	if (!c->asked)
		return 0;
	rc = o->of ? find_metric(o->of, &c->of, err) : 0;
	if (!rc && o->by && (rc = what_key_parse(o->by, strlen(o->by), &c->by, err)))
		err_prefix(err, "--by");
	if (rc)
		return rc;
	if (!metric_info[c->of].better)
		return err_fail(err, ERR_ARG,
				"--of %s: neither more nor less of it is better, so nothing can be asked for",
				metric_info[c->of].name);
	if (c->of == METRIC_ATTAINMENT_ORACLE || c->of == METRIC_REGRET)
		return err_fail(err, ERR_ARG,
				"--of %s: it compares with the oracle, which gets the larger machine as "
				"well; ask for "
				"attainment_all or accuracy_zero",
				metric_info[c->of].name);
	if (c->by > WHAT_MEMORY)
		return err_fail(err, ERR_ARG,
				"--by %s: the question is for whole numbers of a machine: cluster.cores, "
				"cluster.slots, cluster.nodes or cluster.memory_mb",
				what_key_name[c->by]);
	if (!sim_share_parse(o->capacity, &c->target) && text_duration(o->capacity, &c->target, NULL))
		return err_fail(err, ERR_ARG, "--capacity: '%s' is neither a share such as 99%% nor a number",
				text_printable(o->capacity, shown, sizeof shown));
	if (!strcmp(metric_info[c->of].unit, "share") && !(c->target > 0.0 && c->target <= 1.0))
		return err_fail(err, ERR_ARG,
				"--capacity: %s is a share, and '%s' is not between 0 and 100%%",
				metric_info[c->of].name, text_printable(o->capacity, shown, sizeof shown));
	return 0;
}

/* The range that is searched; known once the machine is. */
static int capacity_range(struct sim_setup *s, const struct sim_options *o, struct err *err)
{
	const struct cluster *m = s->params.world.cluster ? s->params.world.cluster : &s->given;
	const double now[] = { [WHAT_CORES] = m->cores,
			       [WHAT_NODES] = m->nodes,
			       [WHAT_SLOTS] = m->slots,
			       [WHAT_MEMORY] = isfinite(m->memory_mb) ? m->memory_mb : 1e6 };
	struct what_if probe;
	int rc;

	if (!s->capacity.asked)
		return 0;
	s->capacity.from = o->from ? (double)o->from : 1.0;
	s->capacity.to = o->to ? (double)o->to : fmax(s->capacity.from, ceil(8.0 * now[s->capacity.by]));
	if (s->capacity.from > s->capacity.to)
		return err_fail(err, ERR_ARG, "--from %g is above --to %g", s->capacity.from, s->capacity.to);
	what_if_init(&probe);
	rc = what_if_set(&probe, s->capacity.by, s->capacity.to, err);
	return rc ? err_prefix(err, "--to") : 0;
}

static int open_what_ifs(struct sim_setup *s, const struct sim_options *o, struct err *err)
{
	int rc = 0;

	what_if_init(&s->what);
	for (size_t i = 0; i < o->set.n && !rc; i++)
		if ((rc = what_if_parse(&s->what, o->set.item[i], err)))
			err_prefix(err, "--set");
	if (!rc && o->sweep) {
		s->sweeps = true;
		if ((rc = sweep_parse(o->sweep, &s->sweep, err)))
			err_prefix(err, "--sweep");
	}
	if (!rc && o->sweep && o->capacity)
		rc = err_fail(err, ERR_ARG, "--sweep and --capacity are two questions; ask one at a time");
	if (!rc && o->sweep && !isnan(s->what.value[s->sweep.key]))
		rc = err_fail(err, ERR_ARG, "--sweep and --set both say %s", what_key_name[s->sweep.key]);
	return rc ? rc : open_capacity(s, o, err);
}

/* ---- policies ---- */

static int find_baseline(struct sim_setup *s, const char *baseline, struct err *err)
{
	const char *known[SIM_MAX_POLICIES + 1] = { NULL }, *near;
	const char *wanted = baseline ? baseline : "courier";
	char shown[64];

	for (size_t i = 0; i < s->n_policies; i++) {
		known[i] = s->policy[i].name;
		if (!strcmp(s->policy[i].name, wanted)) {
			s->params.baseline = i;
			return 0;
		}
	}
	s->params.baseline = 0;
	if (!baseline)
		return 0;
	near = text_nearest(baseline, known);
	return err_fail(err, ERR_ARG, "--baseline: '%s' is not among the policies compared%s%s%s",
			text_printable(baseline, shown, sizeof shown), near ? "; did you mean '" : "",
			near ? near : "", near ? "'?" : "");
}

/* ---- the model given ---- */

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A model that has seen the rows that happen would be asked what it knows by heart. */
static int refuse_seen_table(const struct model *m, const char *world, const char *model_path,
			     struct err *err)
{
	const char *path = world + strlen(MEASURED);
	struct csv *csv = NULL;
	struct table *table = NULL;
	bool seen = same_file(m->data_name, path);
	int rc = seen ? 0 : csv_read_file(path, &csv, err);

	if (!seen && !rc && !table_read(csv, m->schema, true, &table, NULL))
		seen = table->fingerprint == m->data_fingerprint;
	table_free(table);
	csv_free(csv);
	if (rc || !seen)
		return rc;
	return err_fail(
		err, ERR_ARG,
		"--model %s was trained on %s, and that is what happens in this world: it would be asked "
		"what it knows by heart. Leave --model out (each fold then trains on the other "
		"replications), or "
		"train it on another table",
		text_tail(model_path, 100), text_tail(path, 100));
}

static int open_model(struct sim_setup *s, const struct cli *c, const struct sim_options *o, struct err *err)
{
	struct err why = { 0 };
	size_t n_takers = 0;
	int rc;

	if (!o->model)
		return 0;
	rc = cli_model_open(o->model, &s->model, err);
	if (!rc && !strncmp(o->world, MEASURED, strlen(MEASURED)))
		rc = refuse_seen_table(s->model, o->world, o->model, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < s->n_policies; i++) {
		if (s->policy[i].oracle || !s->policy[i].choice.policy->predictor)
			continue;
		if (!policy_accepts(&s->policy[i].choice, s->model, &why))
			n_takers++;
		else
			cli_notice(c, "%s does not take the model of --model; one is trained for it",
				   s->policy[i].name);
	}
	if (!n_takers)
		return err_fail(err, ERR_ARG, "--model %s: no policy takes it: %s", text_tail(o->model, 100),
				why.text);
	s->params.model = s->model;
	return model_compile(s->model, err);
}

/* ---- trace and world ---- */

/* Standard input is read when things are checked and again when they run, so it is kept. */
static int keep_stdin(struct err *err)
{
	char *text;
	size_t len;
	FILE *f;
	int rc = io_read_file("-", (size_t)1 << 31, &text, &len, err);

	if (rc)
		return rc;
	f = tmpfile();
	if (!f || fwrite(text, 1, len, f) != len || fflush(f) || dup2(fileno(f), STDIN_FILENO) < 0)
		rc = err_fail(err, ERR_IO, "the trace on standard input can not be kept: %s",
			      strerror(errno));
	if (f)
		fclose(f);
	free(text);
	if (!rc && lseek(STDIN_FILENO, 0, SEEK_SET) < 0)
		rc = err_fail(err, ERR_IO, "the trace on standard input can not be kept: %s",
			      strerror(errno));
	return rc;
}

static int open_source(struct sim_setup *s, const struct cli *c, const struct sim_options *o, struct err *err)
{
	const char *trace = c->n_args ? c->arg[0] : NULL;

	if (trace && o->history)
		return err_fail(err, ERR_ARG, "'%s' and --from-history %s: give one of them",
				text_tail(trace, 100), text_tail(o->history, 100));
	if (!trace && !o->history)
		return err_fail(err, ERR_ARG,
				"which jobs? Name a trace (a file or gen:KIND,...), or --from-history PATH");
	s->params.trace = (struct trace_source){ .spec = o->history ? o->history : trace,
						 .map = o->map,
						 .seed = o->seed,
						 .history = o->history != NULL };
	if (!trace || strcmp(trace, "-"))
		return 0;
	if (o->sweep || o->capacity)
		return err_fail(err, ERR_ARG,
				"a trace on standard input is read once; put it into a file for %s",
				o->sweep ? "--sweep" : "--capacity");
	return keep_stdin(err);
}

int sim_setup_open_world(struct sim_setup *s, const struct cli *c, const struct sim_options *o,
			 struct err *err)
{
	int rc = 0;

	if (!o->world)
		return err_fail(err, ERR_ARG,
				"which world? --world measured:TABLE.csv (what was measured happens again), "
				"queueing[:FILE.json] (processes between disk and cpus) or fluid[:FILE.json] "
				"(the same "
				"in the mean, for long traces)");
	if (o->schema)
		rc = schema_read_file(o->schema, &s->schema, err);
	if (!rc && o->cluster)
		rc = cluster_parse(o->cluster, &s->stated, err);
	s->params.world = (struct world_params){ .spec = o->world,
						 .schema = s->schema,
						 .given = o->cluster ? &s->stated : NULL };
	s->progress = (struct cli_progress){ .off = c->quiet };
	s->params.on_progress = cli_on_progress;
	s->params.owner = &s->progress;
	return rc ? rc : pool_new((size_t)c->threads, &s->pool, err);
}

static void note_trace(const struct cli *c, const struct trace *t)
{
	for (size_t i = 0; i < t->n_notices; i++)
		cli_notice(c, "%s: %s", t->name, t->notice[i]);
}

static double span_of(const struct trace *t)
{
	return t->n_jobs ? 1e-9 * (double)(t->job[t->n_jobs - 1].arrival_ns - t->job[0].arrival_ns) : 0.0;
}

static int check_disturbances(const struct sim_options *o, const struct trace *t, struct err *err)
{
	struct disturbances d = { 0 };
	int rc = 0;

	if (o->drift && (rc = disturbances_drift(o->drift, span_of(t), &d, err)))
		return err_prefix(err, "--drift");
	if (o->stragglers && (rc = disturbances_stragglers(o->stragglers, &d, err)))
		return err_prefix(err, "--stragglers");
	if (o->failures && (rc = disturbances_failures(o->failures, &d, err)))
		return err_prefix(err, "--failures");
	return 0;
}

/* A first look at trace and world: what is wrong with them is said before models are trained, and --set needs to know the
 * machine as it is. */
static int look(struct sim_setup *s, const struct cli *c, const struct sim_options *o, struct err *err)
{
	struct world_params wp = s->params.world;
	struct trace *t = NULL;
	struct world *w = NULL;
	int rc = trace_open(&s->params.trace, &t, err);

	if (rc)
		return rc;
	note_trace(c, t);
	rc = check_disturbances(o, t, err);
	wp.trace = t;
	if (!rc)
		rc = world_open(&wp, &w, err);
	if (rc == -ERR_ARG && !w && !o->cluster && !strncmp(o->world, MEASURED, strlen(MEASURED)))
		strncat(err->text, "; --cluster cores=2,slots=4 would say it",
			sizeof err->text - 1 - strlen(err->text));
	if (!rc) {
		s->given = *world_given(w);
		s->n_jobs = t->n_jobs;
		s->n_folds = world_folds(w);
		world_split_text(w, 0, s->split, sizeof s->split);
		s->trace_about = mem_strdup(t->about ? t->about : t->name);
		s->world_name = mem_strdup(world_name(w));
		if (!s->trace_about || !s->world_name)
			rc = err_nomem(err, NULL);
	}
	world_free(w);
	trace_free(t);
	if (!strcmp(s->params.trace.spec, "-") && lseek(STDIN_FILENO, 0, SEEK_SET) < 0)
		rc = err_fail(err, ERR_IO, "the trace on standard input can not be read again: %s",
			      strerror(errno));
	return rc;
}

int sim_setup_open(struct sim_setup *s, const struct cli *c, const struct sim_options *o,
		   const char *policies, const char *baseline, uint64_t replications, struct err *err)
{
	struct compare_params *p = &s->params;
	int rc;

	*s = (struct sim_setup){ .n_policies = 0 };
	rc = sim_policies_parse(policies, s->policy, SIM_MAX_POLICIES, &s->n_policies, err);
	if (!rc)
		rc = find_baseline(s, baseline, err);
	if (!rc && (replications < 1 || replications > COMPARE_MAX_REPLICATIONS))
		rc = err_fail(err, ERR_ARG, "--replications %llu: need 1 to %d",
			      (unsigned long long)replications, COMPARE_MAX_REPLICATIONS);
	if (!rc)
		rc = share_option("noise", o->noise, 3.0, &p->noise, err);
	if (!rc)
		rc = share_option("hysteresis", o->hysteresis, MAX_HYSTERESIS, &p->hysteresis, err);
	if (!rc)
		rc = share_option("explore", o->explore, 1.0, &p->explore, err);
	if (!rc)
		rc = open_what_ifs(s, o, err);
	if (!rc)
		rc = open_source(s, c, o, err);
	if (!rc)
		rc = sim_setup_open_world(s, c, o, err);
	if (rc)
		return rc;
	p->policy = s->policy;
	p->n_policies = s->n_policies;
	p->replications = (size_t)replications;
	p->seed = o->seed;
	p->confidence = o->confidence;
	p->level = o->level;
	p->adapt = !o->no_adapt;
	p->drift = o->drift;
	p->stragglers = o->stragglers;
	p->failures = o->failures;
	p->keep_outcomes = c->output != NULL;
	p->pool = s->pool;
	rc = look(s, c, o, err);
	if (!rc)
		rc = open_model(s, c, o, err);
	s->plain = *p;
	if (!rc)
		rc = what_if_apply(&s->what, &s->given, &s->room, p, err);
	return rc ? rc : capacity_range(s, o, err);
}

void sim_setup_release(struct sim_setup *s)
{
	cli_progress_end(&s->progress);
	pool_free(s->pool);
	model_free(s->model);
	schema_free(s->schema);
	free(s->trace_about);
	free(s->world_name);
	*s = (struct sim_setup){ .n_policies = 0 };
}

/* ---- --dry-run ---- */

static void print_machine(const struct cluster *m, struct strbuf *out)
{
	strbuf_printf(out, "%g cores, %u slots", m->cores, m->slots);
	if (m->nodes > 1)
		strbuf_printf(out, ", %u nodes", m->nodes);
	if (isfinite(m->memory_mb))
		strbuf_printf(out, ", %g MB", m->memory_mb);
}

void sim_setup_print(const struct sim_setup *s, const struct sim_options *o, struct strbuf *out)
{
	size_t runs = s->n_policies * s->params.replications;

	strbuf_printf(out, "trace         %s\n", cli_clean(s->trace_about));
	strbuf_printf(out, "world         %s", cli_clean(o->world));
	if (s->n_folds > 1)
		strbuf_printf(out, ", %zu ways to part what is learnt and what happens", s->n_folds);
	strbuf_puts(out, "\nmachine       ");
	print_machine(&s->given, out);
	if (s->params.world.cluster) {
		strbuf_puts(out, "; simulated: ");
		print_machine(s->params.world.cluster, out);
	}
	strbuf_puts(out, "\npolicies      ");
	for (size_t i = 0; i < s->n_policies; i++)
		strbuf_printf(out, "%s%s", i ? ", " : "", s->policy[i].name);
	strbuf_printf(out, "\nmodels        %s\n",
		      s->model ? cli_clean(o->model) : "trained, as each policy wants it");
	strbuf_printf(out, "runs          %zu: %zu policies x %zu replications, %zu jobs each, seed %llu\n",
		      runs, s->n_policies, s->params.replications, s->n_jobs, (unsigned long long)o->seed);
	if (s->sweeps)
		strbuf_printf(out, "sweep         %s, %zu values from %g to %g\n",
			      what_key_name[s->sweep.key], s->sweep.n, s->sweep.value[0],
			      s->sweep.value[s->sweep.n - 1]);
	if (s->capacity.asked)
		strbuf_printf(out, "capacity      %s from %g to %g, until %s is %s %g\n",
			      what_key_name[s->capacity.by], s->capacity.from, s->capacity.to,
			      metric_info[s->capacity.of].name,
			      metric_info[s->capacity.of].better > 0 ? "at least" : "at most",
			      s->capacity.target);
	strbuf_puts(out, "Nothing was run.\n");
}

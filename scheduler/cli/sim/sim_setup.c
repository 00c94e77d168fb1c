/* From the options of replay and compare to a comparison whose files are open and checked. See
 * sim_options.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "common/text/text.h"
#include "scheduler/cli/sim/sim_options.h"
#include "scheduler/store/store.h"

#define MEASURED "measured:"

/* "0.05", "5%" or "5 %" as 0.05; false: none of them. */
static bool share_parse(const char *text, double *out)
{
	size_t len = strlen(text);
	bool percent = len > 1 && text[len - 1] == '%';
	char buf[64];
	double v;

	if (len - percent >= sizeof buf)
		return false;
	snprintf(buf, sizeof buf, "%.*s", (int)(len - percent), text);
	if (percent && buf[len - 2] == ' ')
		buf[len - 2] = '\0';
	if (!text_number(buf, &v))
		return false;
	*out = percent ? v / 100.0 : v;
	return true;
}

static int share_option(const char *name, const char *text, double most, double *out, struct err *err)
{
	char shown[64];

	if (!text)
		return 0;
	if (share_parse(text, out) && *out >= 0.0 && *out <= most)
		return 0;
	return err_fail(err, ERR_ARG, "--%s: '%s' is not a number from 0 to %g, such as 0.05 or 5%%", name,
			text_printable(text, shown, sizeof shown), most);
}

/* "4", "4:shared" */
static int read_daemons(const char *text, struct replay_settings *s, struct err *err)
{
	size_t len = text ? strcspn(text, ":") : 0;
	char number[16], shown[64], hint[TEXT_HINT];
	double n;

	if (!text)
		return 0;
	snprintf(number, sizeof number, "%.*s", len < sizeof number ? (int)len : 0, text);
	if (!text_number(number, &n) || !(n >= 1.0 && n <= DAEMONS_MOST && n == floor(n)))
		return err_fail(err, ERR_ARG,
				"--daemons: '%s' does not begin with a whole number from 1 to %d",
				text_printable(text, shown, sizeof shown), DAEMONS_MOST);
	s->daemons = (uint32_t)n;
	if (!text[len])
		return 0;
	for (int k = 0; k < DAEMONS_SHARES; k++) {
		if (!strcmp(text + len + 1, daemons_share_name[k])) {
			s->share = (enum daemons_share)k;
			return 0;
		}
	}
	return err_fail(err, ERR_ARG, "--daemons: '%s' is no way to share%s; there are parts, asked, shared",
			text_printable(text + len + 1, shown, sizeof shown),
			text_hint(text + len + 1, daemons_share_name, hint));
}

/* ---- what-ifs ---- */

static int read_capacity(struct sim_setup *s, const struct sim_options *o, struct err *err)
{
	struct capacity_question *q = &s->capacity;
	char shown[64];
	int rc = 0;

	*q = (struct capacity_question){
		.of = METRIC_ATTAINMENT_ALL, .by = WHAT_CORES, .from = (double)o->from, .to = (double)o->to
	};
	s->wants_capacity = o->capacity != NULL;
	if (!o->capacity && (o->of || o->by || o->from || o->to))
		return err_fail(err, ERR_ARG, "--of, --by, --from and --to go with --capacity");
	if (!o->capacity)
		return 0;
	if (o->of && (rc = metric_parse(o->of, &q->of, err)))
		return err_prefix(err, "--of");
	if (o->by && (rc = what_key_parse(o->by, strlen(o->by), &q->by, err)))
		return err_prefix(err, "--by");
	if (!share_parse(o->capacity, &q->target) && text_duration(o->capacity, &q->target, NULL))
		return err_fail(err, ERR_ARG, "--capacity: '%s' is neither a share such as 99%% nor a number",
				text_printable(o->capacity, shown, sizeof shown));
	rc = capacity_check(q, err);
	return rc ? err_prefix(err, "--capacity") : 0;
}

static int read_what_ifs(struct sim_setup *s, const struct sim_options *o, struct err *err)
{
	struct what_if *what = &s->params.what;

	for (size_t i = 0; i < o->set.n; i++)
		if (what_if_parse(what, o->set.item[i], err))
			return err_prefix(err, "--set");
	s->sweeps = o->sweep != NULL;
	if (o->sweep && sweep_parse(o->sweep, &s->sweep, err))
		return err_prefix(err, "--sweep");
	if (o->sweep && o->capacity)
		return err_fail(err, ERR_ARG, "--sweep and --capacity are two questions; ask one at a time");
	if (o->sweep && what->set[s->sweep.key])
		return err_fail(err, ERR_ARG, "--sweep and --set both say %s", what_key_name[s->sweep.key]);
	return read_capacity(s, o, err);
}

/* ---- policies ---- */

/* Without a name: one batch for all, as users have it today; else the paper's policy; else the first. */
static int find_baseline(const char *baseline, struct compare_params *p, struct err *err)
{
	const char *known[SIM_MAX_POLICIES + 1] = { NULL };
	size_t fixed = SIZE_MAX, courier = SIZE_MAX;
	char shown[64], hint[TEXT_HINT];

	for (size_t i = p->n_policies; i-- > 0;) {
		known[i] = p->policy[i].name;
		fixed = strncmp(known[i], "fixed:", 6) ? fixed : i;
		courier = strcmp(known[i], "courier") ? courier : i;
		if (baseline && !strcmp(known[i], sim_policy_name(baseline))) {
			p->baseline = i;
			return 0;
		}
	}
	p->baseline = fixed != SIZE_MAX ? fixed : courier != SIZE_MAX ? courier : 0;
	if (!baseline)
		return 0;
	return err_fail(err, ERR_ARG, "--baseline: '%s' is not among the policies compared%s",
			text_printable(baseline, shown, sizeof shown), text_hint(baseline, known, hint));
}

static int read_policies(struct sim_setup *s, const struct cli *c, const struct sim_options *o,
			 struct err *err)
{
	struct compare_params *p = &s->params;
	int rc = sim_policies_parse(o->policies, s->policy, SIM_MAX_POLICIES, &p->n_policies, err);

	for (size_t i = 0; !rc && i < p->n_policies; i++)
		if (s->policy[i].old_name)
			cli_notice(c, "policy oracle is now called %s", s->policy[i].name);
	p->policy = s->policy;
	p->replications = (size_t)o->replications;
	if (!rc && (o->replications < 1 || o->replications > COMPARE_MAX_REPLICATIONS))
		rc = err_fail(err, ERR_ARG, "--replications %llu: need 1 to %d",
			      (unsigned long long)o->replications, COMPARE_MAX_REPLICATIONS);
	return rc ? rc : find_baseline(o->baseline, p, err);
}

/* "STATE/model", the daemon's link to the model in use; NULL without memory. */
static char *daemon_model(const char *history)
{
	const char *slash = strrchr(history, '/');
	struct strbuf path = { 0 };
	struct stat st;

	if (!stat(history, &st) && S_ISDIR(st.st_mode))
		strbuf_printf(&path, "%s/" STORE_MODEL_LINK, history);
	else
		strbuf_printf(&path, "%.*s" STORE_MODEL_LINK, slash ? (int)(slash + 1 - history) : 0,
			      history);
	if (path.failed) {
		strbuf_release(&path);
		return NULL;
	}
	return path.text;
}

static bool is_measured(const struct compare_params *p)
{
	return !strncmp(p->world.spec, MEASURED, strlen(MEASURED));
}

/* The daemon's model may have learnt from any run on its machine, this table's among them. */
static int check_learnt(const struct sim_setup *s, struct err *err)
{
	if (!is_measured(&s->params) || strcmp(s->model->data_name, MODEL_LEARNT_FROM_JOBS))
		return 0;
	return err_fail(err, ERR_ARG,
			"it has learnt from the machine's own runs, and the table may be of them");
}

static int use_model(struct sim_setup *s, const struct cli *c, struct err *err)
{
	bool takes[SIM_MAX_POLICIES];
	int rc;

	s->params.model = s->model;
	s->params.model_name = s->model_path;
	rc = compare_check_model(&s->params, takes, err);
	for (size_t i = 0; !rc && i < s->params.n_policies; i++)
		if (!takes[i] && s->policy[i].choice.policy && s->policy[i].choice.policy->predictor)
			cli_notice(c, "%s does not take the model %s; one is trained for it",
				   s->policy[i].name, text_tail(s->model_path, 100));
	return rc ? rc : model_compile(s->model, err);
}

/* Not readable, or no fair judge of this world: models are trained here, as without a daemon. */
static int use_daemon_model(struct sim_setup *s, const struct cli *c, const char *history, struct err *err)
{
	struct err why = { 0 };
	int rc;

	s->model_path = daemon_model(history);
	if (!s->model_path)
		return err_nomem(err, "the name of a model");
	rc = cli_model_open(s->model_path, &s->model, &why);
	if (!rc)
		rc = check_learnt(s, &why);
	if (!rc)
		rc = use_model(s, c, &why);
	if (!rc) {
		cli_notice(c, "policies decide by the daemon's model, %s (%s)", text_tail(s->model_path, 150),
			   s->model->data_name);
		return 0;
	}
	cli_notice(c, "models are trained here, not the daemon's: %s", why.text);
	model_free(s->model);
	free(s->model_path);
	s->model = NULL;
	s->model_path = NULL;
	s->params.model = NULL;
	s->params.model_name = NULL;
	return 0;
}

static int open_model(struct sim_setup *s, const struct cli *c, const struct sim_options *o, struct err *err)
{
	int rc;

	if (!o->model && o->history)
		return use_daemon_model(s, c, o->history, err);
	if (!o->model || !strcmp(o->model, "none"))
		return 0;
	s->model_path = mem_strdup(o->model);
	rc = s->model_path ? cli_model_open(o->model, &s->model, err) : err_nomem(err, "the name of a model");
	if (rc)
		return rc;
	rc = use_model(s, c, err);
	return rc ? err_prefix(err, "--model %s", text_tail(o->model, 100)) : 0;
}

/* ---- trace and world ---- */

static int find_source(struct sim_setup *s, const struct cli *c, const struct sim_options *o, struct err *err)
{
	const char *trace = c->n_args ? c->arg[0] : NULL;
	struct trace_source *source = &s->params.trace;

	if (trace && o->history)
		return err_fail(err, ERR_ARG, "'%s' and --from-history %s: give one of them",
				text_tail(trace, 100), text_tail(o->history, 100));
	if (!trace && !o->history)
		return err_fail(err, ERR_ARG,
				"which jobs? Name a trace (a file or gen:KIND,...), or --from-history PATH");
	if (trace && !strcmp(trace, "-") && (o->sweep || o->capacity || source->resample))
		return err_fail(err, ERR_ARG,
				"a trace on standard input is read once; put it into a file for %s",
				o->sweep      ? "--sweep"
				: o->capacity ? "--capacity"
					      : "--resample");
	source->spec = o->history ? o->history : trace;
	source->history = o->history != NULL;
	source->seed = s->params.seed;
	return 0;
}

int sim_setup_open_world(struct sim_setup *s, const struct cli *c, const struct sim_options *o,
			 struct err *err)
{
	int rc = 0;

	if (!s->params.world.spec)
		return err_fail(err, ERR_ARG,
				"which world? --world measured:TABLE.csv (what was measured happens again), "
				"queueing[:FILE.json] (processes between disk and cpus) or fluid[:FILE.json] "
				"(the same in the mean, for long traces)");
	if (o->schema)
		rc = schema_read_file(o->schema, &s->schema, err);
	if (!rc && o->cluster)
		rc = cluster_parse(o->cluster, &s->stated, err);
	s->params.world.schema = s->schema;
	s->params.world.given = o->cluster ? &s->stated : NULL;
	s->progress = (struct cli_progress){ .off = c->quiet };
	s->params.on_progress = cli_on_progress;
	s->params.owner = &s->progress;
	if (!rc)
		rc = pool_new((size_t)c->threads, &s->pool, err);
	s->params.pool = s->pool;
	return rc;
}

/* A policy that cannot run on the cluster is an error if the user named it. One of the usual ones is left
 * out, and *out_fewer is true then. */
static int check_policies(struct sim_setup *s, const struct cli *c, const struct sim_options *o,
			  bool *out_fewer, struct err *err)
{
	struct compare_params *p = &s->params;
	size_t n = p->n_policies, kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct err why = { 0 };

		if (!replay_check(&s->policy[i], world_whole(s->opened->world[0]), &p->settings, &why)) {
			s->policy[kept++] = s->policy[i];
			continue;
		}
		if (!o->usual_policies)
			return err_fail(err, why.code, "%s", why.text);
		cli_notice(c, "left out: %s", why.text);
	}
	*out_fewer = kept < n;
	p->n_policies = kept;
	return find_baseline(o->baseline, p, err);
}

/* Traces and worlds, before models are trained. A sweep or a capacity opens its own for every value. */
static int open_inputs(struct sim_setup *s, const struct cli *c, const struct sim_options *o, struct err *err)
{
	struct compare_params p = s->params;
	const struct trace *t;
	bool fewer = false;
	int rc;

	if (s->sweeps || s->wants_capacity)
		p.replications = 1;
	rc = compare_open(&p, &s->opened, err);
	if (!rc)
		rc = check_policies(s, c, o, &fewer, err);
	if (!rc && fewer) { /* the result has room for all of them */
		compare_free(s->opened);
		s->opened = NULL;
		p.n_policies = s->params.n_policies;
		p.baseline = s->params.baseline;
		rc = compare_open(&p, &s->opened, err);
	}
	cli_progress_end(&s->progress);
	if (rc == -ERR_ARG && !o->cluster && strstr(err->text, "cluster is not given") && is_measured(&p))
		strncat(err->text, "; --cluster cores=2,slots=4 would say it",
			sizeof err->text - 1 - strlen(err->text));
	if (rc)
		return rc;
	t = s->opened->trace[0];
	for (size_t i = 0; i < t->n_notices; i++)
		cli_notice(c, "%s: %s", t->name, t->notice[i]);
	return s->wants_capacity ? capacity_fill_range(&s->capacity, world_whole(s->opened->world[0]), err)
				 : 0;
}

int sim_setup_open(struct sim_setup *s, const struct cli *c, const struct sim_options *o, struct err *err)
{
	struct compare_params *p = &s->params;
	int rc;

	*s = (struct sim_setup){ .params = o->params };
	p->settings.adapt = !o->no_adapt;
	p->keep_outcomes = c->output != NULL;
	p->world.mark_unknown = !o->strict;
	rc = read_policies(s, c, o, err);
	if (!rc)
		rc = share_option("noise", o->noise, 3.0, &p->noise, err);
	if (!rc)
		rc = read_daemons(o->daemons, &p->settings, err);
	if (!rc)
		rc = read_what_ifs(s, o, err);
	if (!rc)
		rc = find_source(s, c, o, err);
	if (!rc)
		rc = sim_setup_open_world(s, c, o, err);
	if (!rc)
		rc = open_inputs(s, c, o, err);
	return rc ? rc : open_model(s, c, o, err);
}

void sim_setup_release(struct sim_setup *s)
{
	cli_progress_end(&s->progress);
	compare_free(s->opened);
	pool_free(s->pool);
	model_free(s->model);
	free(s->model_path);
	schema_free(s->schema);
	*s = (struct sim_setup){ .pool = NULL };
}

/* ---- --dry-run ---- */

static void print_machine(const struct cluster *m, struct strbuf *out)
{
	strbuf_printf(out, "%g cores, %u slots", m->cores, m->slots);
	if (m->nodes > 1)
		strbuf_printf(out, ", %u nodes", m->nodes);
	if (m->place != PLACE_SPREAD)
		strbuf_printf(out, ", a job stays on one (%s)", cluster_place_name[m->place]);
	if (isfinite(m->memory_mb))
		strbuf_printf(out, ", %g MB", m->memory_mb);
}

static bool changes_machine(const struct what_if *w)
{
	return w->set[WHAT_CORES] || w->set[WHAT_NODES] || w->set[WHAT_SLOTS] || w->set[WHAT_MEMORY];
}

void sim_setup_print(const struct sim_setup *s, struct strbuf *out)
{
	const struct compare_params *p = &s->params;
	const struct trace *t = s->opened->trace[0];
	const struct world *w = s->opened->world[0];
	const struct capacity_question *q = &s->capacity;

	strbuf_printf(out, "trace         %s\n", cli_clean(t->about ? t->about : t->name));
	strbuf_printf(out, "world         %s", cli_clean(p->world.spec));
	if (world_folds(w) > 1)
		strbuf_printf(out, ", %zu ways to split the data into learning and happening",
			      world_folds(w));
	strbuf_puts(out, "\nmachine       ");
	print_machine(world_whole_given(w), out);
	if (changes_machine(&p->what)) {
		strbuf_puts(out, "; simulated: ");
		print_machine(world_whole(w), out);
	}
	strbuf_puts(out, "\npolicies      ");
	for (size_t i = 0; i < p->n_policies; i++)
		strbuf_printf(out, "%s%s", i ? ", " : "", s->policy[i].name);
	strbuf_printf(out, "\nmodels        %s\n",
		      s->model ? cli_clean(s->model_path) : "trained, as each policy wants it");
	strbuf_printf(out, "runs          %zu: %zu policies x %zu replications, %zu jobs each, seed %llu\n",
		      p->n_policies * p->replications, p->n_policies, p->replications, t->n_jobs,
		      (unsigned long long)p->seed);
	if (s->sweeps)
		strbuf_printf(out, "sweep         %s, %zu values from %g to %g\n",
			      what_key_name[s->sweep.key], s->sweep.n, s->sweep.value[0],
			      s->sweep.value[s->sweep.n - 1]);
	if (s->wants_capacity)
		strbuf_printf(out, "capacity      %s from %g to %g, until %s is %s %g\n",
			      what_key_name[q->by], q->from, q->to, metric_info[q->of].name,
			      metric_info[q->of].better > 0 ? "at least" : "at most", q->target);
	strbuf_puts(out, "Nothing was run.\n");
}

/* What replay and compare do once their options are read: one comparison, one for each value of a sweep, or the search for a
 * capacity. See sim_options.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "scheduler/cli/sim/compare_view.h"

#define PROGRAM "postrider " POSTRIDER_VERSION
#define SWEEP_FILE "sweep.json"
#define CAPACITY_FILE "capacity.json"

struct call {
	const struct cli *c;
	const struct sim_verb *v;
	struct sim_setup *s;
	struct strbuf out;
};

/* The threads are no longer needed, and would take signals that are held back here. */
static int write_folder(struct call *k, const struct compare_result *r, const struct record_about *a,
			const struct strbuf *sweep, struct err *err)
{
	const char *dir = k->c->output;
	sigset_t before;
	int rc;

	pool_free(k->s->pool);
	k->s->pool = NULL;
	sim_hold_signals(&before);
	rc = record_write(dir, r, a, err);
	if (!rc && sweep)
		rc = sim_write_in(dir, SWEEP_FILE, sweep, err);
	else if (!rc)
		sim_remove_in(dir, SWEEP_FILE);
	sim_let_signals(&before);
	return rc;
}

/* ---- one comparison ---- */

static int run_once(struct call *k, struct err *err)
{
	struct sim_setup *s = k->s;
	struct record_about about = {
		.kind = k->v->kind, .program = PROGRAM, .command = k->v->command, .params = &s->params
	};
	struct compare_result *r = NULL;
	int rc = compare_run(&s->params, &r, err);

	cli_progress_end(&s->progress);
	if (!rc && k->c->json)
		record_text(r, &about, &k->out);
	else if (!rc)
		compare_view_print(r, s, cli_colour_stdout(k->c), &k->out);
	if (!rc && k->c->output)
		rc = write_folder(k, r, &about, NULL, err);
	if (!rc)
		compare_view_talk(k->c, r);
	compare_free(r);
	return rc;
}

/* ---- a sweep ---- */

struct sweeping {
	struct call *k;
	struct sweep_view view;
	struct json_writer json;
	struct strbuf text; /* {"key","points":[...]} */
	struct compare_result *kept; /* of the middle value */
	size_t keep;
};

static int on_point(void *owner, size_t i, struct compare_result **io, struct err *err)
{
	struct sweeping *w = owner;
	const struct sim_setup *s = w->k->s;

	(void)err;
	cli_progress_end(&w->k->s->progress);
	sweep_view_point(&w->view, i, *io);
	json_open(&w->json, '{');
	json_kv_number(&w->json, "value", s->sweep.value[i]);
	json_put_key(&w->json, "policies");
	record_policies(*io, s->params.level, &w->json);
	json_close(&w->json, '}');
	if (i == w->keep) {
		w->kept = *io;
		*io = NULL;
	}
	return 0;
}

/* The object of the middle comparison with one member more. */
static int with_member(const struct strbuf *object, const char *key, const struct strbuf *member,
		       struct strbuf *out, struct err *err)
{
	static const char *const none[] = { NULL };
	struct json *all = NULL, *one = NULL;
	struct json_writer w;
	int rc;

	if (object->failed || member->failed)
		return err_fail(err, ERR_NOMEM, "out of memory while the result was put together");
	rc = json_parse("the comparison", strbuf_text(object), object->len, &all, err);
	if (!rc)
		rc = json_parse("the sweep", strbuf_text(member), member->len, &one, err);
	if (!rc) {
		json_begin(&w, out, true);
		json_open(&w, '{');
		cli_json_members(&w, all, none);
		json_put_key(&w, key);
		cli_json_copy(&w, one);
		json_close(&w, '}');
		strbuf_puts(out, "\n");
	}
	json_free(all);
	json_free(one);
	return rc;
}

static int sweep_finish(struct sweeping *w, const struct compare_params *at, struct err *err)
{
	struct call *k = w->k;
	struct record_about about = {
		.kind = k->v->kind, .program = PROGRAM, .command = k->v->command, .params = at
	};
	struct strbuf object = { 0 };
	int rc = 0;

	if (k->c->json) {
		record_text(w->kept, &about, &object);
		rc = with_member(&object, "sweep", &w->text, &k->out, err);
	} else {
		sweep_view_print(&w->view, cli_colour_stdout(k->c), &k->out);
	}
	if (!rc && k->c->output)
		rc = write_folder(k, w->kept, &about, &w->text, err);
	strbuf_release(&object);
	return rc;
}

static int run_sweep(struct call *k, struct err *err)
{
	struct sim_setup *s = k->s;
	struct sweeping w = { .k = k, .keep = s->sweep.n / 2 };
	struct compare_params at = s->plain; /* of the value that is kept */
	struct what_if what = s->what;
	struct cluster room;
	int rc = sweep_view_init(&w.view, s, err);

	if (!rc)
		rc = what_if_set(&what, s->sweep.key, s->sweep.value[w.keep], err);
	if (!rc)
		rc = what_if_apply(&what, &s->given, &room, &at, err);
	json_begin(&w.json, &w.text, true);
	json_open(&w.json, '{');
	json_kv_string(&w.json, "key", what_key_name[s->sweep.key]);
	json_put_key(&w.json, "points");
	json_open(&w.json, '[');
	if (!rc)
		rc = sweep_run(&(struct sweep_params){ .sweep = &s->sweep,
						       .base = &s->what,
						       .given = &s->given,
						       .compare = &s->plain,
						       .keep = w.keep,
						       .on_point = on_point,
						       .owner = &w },
			       err);
	json_close(&w.json, ']');
	json_close(&w.json, '}');
	strbuf_puts(&w.text, "\n");
	if (!rc)
		rc = sweep_finish(&w, &at, err);
	compare_free(w.kept);
	strbuf_release(&w.text);
	sweep_view_release(&w.view);
	return rc;
}

/* ---- a capacity ---- */

struct searching {
	struct sim_setup *s;
	const struct sim_policy *policy;
	struct compare_cache *cache; /* NULL: what is changed is learnt from */
};

static int measure(void *owner, double value, struct interval *out, struct err *err)
{
	struct searching *q = owner;
	struct compare_params p = q->s->plain;
	struct what_if what = q->s->what;
	struct compare_result *r = NULL;
	struct cluster room;
	int rc = what_if_set(&what, q->s->capacity.by, value, err);

	p.policy = q->policy;
	p.n_policies = 1;
	p.baseline = 0;
	p.keep_outcomes = false;
	p.cache = q->cache;
	if (!rc)
		rc = what_if_apply(&what, &q->s->given, &room, &p, err);
	if (!rc)
		rc = compare_run(&p, &r, err);
	cli_progress_end(&q->s->progress);
	if (!rc)
		*out = r->policy[0].metric[q->s->capacity.of];
	compare_free(r);
	return rc;
}

static void capacity_head(const struct call *k, struct json_writer *w)
{
	const struct sim_capacity *q = &k->s->capacity;

	json_open(w, '{');
	json_kv_string(w, "kind", "capacity");
	json_kv_string(w, "program", PROGRAM);
	json_kv_string(w, "command", k->v->command);
	json_kv_int(w, "seed", (long long)k->s->params.seed);
	json_kv_number(w, "level", k->s->params.level);
	json_kv_int(w, "replications", (long long)k->s->params.replications);
	json_kv_string(w, "by", what_key_name[q->by]);
	json_kv_string(w, "of", metric_info[q->of].name);
	json_kv_number(w, "target", q->target);
	json_kv_number(w, "from", q->from);
	json_kv_number(w, "to", q->to);
	json_put_key(w, "policies");
	json_open(w, '[');
}

static int write_capacity(struct call *k, const struct strbuf *text, struct err *err)
{
	sigset_t before;
	int rc;

	pool_free(k->s->pool);
	k->s->pool = NULL;
	sim_hold_signals(&before);
	rc = sim_make_folder(k->c->output, err);
	if (!rc)
		rc = sim_write_in(k->c->output, CAPACITY_FILE, text, err);
	sim_let_signals(&before);
	return rc;
}

static int run_capacity(struct call *k, struct err *err)
{
	struct sim_setup *s = k->s;
	struct capacity *found = mem_calloc(1, sizeof *found);
	struct strbuf text = { 0 };
	struct json_writer w;
	int rc = found ? 0 : err_nomem(err, NULL);

	json_begin(&w, &text, true);
	capacity_head(k, &w);
	for (size_t i = 0; i < s->n_policies && !rc; i++) {
		struct searching q = { .s = s, .policy = &s->policy[i] };

		if (s->capacity.by != WHAT_NOISE)
			rc = compare_cache_new(&q.cache, err);
		if (rc)
			break;
		rc = capacity_search(&(struct capacity_params){ .from = s->capacity.from,
								.to = s->capacity.to,
								.target = s->capacity.target,
								.better = metric_info[s->capacity.of].better,
								.measure = measure,
								.owner = &q },
				     found, err);
		compare_cache_free(q.cache);
		if (rc)
			break;
		capacity_view_json(&s->policy[i], found, &w);
		if (!k->c->json) {
			strbuf_puts(&k->out, i ? "\n" : "");
			capacity_view_print(s, &s->policy[i], found, cli_colour_stdout(k->c), &k->out);
		}
	}
	json_close(&w, ']');
	json_close(&w, '}');
	strbuf_puts(&text, "\n");
	if (!rc && k->c->json)
		strbuf_add(&k->out, strbuf_text(&text), text.len);
	if (!rc && k->c->output)
		rc = write_capacity(k, &text, err);
	strbuf_release(&text);
	free(found);
	return rc;
}

/* ---- both ---- */

int sim_verb_run(const struct cli *c, const struct sim_options *o, const struct sim_verb *v)
{
	struct sim_setup s;
	struct call k = { .c = c, .v = v, .s = &s };
	struct err err = { 0 };
	int code = 0, rc = 0;

	s = (struct sim_setup){ .n_policies = 0 };
	if (c->output)
		rc = o->capacity ? sim_check_folder(c->output, &err) : record_check(c->output, &err);
	if (!rc)
		rc = sim_setup_open(&s, c, o, v->policies, v->baseline, v->replications, &err);
	if (!rc && o->dry_run)
		sim_setup_print(&s, o, &k.out);
	else if (!rc)
		rc = s.capacity.asked ? run_capacity(&k, &err)
		     : s.sweeps       ? run_sweep(&k, &err)
				      : run_once(&k, &err);
	cli_progress_end(&s.progress);
	if (!rc)
		rc = cli_write(NULL, &k.out, &err);
	if (rc)
		code = cli_fail(&err);
	strbuf_release(&k.out);
	sim_setup_release(&s);
	return code;
}

/* What replay and compare do once their options are read: one comparison, one for each value of a sweep, or
 * the search for a capacity. See sim_options.h. */
#include <stdlib.h>

#include "common/mem.h"
#include "scheduler/cli/sim/compare_view.h"
#include "sim/compare/folder.h"

struct call {
	const struct cli *c;
	struct sim_setup *s;
	struct record_about about;
	struct strbuf out;
};

/* The threads are no longer needed, and would take signals that are held back while files are written. */
static void stop_threads(struct sim_setup *s)
{
	pool_free(s->pool);
	s->pool = s->params.pool = NULL;
}

int sim_write_files(const char *dir, const struct sim_file *file, size_t n, struct err *err)
{
	sigset_t before;
	int rc;

	folder_hold_signals(&before);
	rc = folder_make(dir, err);
	for (size_t i = 0; i < n && !rc; i++)
		rc = folder_write(dir, file[i].name, file[i].text, err);
	folder_release_signals(&before);
	return rc;
}

static int write_folder(struct call *k, const struct compare_result *r, struct err *err)
{
	if (!k->c->output)
		return 0;
	stop_threads(k->s);
	return record_write(k->c->output, r, &k->about, err);
}

/* ---- one comparison ---- */

static int run_once(struct call *k, struct err *err)
{
	struct sim_setup *s = k->s;
	struct compare_result *r = s->opened;
	int rc = compare_play(&s->params, r, err);

	cli_progress_end(&s->progress);
	if (rc)
		return rc;
	if (k->c->json)
		record_text(r, &k->about, &k->out);
	else
		compare_view_print(r, &s->params, cli_colour_stdout(k->c), &k->out);
	rc = write_folder(k, r, err);
	if (!rc)
		compare_view_talk(k->c, r);
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

	(void)err;
	cli_progress_end(&w->k->s->progress);
	sweep_view_point(&w->view, i, *io);
	json_open(&w->json, '{');
	json_kv_number(&w->json, "value", w->k->s->sweep.value[i]);
	json_put_key(&w->json, "policies");
	record_policies(*io, &w->json);
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

static int sweep_finish(struct sweeping *w, struct err *err)
{
	struct call *k = w->k;
	struct strbuf object = { 0 };
	int rc = 0;

	if (k->c->json) {
		record_text(w->kept, &k->about, &object);
		rc = with_member(&object, "sweep", &w->text, &k->out, err);
	} else {
		sweep_view_print(&w->view, cli_colour_stdout(k->c), &k->out);
	}
	k->about.sweep = &w->text;
	if (!rc)
		rc = write_folder(k, w->kept, err);
	strbuf_release(&object);
	return rc;
}

static int run_sweep(struct call *k, struct err *err)
{
	struct sim_setup *s = k->s;
	struct sweeping w = { .k = k, .keep = s->sweep.n / 2 };
	int rc = sweep_view_init(&w.view, &s->sweep, &s->params, err);

	json_begin(&w.json, &w.text, true);
	json_open(&w.json, '{');
	json_kv_string(&w.json, "key", what_key_name[s->sweep.key]);
	json_kv_open(&w.json, "points", '[');
	if (!rc)
		rc = sweep_run(&(struct sweep_params){ .sweep = &s->sweep,
						       .compare = &s->params,
						       .keep = w.keep,
						       .on_point = on_point,
						       .owner = &w },
			       err);
	json_close(&w.json, ']');
	json_close(&w.json, '}');
	strbuf_puts(&w.text, "\n");
	if (!rc)
		rc = sweep_finish(&w, err);
	compare_free(w.kept);
	strbuf_release(&w.text);
	sweep_view_release(&w.view);
	return rc;
}

/* ---- a capacity ---- */

static void capacity_head(const struct call *k, struct json_writer *w)
{
	const struct compare_params *p = &k->s->params;
	const struct capacity_question *q = &k->s->capacity;

	json_open(w, '{');
	json_kv_string(w, "kind", "capacity");
	json_kv_string(w, "program", k->about.program);
	json_kv_string(w, "command", k->about.command);
	json_kv_int(w, "seed", (long long)p->seed);
	json_kv_number(w, "level", p->level);
	json_kv_int(w, "replications", (long long)p->replications);
	json_kv_string(w, "by", what_key_name[q->by]);
	json_kv_string(w, "of", metric_info[q->of].name);
	json_kv_number(w, "target", q->target);
	json_kv_number(w, "from", q->from);
	json_kv_number(w, "to", q->to);
	json_kv_open(w, "policies", '[');
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
	for (size_t i = 0; i < s->params.n_policies && !rc; i++) {
		rc = capacity_of_policy(&s->params, &s->capacity, i, found, err);
		cli_progress_end(&s->progress);
		if (rc)
			break;
		capacity_view_json(&s->policy[i], found, &w);
		if (!k->c->json) {
			strbuf_puts(&k->out, i ? "\n" : "");
			capacity_view_print(&s->capacity, &s->policy[i], found, cli_colour_stdout(k->c),
					    &k->out);
		}
	}
	json_close(&w, ']');
	json_close(&w, '}');
	strbuf_puts(&text, "\n");
	if (!rc && k->c->json)
		strbuf_add(&k->out, strbuf_text(&text), text.len);
	if (!rc && k->c->output) {
		stop_threads(s);
		rc = sim_write_files(k->c->output, &(struct sim_file){ "capacity.json", &text }, 1, err);
	}
	strbuf_release(&text);
	free(found);
	return rc;
}

/* ---- both ---- */

int sim_verb_run(const struct cli *c, const struct sim_options *o, const char *kind, const char *command)
{
	struct sim_setup s = { .pool = NULL };
	struct call k = {
		.c = c,
		.s = &s,
		.about = { .kind = kind, .program = SIM_PROGRAM, .command = command, .params = &s.params }
	};
	struct err err = { 0 };
	int code = 0, rc = 0;

	if (c->output)
		rc = o->capacity ? folder_check(c->output, &err) : record_check(c->output, &err);
	if (!rc)
		rc = sim_setup_open(&s, c, o, &err);
	if (!rc && o->dry_run)
		sim_setup_print(&s, &k.out);
	else if (!rc)
		rc = s.wants_capacity ? run_capacity(&k, &err)
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

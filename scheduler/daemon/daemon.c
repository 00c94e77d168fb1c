/* The daemon: set-up, the turn of the loop, timers, leaving. See daemon.h for who does what. */
#include "scheduler/daemon/daemon.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/io.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/places.h"
#include "common/text/text.h"
#include "scheduler/daemon/exec/engine.h"
#include "scheduler/daemon/http/http.h"
#include "scheduler/daemon/net/systemd.h"
#include "scheduler/daemon/ops/ops.h"
#include "scheduler/daemon/retention.h"

#define REPAIR_S 1
#define ESTIMATES_S 2
#define ADVISE_S 5
#define OTHER_WORK_S 1
#define DELAYED_S 1
#define CPU_CLOCK_NS 100000 /* the thread's clock is a system call: it may be so old when a turn begins */

static const int signals[4] = { SIGTERM, SIGINT, SIGHUP, SIGUSR2 };

/* ---- time ---- */

struct daemon_span daemon_span_begin(void)
{
	return (struct daemon_span){ clock_monotonic_ns(), clock_thread_ns() };
}

void daemon_span_end(struct daemon *d, struct daemon_span s)
{
	double ms = (double)(clock_monotonic_ns() - s.began_ns) / 1e6, busy_ms;

	histogram_add(&d->tally.loop_busy_h, ms / 1e3);
	if (ms > d->tally.max_block_ms)
		d->tally.max_block_ms = ms;
	if (!(ms > d->tally.max_busy_ms)) /* then it was not busy longer, and the clock is not asked */
		return;
	busy_ms = fmin(ms, (double)(clock_thread_ns() - s.cpu_ns) / 1e6);
	if (busy_ms > d->tally.max_busy_ms)
		d->tally.max_busy_ms = busy_ms;
}

void daemon_decided(struct daemon *d, double took_us)
{
	tally_decision(&d->tally, took_us);
}

/* ---- the turn ---- */

void daemon_changed(struct daemon *d)
{
	if (d->dirty || !d->event.turn)
		return;
	d->dirty = true;
	event_active(d->event.turn, EV_TIMEOUT, 0);
}

void daemon_later(struct daemon *d)
{
	struct timeval soon = { 0 };

	d->dirty = true; /* not every job was looked at, so the reason why one waits is not known */
	event_add(d->event.turn, &soon);
}

uint64_t daemon_ticket(struct daemon *d)
{
	return store_ticket(d->store);
}

static void leave_if_idle(struct daemon *d)
{
	if (d->stopping || (d->stop_when_idle && sched_running(d->sched) == 0 && d->starts.n == 0)) {
		d->stopping = true;
		if (store_pending(d->store) == 0 || d->store_failed)
			event_base_loopexit(d->base, NULL);
	}
}

void daemon_turn(struct daemon *d)
{
	d->dirty = false;
	carry_durable(d, store_durable(d->store));
	waiting_turn(d);
	carry_turns(d);
	if (d->inputs.n_loads && store_collected(d->store))
		inputs_flush(d);
	store_commit(d->store);
	leave_if_idle(d);
}

static void on_turn(evutil_socket_t fd, short what, void *owner)
{
	struct daemon_span span = daemon_span_begin();

	(void)fd;
	(void)what;
	daemon_turn(owner);
	daemon_span_end(owner, span);
}

static void on_server_turn(void *owner)
{
	daemon_turn(owner);
}

static void on_turn_begins(void *owner)
{
	struct daemon *d = owner;

	d->turn_began_ns = clock_monotonic_ns();
	if (d->turn_began_ns - d->turn_cpu_at_ns < CPU_CLOCK_NS)
		return;
	d->turn_cpu_ns = clock_thread_ns();
	d->turn_cpu_at_ns = d->turn_began_ns;
}

static void on_turn_ends(void *owner)
{
	struct daemon *d = owner;

	daemon_span_end(d, (struct daemon_span){ d->turn_began_ns, d->turn_cpu_ns });
}

static void on_close(void *owner, struct conn *c)
{
	watch_drop(owner, c);
}

/* ---- the store tells ---- */

static void store_went(struct daemon *d, bool failed, const struct err *why)
{
	d->store_failed = failed;
	if (failed) {
		struct timeval every = { .tv_sec = REPAIR_S };

		log_error("the database cannot be written: %s; no job is taken or started until that is "
			  "repaired",
			  why->text);
		watch_tell(d, "storage_failed", NULL);
		event_add(d->event.repair, &every);
	} else {
		log_warn("the database can be written again");
		event_del(d->event.repair);
		carry_out_all(d, LIFE_REPAIRED);
		watch_tell(d, "storage_repaired", NULL);
		daemon_changed(d);
	}
}

static void on_store(evutil_socket_t fd, short what, void *owner)
{
	struct daemon *d = owner;
	struct daemon_span span = daemon_span_begin();
	struct err why = { 0 };
	bool failed;

	(void)fd;
	(void)what;
	store_dispatch(d->store);
	/* Replies first: a client hears that its job was taken before it hears that it started. */
	server_durable(d->server, store_durable(d->store));
	carry_durable(d, store_durable(d->store));
	failed = store_failed(d->store, &why);
	if (failed != d->store_failed)
		store_went(d, failed, &why);
	ops_ask_due(d);
	retention_durable(d->retention);
	leave_if_idle(d);
	daemon_span_end(d, span);
}

static void on_repair(evutil_socket_t fd, short what, void *owner)
{
	struct daemon *d = owner;

	(void)fd;
	(void)what;
	store_repair(d->store);
}

/* ---- timers ---- */

static void on_estimates(evutil_socket_t fd, short what, void *owner)
{
	struct daemon *d = owner;
	struct daemon_span span = daemon_span_begin();

	(void)fd;
	(void)what;
	estimates_look(d);
	daemon_span_end(d, span);
}

/* How late a timer comes shows how long the loop, or the machine, was busy with something else. */
static void note_lag(struct daemon *d)
{
	int64_t now_ns = clock_monotonic_ns();

	if (d->lag_due_ns)
		histogram_add(&d->tally.loop_lag_h, (double)(now_ns - d->lag_due_ns) / 1e9);
	d->lag_due_ns = now_ns + (int64_t)OTHER_WORK_S * 1000000000;
}

static void on_delayed(evutil_socket_t fd, short what, void *owner)
{
	(void)fd;
	(void)what;
	carry_delayed(owner);
}

/* A daemon that was started for one user leaves when there is nothing to do. */
static void leave_if_unused(struct daemon *d)
{
	double idle_s = d->setup->config->idle_exit_s;
	int64_t now_ns = daemon_now_ns(d);

	if (!(idle_s > 0.0) || d->jobs.live.n || server_connections(d->server) || d->loader ||
	    learning_training(d->learning) || store_pending(d->store)) {
		d->idle_since_ns = 0;
	} else if (!d->idle_since_ns) {
		d->idle_since_ns = now_ns;
	} else if ((double)(now_ns - d->idle_since_ns) / 1e9 >= idle_s && !d->stopping) {
		log_info("no jobs and no clients for %.0f s, so the daemon exits", idle_s);
		server_stop_accepting(d->server);
		d->leaving = d->stopping = true;
		daemon_changed(d);
	}
}

static void on_other_work(evutil_socket_t fd, short what, void *owner)
{
	struct daemon *d = owner;

	(void)fd;
	(void)what;
	note_lag(d);
	other_work_look(d);
	history_load(&d->tally.history, daemon_now_ns(d), sched_slots_used(d->sched),
		     d->setup->config->other_load ? other_load_processes(&d->demand.other) : NAN);
	leave_if_unused(d);
}

/* Every live job, a bounded time in a turn of the loop. */
static void on_advise(evutil_socket_t fd, short what, void *owner)
{
	struct timeval every = { .tv_sec = ADVISE_S }, soon = { 0 };
	struct daemon *d = owner;
	struct daemon_span span = daemon_span_begin();
	bool all;

	(void)fd;
	(void)what;
	all = carry_ticks(d);
	event_add(d->event.advise, all ? &every : &soon);
	if (all)
		daemon_changed(d); /* a job that waits may have lost its chance, or be due */
	daemon_span_end(d, span);
}

static void tell_status(struct daemon *d, const char *before)
{
	char text[160];

	snprintf(text, sizeof text, "%sSTATUS=%zu queued, %zu running", before, sched_queued(d->sched),
		 sched_running(d->sched));
	notify_send(text, NULL);
}

static void on_watchdog(evutil_socket_t fd, short what, void *owner)
{
	(void)fd;
	(void)what;
	tell_status(owner, "WATCHDOG=1\n");
}

/* ---- leaving ---- */

void daemon_drain(struct daemon *d, bool on, bool stop)
{
	if (on != d->draining) {
		log_info(on ? "draining: no job is taken or started" : "taking jobs again");
		d->draining = on;
		watch_tell(d, on ? "draining" : "resumed", NULL);
	}
	d->stop_when_idle = on && stop;
	daemon_changed(d);
}

static void on_drain_timeout(evutil_socket_t fd, short what, void *owner)
{
	struct daemon *d = owner;

	(void)fd;
	(void)what;
	log_warn("jobs are still running; they go on, and are found again after a restart");
	d->stopping = true;
	daemon_changed(d);
}

static void on_signal(evutil_socket_t number, short what, void *owner)
{
	struct daemon *d = owner;
	const struct config *c = d->setup->config;
	struct err err = { 0 };

	(void)what;
	if (number == SIGUSR2)
		return; /* "reopen the log": ours is standard error */
	if (number == SIGHUP) {
		notify_reloading(NULL);
		if (d->loader)
			d->reload_again = true;
		else if (daemon_reload(d, NULL, NULL, &err))
			log_warn("not reloaded: %s", err.text);
		return;
	}
	if (d->draining && d->stop_when_idle) { /* the second time */
		d->stopping = true;
		daemon_changed(d);
		return;
	}
	notify_send("STOPPING=1", NULL);
	server_stop_accepting(d->server);
	d->leaving = true;
	daemon_drain(d, true, true);
	if (!c->drain_on_term) {
		if (sched_running(d->sched) > 0)
			log_info("%zu jobs go on without the daemon, and are found again after a restart",
				 sched_running(d->sched));
		d->stopping = true;
		daemon_changed(d);
	} else if (c->drain_timeout_s > 0.0) {
		struct timeval t = { .tv_sec = (time_t)c->drain_timeout_s };

		event_base_once(d->base, -1, EV_TIMEOUT, on_drain_timeout, d, &t);
	}
}

/* ---- set-up ---- */

/* Makes the missing folders above `dir`, as mkdir -p does. A failure shows when `dir` itself is made. */
static void make_parents(const char *dir)
{
	char path[4096];

	if ((size_t)snprintf(path, sizeof path, "%s", dir) >= sizeof path)
		return;
	for (char *at = path + 1; (at = strchr(at, '/')) != NULL; at++) {
		*at = 0;
		if (mkdir(path, 0755) == 0)
			chmod(path, 0755);
		*at = '/';
	}
}

/* The state folder, made if need be; others must not be able to plant a database or a job's report in it. */
static int check_state_dir(const char *dir, bool force, struct err *err)
{
	struct stat st;
	char jobs[CONFIG_MAX_STATE_DIR + sizeof "/jobs"];

	if (strlen(dir) > CONFIG_MAX_STATE_DIR)
		return err_fail(err, ERR_ARG, "%s: a state folder of %zu bytes, at most %d are possible",
				text_tail(dir, 80), strlen(dir), CONFIG_MAX_STATE_DIR);
	make_parents(dir);
	/* Jobs of other users, which only root can start, reach their folders below it and see no more. */
	if (mkdir(dir, 0750) == 0)
		chmod(dir, geteuid() == 0 ? 0711 : 0750);
	else if (errno != EEXIST)
		return err_fail(err, errno == ENOENT ? ERR_NOTFOUND : ERR_IO, "%s: %s", dir, strerror(errno));
	if (lstat(dir, &st) || !S_ISDIR(st.st_mode))
		return err_fail(err, ERR_FORMAT, "%s: is not a folder", dir);
	if (!force && (st.st_mode & 0022))
		return err_fail(err, ERR_PERM,
				"%s: others may write there (mode %04o); 'chmod go-w' it, or use --force",
				dir, (unsigned)st.st_mode & 07777);
	if (!force && st.st_uid != geteuid())
		return err_fail(err, ERR_PERM,
				"%s: belongs to uid %u, not to the daemon's; use --force if that is meant",
				dir, (unsigned)st.st_uid);
	snprintf(jobs, sizeof jobs, "%s/jobs", dir);
	if (mkdir(jobs, 0711) == 0)
		chmod(jobs, 0711);
	else if (errno != EEXIST)
		return err_fail(err, ERR_IO, "%s: %s", jobs, strerror(errno));
	return 0;
}

static int replace_text(char **at, const char *with, struct err *err)
{
	char *copy;

	if (!with)
		return 0;
	copy = mem_strdup(with);
	if (!copy)
		return err_nomem(err, "the configuration");
	free(*at);
	*at = copy;
	return 0;
}

/* A path of the command line, from the folder the daemon was started in. */
static int replace_path(char **at, const char *with, struct err *err)
{
	char *path;
	int rc;

	if (!with)
		return 0;
	rc = place_absolute(with, &path, err);
	if (rc)
		return rc;
	free(*at);
	*at = path;
	return 0;
}

int daemon_read_setup(const struct daemon *d, const struct learning *learning,
		      const struct setup_source *from, struct setup **out, struct err *err)
{
	const struct daemon_params *p = &d->params;
	struct config *c = NULL;
	char *path = config_find(p->config_path);
	int rc = path ? config_read(path, &c, err) : config_default(&c, err);

	free(path);
	if (rc) {
		model_free(from->model);
		return rc;
	}
	rc = replace_path(&c->socket, p->socket, err);
	if (!rc)
		rc = replace_path(&c->state_dir, p->state_dir, err);
	if (!rc)
		rc = replace_text(&c->policy, p->policy, err);
	if (!rc)
		rc = replace_path(&c->model, p->model, err);
	if (!rc)
		rc = learning_override(learning, c, err);
	if (rc) {
		model_free(from->model);
		config_free(c);
		return rc;
	}
	return setup_new(c, from, out, err);
}

static void warn_of_retired(void *file, const char *key)
{
	log_warn("%s: %s no longer has an effect, and can be taken out",
		 file ? (const char *)file : "configuration", key);
}

void daemon_use_log(const struct config *c)
{
	log_set_level(c->log_level);
	log_set_json(c->log_json);
	config_retired(c, warn_of_retired, c->path);
}

int daemon_configure_engines(struct daemon *d, const struct config *c, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; d->executors[i]; i++) {
		if (d->executors[i] == &exec_engine_ops && d->executor[i])
			rc = exec_engine_configure(d->executor[i], c, err);
	}
	return rc;
}

static int open_parts(struct daemon *d, bool force, struct err *err)
{
	const struct config *c = d->setup->config;
	struct store_params store = { .dir = c->state_dir,
				      .durability = c->durability,
				      .interval_s = c->durability_interval_s };
	struct executor_sink sink = carry_sink;
	const struct model *own[SETUP_MAX_SLOTS];
	struct sched_params sched;
	int rc = check_state_dir(c->state_dir, force, err);

	sink.owner = d;
	setup_sched_params(d->setup, own, &sched);
	if (!rc)
		rc = jobs_init(&d->jobs, err);
	if (!rc)
		jobs_expect(&d->jobs, c->max_queued + c->max_finished);
	if (!rc)
		rc = store_open(&store, &d->store, err);
	if (!rc)
		rc = sched_new(&sched, &d->sched, err);
	if (!rc)
		carry_lag(d);
	for (size_t i = 0; !rc && d->executors[i] && i < DAEMON_MAX_EXECUTORS; i++)
		rc = d->executors[i]->create(d->base, &sink, &d->executor[i], err);
	if (!rc)
		rc = daemon_configure_engines(d, c, err);
	return rc;
}

static int open_server(struct daemon *d, bool force, struct err *err)
{
	const struct config *c = d->setup->config;
	struct server_params p = {
		.base = d->base,
		.path = c->socket,
		.mode = c->socket_mode,
		.listen_fd = -1,
		.force = force,
		.handler = { .owner = d,
			     .on_line = ops_line,
			     .greeting = ops_greeting,
			     .refusal = ops_refusal,
			     .on_close = on_close,
			     .on_turn = on_server_turn,
			     .turn_begins = on_turn_begins,
			     .turn_ends = on_turn_ends },
	};
	int rc = notify_listen_fd(&p.listen_fd, err);

	if (!rc)
		rc = daemon_server_limits(c, &p, err);
	if (!rc)
		rc = server_new(&p, &d->server, err);
	return rc;
}

static struct event *timer(struct daemon *d, event_callback_fn fn, int seconds)
{
	struct event *e = event_new(d->base, -1, EV_PERSIST, fn, d);
	struct timeval every = { .tv_sec = seconds };

	if (e && seconds > 0)
		event_add(e, &every);
	return e;
}

static int add_events(struct daemon *d, struct err *err)
{
	double watchdog_s = notify_watchdog_s();
	bool good;

	d->event.turn = event_new(d->base, -1, 0, on_turn, d);
	d->event.store = event_new(d->base, store_fd(d->store), EV_READ | EV_PERSIST, on_store, d);
	d->event.repair = timer(d, on_repair, 0);
	d->event.estimates = timer(d, on_estimates, ESTIMATES_S);
	d->event.advise = event_new(d->base, -1, 0, on_advise, d);
	d->event.other_work = timer(d, on_other_work, OTHER_WORK_S);
	d->event.delayed = timer(d, on_delayed, DELAYED_S);
	if (d->params.played) /* its loop never runs */
		return d->event.turn && d->event.repair && d->event.advise ? 0 : err_nomem(err, "the events");
	good = d->event.turn && d->event.store && d->event.repair && d->event.estimates && d->event.advise &&
	       d->event.other_work && d->event.delayed && !event_add(d->event.store, NULL) &&
	       !event_add(d->event.advise, &(struct timeval){ .tv_sec = ADVISE_S });
	for (size_t i = 0; good && i < sizeof signals / sizeof signals[0]; i++) {
		d->event.signal[i] = evsignal_new(d->base, signals[i], on_signal, d);
		good = d->event.signal[i] && !event_add(d->event.signal[i], NULL);
	}
	if (good && watchdog_s > 0.0) {
		long half_us = (long)(watchdog_s / 2.0 * 1e6);
		struct timeval half = { .tv_sec = half_us / 1000000, .tv_usec = half_us % 1000000 };

		d->event.watchdog = event_new(d->base, -1, EV_PERSIST, on_watchdog, d);
		good = d->event.watchdog && !event_add(d->event.watchdog, &half);
	}
	return good ? 0 : err_nomem(err, "the events of the loop");
}

int daemon_new(const struct daemon_params *p, struct daemon **out, struct err *err)
{
	struct daemon *d = mem_calloc(1, sizeof *d);
	int rc;

	if (!d)
		return err_nomem(err, NULL);
	d->params = *p;
	d->executors = p->played ? p->played->executor : executor_all;
	d->clock_offset_ns = clock_wall_ns() - clock_boot_ns();
	d->started_ns = daemon_now_ns(d);
	tally_init(&d->tally);
	d->life = (struct life){ .jobs = &d->jobs, .load_since_ns = d->started_ns };
	d->base = event_base_new();
	rc = d->base ? 0 : err_fail(err, ERR_NOMEM, "no event loop: %s", strerror(errno));
	if (!rc)
		rc = daemon_read_setup(d, NULL, &(struct setup_source){ 0 }, &d->setup, err);
	if (!rc) {
		daemon_use_log(d->setup->config);
		other_work_look(
			d); /* the first reading sets the marks; the next one is before the socket opens */
		rc = open_parts(d, p->force, err);
	}
	if (!rc)
		daemon_clock_begin(d);
	if (!rc)
		rc = add_events(d, err);
	if (!rc)
		rc = learning_new(d, &d->learning, err);
	/* The socket comes last: a client that gets in finds everything restored. */
	if (!rc)
		rc = daemon_restore(d, err);
	if (!rc)
		daemon_clock_settle(d);
	if (!rc) {
		setup_link_model(d->setup);
		rc = retention_new(d, &d->retention, err);
	}
	if (!rc) {
		inputs_began(d);
		learning_restore(d->learning);
		cluster_settle(d);
		other_work_settle(d);
		if (!p->played)
			rc = open_server(d, p->force, err);
	}
	if (!rc && !p->played)
		rc = http_new(d, &d->http, err);
	if (!rc && !p->played)
		d->textfile = textfile_new(d, d->setup->config->metrics_file);
	if (rc) {
		daemon_free(d);
		return rc;
	}
	*out = d;
	return 0;
}

int daemon_run(struct daemon *d)
{
	char models[160];

	log_info("listening on %s, policy %s, model %s, %u cpus for jobs", d->setup->config->socket,
		 d->setup->config->policy, models_named(d->setup, models, sizeof models),
		 d->setup->config->slots);
	daemon_changed(d);
	tell_status(d, "READY=1\n");
	return event_base_dispatch(d->base) < 0 ? 1 : 0;
}

static void drop(struct event *e)
{
	if (e)
		event_free(e);
}

void daemon_free(struct daemon *d)
{
	if (!d)
		return;
	daemon_reload_abandon(d);
	textfile_free(d->textfile);
	http_free(d->http);
	learning_free(d->learning);
	ops_ask_abandon(d);
	outputs_free(d);
	server_free(d->server); /* its on_close calls still find the daemon whole */
	for (size_t i = 0; d->executors[i] && i < DAEMON_MAX_EXECUTORS; i++) {
		if (d->executor[i])
			d->executors[i]->destroy(d->executor[i]);
	}
	drop(d->event.turn);
	drop(d->event.store);
	drop(d->event.repair);
	drop(d->event.estimates);
	drop(d->event.advise);
	drop(d->event.other_work);
	drop(d->event.delayed);
	demand_release(&d->demand);
	free(d->cluster);
	drop(d->event.watchdog);
	store_close(d->store); /* answers what was asked, so the retention is still there */
	retention_free(d->retention);
	/* Until here a signal that comes once more must not end us half-way. */
	for (size_t i = 0; i < sizeof d->event.signal / sizeof d->event.signal[0]; i++)
		drop(d->event.signal[i]);
	sched_free(d->sched);
	waiting_release(d);
	jobs_release(&d->jobs);
	tenants_free(&d->tenants);
	devices_release(&d->devices);
	free(d->watcher);
	free(d->starts.item);
	strbuf_release(&d->inputs.loads);
	free(d->delayed.item);
	strbuf_release(&d->out);
	strbuf_release(&d->text);
	setup_free(d->setup);
	if (d->base)
		event_base_free(d->base);
	free(d);
}

/* The drill of an engine beside the machine that is away, gives no answer, forgets what it took, and
 * says that jobs are over that run, while the daemon is killed: no job is lost or run twice, and jobs of
 * the machine go on as if there were no engine. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/io.h"
#include "common/mem.h"
#include "common/rng.h"
#include "tests/daemon/drills.h"
#include "tests/daemon/harness.h"

#define FAR 2 /* jobs of a round, at the engine */
#define HERE 2 /* on the machine */
#define LIMIT_S 3000.0
#define WAIT_S 15.0 /* for a job of the machine, which sleeps for a moment */

static const char *const how[] = { "", "later", "deaf", "forget", "mute", "over" };
enum { N_HOW = sizeof how / sizeof *how };

/* "q submit IDENTITY COMMAND...", "q cancel ID", "q poll"; its state is the folder it is in. */
static const char engine[] =
	"#!/bin/sh\n"
	"d=${0%/*} how= verb=$1\n"
	"shift\n"
	"[ ! -e $d/how ] || read -r how <$d/how\n"
	"case $verb in\n"
	"submit)\n"
	"	identity=$1 id=$$\n"
	"	shift\n"
	"	case $how in\n"
	"	later) echo 'controller is away' >&2; exit 75 ;;\n"
	"	forget) echo $id; exit ;;\n"
	"	esac\n"
	"	echo \"$identity $id running\" >$d/queue/$id\n"
	"	(setsid sh -c 'echo $$ >$0; exec \"$@\"' $d/pid.$id \"$@\"; rm -f $d/queue/$id) "
	"</dev/null >/dev/null 2>&1 &\n"
	"	[ $how != deaf ] 2>/dev/null || exec sleep 5\n"
	"	echo $id ;;\n"
	"cancel) [ ! -e $d/pid.$1 ] || kill $(cat $d/pid.$1) ;;\n"
	"poll)\n"
	"	[ \"$how\" != mute ] || exit 1\n"
	"	[ \"$how\" != over ] || exit 0\n" /* says that none is there */
	"	cat $d/queue/* 2>/dev/null; exit 0 ;;\n"
	"esac\n";

struct engine_drill {
	const struct drill *d;
	struct fixture y;
	struct rng rng;
	char dir[128];
	uint64_t *far, *here;
	size_t n_far, n_here;
	unsigned long broken;
	double longest_s;
	unsigned kills, promised;
};

static void put(const struct engine_drill *e, const char *name, const char *text)
{
	char path[200];

	snprintf(path, sizeof path, "%s/%s", e->dir, name);
	if (io_write_file(path, text, strlen(text), NULL) || chmod(path, 0755))
		die("cannot write %s", path);
}

static void set_up(struct engine_drill *e)
{
	char path[200], settings[1200], types[600];

	fixture_open(&e->y);
	if (e->d->model)
		fixture_train(&e->y);
	snprintf(e->dir, sizeof e->dir, "%s/q", e->y.dir);
	snprintf(path, sizeof path, "%s/queue", e->dir);
	if (mkdir(e->dir, 0755) || mkdir(path, 0755))
		die("cannot make %s", path);
	put(e, "q", engine);
	snprintf(settings, sizeof settings,
		 "\"slots\":2,\"max_finished\":5000,\"engines\":{\"q\":{"
		 "\"submit\":[\"%s/q\",\"submit\",\"{identity}\",\"{command}\"],"
		 "\"cancel\":[\"%s/q\",\"cancel\",\"{id}\"],\"poll\":[\"%s/q\",\"poll\"],\"poll_s\":0.3,"
		 "\"timeout_s\":1,\"record_grace_s\":0.5}},",
		 e->dir, e->dir, e->dir);
	snprintf(types, sizeof types,
		 ",\"far\":{\"executor\":\"q\",\"argv\":[\"/bin/sh\",\"-c\",\"echo B {job} far >>%s; sleep "
		 "0.2; "
		 "echo E {job} far >>%s\",\"{batch}\"],\"batches\":[64]}",
		 e->y.runs, e->y.runs);
	fixture_configure(&e->y, settings, types);
	fixture_start(&e->y);
}

/* Jobs of the machine have ended, or it is too late. */
static void await_here(struct engine_drill *e, struct talk *t, size_t first)
{
	double from = now_s(), until = from + WAIT_S;
	char state[16] = "";

	for (size_t i = first; i < e->n_here; i++) {
		do {
			state_of(t, e->here[i], state);
			if (strcmp(state, "done"))
				sleep_s(0.01);
		} while (strcmp(state, "done") && strcmp(state, "failed") && now_s() < until);
		if (strcmp(state, "done")) {
			fprintf(e->d->to, "job %llu of the machine is %s after %g s\n",
				(unsigned long long)e->here[i], state, WAIT_S);
			e->broken++;
		}
	}
	if (now_s() - from > e->longest_s)
		e->longest_s = now_s() - from;
}

static void round_of(struct engine_drill *e)
{
	struct talk *t = talk_open(&e->y);
	size_t first = e->n_here;
	char members[120];
	struct json *v;

	put(e, "how", how[rng_below(&e->rng, N_HOW)]);
	for (int i = 0; i < FAR; i++)
		e->far[e->n_far++] = submit(t, ",\"type\":\"far\"");
	sleep_s(0.3 * rng_uniform(&e->rng));
	for (int i = 0; i < HERE; i++) {
		snprintf(members, sizeof members, ",\"type\":\"line\",\"slo_s\":%g", LIMIT_S);
		v = talk_ask(t, "{\"op\":\"submit\"%s}", members);
		e->here[e->n_here] = strtoull(text_at(v, "job.job"), NULL, 10);
		e->promised += !strcmp(text_at(v, "job.verdict"), "promised");
		if (!e->here[e->n_here])
			die("not taken: %s", error_of(v));
		e->n_here++;
		json_free(v);
	}
	if (rng_uniform(&e->rng) < 0.3) {
		talk_close(t);
		fixture_stop(&e->y, SIGKILL);
		fixture_start(&e->y);
		e->kills++;
		t = talk_open(&e->y);
	}
	await_here(e, t, first);
	talk_close(t);
}

static void count(struct engine_drill *e, const uint64_t *job, size_t n, const char *what)
{
	for (size_t i = 0; i < n; i++) {
		char id[32];
		size_t began, ended;

		snprintf(id, sizeof id, "%llu", (unsigned long long)job[i]);
		began = fixture_runs(&e->y, 'B', id);
		ended = fixture_runs(&e->y, 'E', id);
		if (began == 1 && ended == 1)
			continue;
		fprintf(e->d->to, "job %s of %s began %zu times and ended %zu times\n", id, what, began,
			ended);
		e->broken++;
	}
}

unsigned long drill_engine(const struct drill *d, unsigned rounds)
{
	struct engine_drill e = { .d = d, .rng = rng_stream(d->seed, 5000) };
	struct talk *t;

	e.far = mem_array(rounds * FAR + 1, sizeof *e.far);
	e.here = mem_array(rounds * HERE + 1, sizeof *e.here);
	if (!e.far || !e.here)
		die("out of memory");
	set_up(&e);
	for (unsigned i = 0; i < rounds; i++)
		round_of(&e);
	put(&e, "how", "");
	t = talk_open(&e.y);
	await_idle(t, 20 * PATIENCE_S);
	talk_close(t);
	fixture_stop(&e.y, SIGTERM);
	count(&e, e.far, e.n_far, "the engine");
	count(&e, e.here, e.n_here, "the machine");
	fprintf(d->to,
		"engine: %u rounds, %zu jobs of an engine that lies, %zu of the machine (%u promised, in "
		"%.1f s at "
		"most), %u kills: %lu promises broken\n",
		rounds, e.n_far, e.n_here, e.promised, e.longest_s, e.kills, e.broken);
	fixture_close(&e.y);
	free(e.far);
	free(e.here);
	return e.broken;
}

/* A workload manager of shell scripts. See played_engine.h. */
#define _GNU_SOURCE
#include "tests/unit/daemon/played_engine.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/io.h"
#include "tests/support/support.h"

static const struct {
	const char *name, *text;
} program[] = {
	{ "submit", /* IDENTITY COMMAND... */
	  "d=${0%/*} identity=$1 how=\n"
	  "shift\n"
	  "echo \"$identity\" >>$d/submits\n"
	  "id=$(wc -l <$d/submits)\n"
	  "[ ! -e $d/how ] || read -r how <$d/how\n"
	  "case $how in\n"
	  "no) echo 'no such queue' >&2; exit 1 ;;\n"
	  "later) echo 'controller is away' >&2; exit 75 ;;\n"
	  "forget) echo $id; exit ;;\n"
	  "hold) $d/say $id $identity waiting no room; echo $id; exit ;;\n"
	  "broken) echo 'failed no such program' >${REPORT:-/dev/null}; $d/say $id $identity failed bad "
	  "node\n"
	  "	echo $id; exit ;;\n"
	  "esac\n"
	  "$d/say $id $identity running\n"
	  "setsid $d/run $id $identity \"$@\" </dev/null >${REPORT:-/dev/null} 2>&1 &\n"
	  "[ \"$how\" != deaf ] || { rm $d/how; exec sleep 30; }\n"
	  "echo $id\n" },
	{ "say", /* ID IDENTITY STATE WORDS: a line is there whole, or not at all */
	  "d=${0%/*} id=$1 identity=$2\n"
	  "shift 2\n"
	  "echo \"$identity $id $*\" >$d/fresh.$id && mv $d/fresh.$id $d/queue/$id\n" },
	{ "run", /* what the engine said meanwhile stays its word */
	  "d=${0%/*} id=$1 identity=$2\n"
	  "shift 2\n"
	  "sh -c 'echo $$ >$0; exec \"$@\"' $d/pid.$id \"$@\"\n"
	  "code=$?\n"
	  "[ -e $d/queue/$id ] && read -r i n state words <$d/queue/$id && [ \"$state\" = running ] &&\n"
	  "	$d/say $id $identity ended exit code $code\n" },
	{ "cancel", /* ID */
	  "d=${0%/*}\n"
	  "echo $1 >>$d/cancels\n"
	  "if [ -e $d/pid.$1 ]; then read -r pid <$d/pid.$1; kill $pid; else rm -f $d/queue/$1; fi\n" },
	{ "poll", "d=${0%/*}\n"
		  "[ ! -e $d/mute ] || { echo 'nobody answers' >&2; exit 1; }\n"
		  "echo poll >>$d/polls\n"
		  "set -- $d/queue/*\n"
		  "[ ! -e \"$1\" ] || exec cat \"$@\"\n" },
	{ "sbatch", "d=${0%/*}\n"
		    "for word; do\n"
		    "	case $word in\n"
		    "	--comment=*) identity=${word#*:} ;;\n"
		    "	--output=*) REPORT=${word#*=}; export REPORT ;;\n"
		    "	esac\n"
		    "done\n"
		    "cat >$d/script.$identity\n"
		    "exec $d/submit $identity sh $d/script.$identity\n" },
	{ "scancel", "for id; do :; done\n"
		     "exec ${0%/*}/cancel $id\n" },
	{ "squeue", "d=${0%/*}\n"
		    "case $* in *%C*) [ ! -e $d/others ] || cat $d/others; exit ;; esac\n"
		    "$d/poll | while read -r identity id state words; do\n"
		    "	node=n1\n"
		    "	case $state in\n"
		    "	waiting) state=PENDING node= ;;\n"
		    "	ended) state=COMPLETED ;;\n"
		    "	time_limit) state=TIMEOUT ;;\n"
		    "	memory) state=OUT_OF_MEMORY ;;\n"
		    "	node) state=NODE_FAIL ;;\n"
		    "	*) state=$(echo $state | tr a-z A-Z) ;;\n"
		    "	esac\n"
		    "	echo \"$id|$state|postrider:$identity|$node|${words:-None}\"\n"
		    "done\n" },
	{ "sinfo", "exec cat ${0%/*}/nodes\n" },
	{ "sacct", "d=${0%/*}\n"
		   "echo \"$*\" >>$d/books_asked\n"
		   "exec cat $d/books\n" },
	{ "job", /* GATE CODE BATCH */
	  "d=${0%/*}\n"
	  "echo run >>$d/runs\n"
	  "echo '{\"epoch\":1,\"accuracy\":0.5}'\n"
	  "[ $1 = 0 ] || read -r line <$d/gate\n"
	  "echo '{\"epoch\":4,\"accuracy\":0.91}'\n"
	  "exit $2\n" },
};

static const char *at(const struct played_engine *g, const char *file)
{
	return support_path(g->dir, file);
}

void played_put(const struct played_engine *g, const char *file, const char *text)
{
	struct err err = { 0 };

	if (!text)
		unlink(at(g, file));
	else if (io_write_file(at(g, file), text, strlen(text), &err))
		fail_msg("%s", err.text);
}

static char *text_of(const struct played_engine *g, const char *file)
{
	char *text = NULL;
	size_t len;

	return io_read_file(at(g, file), 1 << 20, &text, &len, NULL) ? NULL : text;
}

size_t played_lines(const struct played_engine *g, const char *file)
{
	char *text = text_of(g, file);
	size_t n = 0;

	for (const char *s = text; s && (s = strchr(s, '\n')); s++)
		n++;
	free(text);
	return n;
}

bool played_has(const struct played_engine *g, const char *file, const char *text)
{
	char *all = text_of(g, file);
	bool has = all && strstr(all, text);

	free(all);
	return has;
}

void played_word(const struct played_engine *g, unsigned id, const char *identity, const char *word)
{
	char file[32], line[300];

	snprintf(file, sizeof file, "queue/%u", id);
	snprintf(line, sizeof line, "%s %u %s\n", identity, id, word ? word : "");
	played_put(g, file, word ? line : NULL);
}

void played_open(struct played_engine *g, struct local_daemon *l, bool slurm, const char *more)
{
	char commands[600] = "\"engine\":\"slurm\"", text[2000];

	*g = (struct played_engine){ 0 };
	snprintf(g->dir, sizeof g->dir, "%s/engine", l->dir);
	assert_int_equal(mkdir(g->dir, 0755), 0);
	assert_int_equal(mkdir(at(g, "queue"), 0755), 0);
	for (size_t i = 0; i < sizeof program / sizeof *program; i++) {
		snprintf(text, sizeof text, "#!/bin/sh\n%s", program[i].text);
		played_put(g, program[i].name, text);
		assert_int_equal(chmod(at(g, program[i].name), 0755), 0);
	}
	assert_int_equal(mkfifo(at(g, "gate"), 0600), 0);
	g->gate = open(at(g, "gate"), O_RDWR | O_CLOEXEC);
	assert_true(g->gate >= 0);
	if (slurm)
		snprintf(commands, sizeof commands, "\"engine\":\"slurm\",\"bin\":\"%s\"", g->dir);
	else
		snprintf(commands, sizeof commands,
			 "\"submit\":[\"%s/submit\",\"{identity}\",\"{command}\"],"
			 "\"cancel\":[\"%s/cancel\",\"{id}\"],\"poll\":[\"%s/poll\"]",
			 g->dir, g->dir, g->dir);
	snprintf(g->settings, sizeof g->settings,
		 "\"executor\":\"q\",\"slots\":20,\"engines\":{\"q\":{%s,\"poll_s\":0.2,\"timeout_s\":1,"
		 "\"record_grace_s\":0.2%s}},",
		 commands, more);
	snprintf(g->types, sizeof g->types,
		 ",\"work\":{\"batches\":[128],\"argv\":[\"%s/job\",\"{gate}\",\"{code}\",\"{batch}\"],"
		 "\"params\":{\"gate\":{\"kind\":\"integer\",\"default\":0},"
		 "\"code\":{\"kind\":\"integer\",\"default\":0}}}",
		 g->dir);
	l->settings = g->settings;
	l->types = g->types;
}

void played_open_gate(const struct played_engine *g)
{
	assert_int_equal(write(g->gate, "\n", 1), 1);
}

/* Without a writer the gate is at its end, and so are those that wait at it. */
void played_close(struct played_engine *g)
{
	if (g->gate > 0)
		close(g->gate);
	g->gate = -1;
}

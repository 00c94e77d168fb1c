/* Walks the processes of our programs in /proc and sums up what they wanted of the cpus. See demand.h. */
#include "scheduler/process/demand.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/io.h"
#include "common/mem.h"
#include "scheduler/process/proc.h"

#define SHORTEST_S 0.02 /* between two readings: the kernel counts in ticks of a hundredth of a second */

struct walk { /* one reading of all programs */
	struct demand_task *task;
	size_t n_tasks, tasks_cap;
	size_t threads; /* most in one process of the program */
	bool failed; /* the kernel does not tell, or there are too many */
};

void demand_release(struct demand *d)
{
	if (!d)
		return;
	free(d->task);
	free(d->root);
	*d = (struct demand){ 0 };
}

/* ---- one program ---- */

static double visit(struct walk *w, pid_t root, pid_t pid);

/* The processes that a thread started. */
static double visit_children(struct walk *w, pid_t root, pid_t pid, pid_t thread)
{
	char path[96], text[8192], *at = text;
	double cpu_s = 0.0;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)thread);
	if (proc_read(path, text, sizeof text) <= 0)
		return 0.0;
	while (*at && !w->failed) {
		char *end;
		long child = strtol(at, &end, 10);

		if (end == at)
			break;
		at = end + strspn(end, " \n");
		if (child > 1 && child != (long)root)
			cpu_s += visit(w, root, (pid_t)child);
	}
	return cpu_s;
}

static void visit_thread(struct walk *w, pid_t root, pid_t pid, pid_t thread)
{
	char path[96], text[128];
	uint64_t ran_ns, waited_ns;
	void *list = w->task;

	snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)pid, (int)thread);
	if (proc_read(path, text, sizeof text) <= 0)
		return; /* it has just ended */
	if (w->n_tasks == DEMAND_MAX_TASKS ||
	    sscanf(text, "%" SCNu64 " %" SCNu64, &ran_ns, &waited_ns) != 2 ||
	    mem_grow(&list, &w->tasks_cap, w->n_tasks + 1, sizeof *w->task)) {
		w->failed = true;
		return;
	}
	w->task = list;
	w->task[w->n_tasks++] = (struct demand_task){ root, thread, waited_ns };
}

/* Notes the threads of a process and of its descendants; returns the cpu time of all of them. */
static double visit(struct walk *w, pid_t root, pid_t pid)
{
	struct proc_process p;
	char path[64];
	struct dirent *e;
	size_t n = 0;
	double cpu_s;
	DIR *threads;

	if (!proc_process_read(pid, &p))
		return 0.0;
	cpu_s = (double)p.cpu_ticks / (double)sysconf(_SC_CLK_TCK);
	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	threads = opendir(path);
	while (threads && !w->failed && (e = readdir(threads))) {
		long thread = strtol(e->d_name, NULL, 10);

		if (thread <= 0)
			continue;
		n++;
		visit_thread(w, root, pid, (pid_t)thread);
		cpu_s += visit_children(w, root, pid, (pid_t)thread);
	}
	if (threads)
		closedir(threads);
	w->threads = n > w->threads ? n : w->threads;
	return cpu_s;
}

static int by_task(const void *a_, const void *b_)
{
	const struct demand_task *a = a_, *b = b_;

	if (a->root != b->root)
		return a->root < b->root ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

/* ---- since the last reading ---- */

static struct demand_root *root_of(struct demand *d, pid_t pid)
{
	void *list = d->root;

	for (size_t i = 0; i < d->n_roots; i++) {
		if (d->root[i].pid == pid)
			return &d->root[i];
	}
	if (mem_grow(&list, &d->roots_cap, d->n_roots + 1, sizeof *d->root))
		return NULL;
	d->root = list;
	d->root[d->n_roots] = (struct demand_root){ .pid = pid };
	return &d->root[d->n_roots++];
}

/* The seconds that the threads in w waited for a cpu since the last reading. A thread that ended in between
 * takes its last moments with it. */
static double waited_s(struct demand *d, struct walk *w)
{
	double sum_s = 0.0;

	if (w->n_tasks) /* qsort() takes no null pointer, and without tasks there is no list */
		qsort(w->task, w->n_tasks, sizeof *w->task, by_task);
	for (size_t i = 0; i < w->n_tasks; i++) {
		const struct demand_task *now = &w->task[i];
		const struct demand_task *before =
			d->n_tasks ? bsearch(now, d->task, d->n_tasks, sizeof *now, by_task) : NULL;
		uint64_t since_ns = before ? before->waited_ns : 0;
		double more_s = now->waited_ns > since_ns ? (double)(now->waited_ns - since_ns) / 1e9 : 0.0;
		struct demand_root *r = root_of(d, now->root);

		if (r && r->late && !before)
			continue;
		sum_s += more_s;
		if (r)
			r->waited_s += more_s;
	}
	return sum_s;
}

/* A job that a daemon finds again after a restart: what it did before is not of this interval. */
static bool is_older(pid_t pid, double dt_s)
{
	struct proc_process p;
	struct timespec boot;

	if (!proc_process_read(pid, &p) || clock_gettime(CLOCK_BOOTTIME, &boot))
		return false;
	return (double)boot.tv_sec + 1e-9 * (double)boot.tv_nsec -
		       (double)p.start_ticks / (double)sysconf(_SC_CLK_TCK) >
	       dt_s + SHORTEST_S;
}

static double ran_s(struct demand *d, pid_t pid, double cpu_s, double dt_s)
{
	size_t n = d->n_roots;
	struct demand_root *r = root_of(d, pid);
	double since_s;

	if (!r)
		return 0.0;
	r->late = d->n_roots > n && is_older(pid, dt_s);
	since_s = r->late ? 0.0 : fmax(0.0, cpu_s - r->cpu_s);
	r->cpu_s = fmax(r->cpu_s, cpu_s);
	return since_s;
}

static void note_threads(struct demand *d, pid_t pid, size_t n)
{
	struct demand_root *r = root_of(d, pid);

	if (r && n > r->threads)
		r->threads = n;
}

static void forget_roots(struct demand *d, const struct demand_program *program, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < d->n_roots; i++) {
		bool there = false;

		for (size_t k = 0; k < n && !there; k++)
			there = program[k].pid == d->root[i].pid;
		if (there)
			d->root[kept++] = d->root[i];
	}
	d->n_roots = kept;
}

/* The processes of ours that wanted a cpu since the last reading, as a mean over dt_s. */
static struct other_load_ours ours(struct demand *d, const struct demand_program *program, size_t n,
				   double dt_s)
{
	double asked = 0.0, known = 0.0, wanted_s = 0.0, ran = 0.0;
	struct walk w = { 0 };

	for (size_t i = 0; i < n; i++) {
		if (program[i].pid > 0) {
			known += program[i].cpus;
			w.threads = 0;
			wanted_s += ran_s(d, program[i].pid, visit(&w, program[i].pid, program[i].pid), dt_s);
			note_threads(d, program[i].pid, w.threads);
		} else {
			asked += program[i].cpus;
		}
	}
	if (w.failed) {
		free(w.task);
		w = (struct walk){ 0 };
		wanted_s = known * dt_s;
		ran = NAN;
	} else {
		ran = wanted_s + d->owed_ran_s;
		wanted_s += waited_s(d, &w) + d->owed_s;
	}
	forget_roots(d, program, n);
	free(d->task);
	d->task = w.task;
	d->n_tasks = w.n_tasks;
	d->owed_s = d->owed_ran_s = 0.0;
	return (struct other_load_ours){ .wanted = asked + (dt_s > 0.0 ? wanted_s / dt_s : 0.0),
					 .ran = asked > 0.0 || !(dt_s > 0.0) ? NAN : ran / dt_s };
}

double demand_look(struct demand *d, const struct demand_program *program, size_t n, double now_s)
{
	char *stat = NULL, *pressure = NULL;
	struct other_load_ours wanted;
	double dt_s = now_s - d->at_s;
	size_t len;

	if (d->other.begun && dt_s < SHORTEST_S)
		return other_load_processes(&d->other);
	if (io_read_file("/proc/stat", OTHER_LOAD_MAX_TEXT, &stat, &len, NULL) == 0) {
		io_read_file("/proc/pressure/cpu", OTHER_LOAD_MAX_TEXT, &pressure, &len, NULL);
		wanted = ours(d, program, n, dt_s);
		d->ours_s += d->other.begun ? wanted.wanted * dt_s : 0.0;
		other_load_sample(&d->other, stat, pressure, wanted, dt_s);
		d->at_s = now_s;
	}
	free(stat);
	free(pressure);
	return other_load_processes(&d->other);
}

size_t demand_threads(const struct demand *d, pid_t pid)
{
	for (size_t i = 0; i < d->n_roots; i++) {
		if (d->root[i].pid == pid)
			return d->root[i].threads;
	}
	return 0;
}

void demand_leaves(struct demand *d, pid_t pid)
{
	struct walk w = { 0 };
	double more_s = ran_s(d, pid, visit(&w, pid, pid), INFINITY);

	d->owed_s += more_s;
	d->owed_ran_s += more_s;
	if (!w.failed)
		d->owed_s += waited_s(d, &w);
	free(w.task);
}

void demand_left(struct demand *d, pid_t pid, double cpu_s)
{
	struct demand_root *r = pid > 0 && cpu_s > 0.0 ? root_of(d, pid) : NULL;
	double more_s;

	if (!r)
		return;
	more_s = fmax(0.0, cpu_s - r->cpu_s);
	d->owed_ran_s += more_s;
	/* while it was not looked at, it waited as much for each second on a cpu as before */
	d->owed_s += more_s * (r->cpu_s > 0.0 ? 1.0 + r->waited_s / r->cpu_s : 1.0);
	r->cpu_s = fmax(r->cpu_s, cpu_s);
}

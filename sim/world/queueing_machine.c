/* The events of the machine: disks, cores, the start and end of jobs. */
#include "sim/world/queueing_machine.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "sim/world/queueing_machine_internal.h"

#define NONE QMACHINE_NONE
#define NS_PER_S 1e9
#define PROCESS_STREAM 0x70726f63 /* process k draws from stream PROCESS_STREAM + k of its job's seed */

/* ---- a node ---- */

static void tell(const struct qmachine *m, enum qmachine_what what, uint32_t process)
{
	const struct qmachine_process *p = &m->process[process];
	uint32_t number = 0;

	if (!m->params.hook)
		return;
	for (uint32_t k = m->job[p->job].first; k != process; k = m->process[k].sibling)
		number++;
	m->params.hook(m->params.owner, m->now_s, what, p->node, m->job[p->job].id, number);
}

/* The node's next event may be another one now: plays the tournament on its way to the top again. */
static void replay_tree(struct qmachine *m, uint32_t i)
{
	struct qmachine_node *n = &m->node[i];

	n->next_s = n->disk_done_s < n->cpu_done_s ? n->disk_done_s : n->cpu_done_s;
	n->next_s = n->device_done_s < n->next_s ? n->device_done_s : n->next_s;
	for (uint32_t at = (m->n_leaves + i) / 2; at >= 1; at /= 2) {
		uint32_t left = m->tree[2 * at], right = m->tree[2 * at + 1];

		m->tree[at] = m->node[right].next_s < m->node[left].next_s ? right : left;
	}
}

static void settle(struct qmachine_node *n, double at_s)
{
	double dt = at_s - n->clock_s;

	n->attained_s += dt * n->rate;
	n->busy_s += dt * n->cores_busy;
	n->clock_s = at_s;
}

/* The number of processes at the cores has changed; everything is settled. */
static void share_cores(const struct qmachine *m, struct qmachine_node *n)
{
	double there = (double)n->cpu.n, cores = m->params.node_cores, left_s;

	if (!n->cpu.n) {
		n->attained_s = n->rate = n->cores_busy = 0.0; /* small clocks have small rounding errors */
		n->cpu_done_s = INFINITY;
		return;
	}
	left_s = heap_top(&n->cpu)->key - n->attained_s;
	left_s = left_s > 0.0 ? left_s : 0.0;
	if (there <= cores) {
		n->rate = 1.0;
		n->cores_busy = there;
		n->cpu_done_s = n->clock_s + left_s;
	} else {
		n->rate = cores / there;
		n->cores_busy = cores;
		n->cpu_done_s = n->clock_s + left_s * there / cores;
	}
}

static double drifted(const struct qmachine *m)
{
	return m->now_s >= m->params.drift_at_s ? 1.0 + m->params.drift : 1.0;
}

static double draw(const struct qmachine *m, struct rng *rng)
{
	switch (m->params.law) {
	case WORLD_DISK_CONSTANT: return 1.0;
	case WORLD_DISK_MEASURED: return m->params.measured[rng_below(rng, (uint32_t)m->params.n_measured)];
	default: return rng_exponential(rng);
	}
}

static void serve_first(struct qmachine *m, struct qmachine_node *n)
{
	struct qmachine_process *p;

	if (n->disk_first == NONE) {
		n->disk_done_s = INFINITY;
		return;
	}
	p = &m->process[n->disk_first];
	n->disk_done_s = m->now_s + m->job[p->job].disk_s * drifted(m) * draw(m, &p->rng);
}

static void enter_cpu(struct qmachine *m, uint32_t process)
{
	const struct qmachine_process *p = &m->process[process];
	struct qmachine_node *n = &m->node[p->node];
	int rc;

	settle(n, m->now_s);
	/* room was made when the process was placed here */
	rc = heap_push(&n->cpu, n->attained_s + m->job[p->job].compute_s * drifted(m), process);
	assert(!rc);
	(void)rc;
	share_cores(m, n);
	tell(m, QMACHINE_AT_CPU, process);
}

/* No other job uses its devices: it is done after their time, whatever else runs. */
static void enter_device(struct qmachine *m, uint32_t process)
{
	const struct qmachine_process *p = &m->process[process];
	struct qmachine_node *n = &m->node[p->node];
	/* room was made when the process was placed here */
	int rc = heap_push(&n->device, m->now_s + m->job[p->job].device_s * drifted(m), process);

	assert(!rc);
	(void)rc;
	n->device_done_s = heap_top(&n->device)->key;
	tell(m, QMACHINE_AT_DEVICE, process);
}

static void enter_disk(struct qmachine *m, uint32_t process)
{
	struct qmachine_process *p = &m->process[process];
	struct qmachine_node *n = &m->node[p->node];

	p->behind = NONE;
	tell(m, QMACHINE_AT_DISK, process);
	if (n->disk_first != NONE) {
		m->process[n->disk_last].behind = process;
		n->disk_last = process;
		return;
	}
	n->disk_first = n->disk_last = process;
	serve_first(m, n);
}

static void begin_cycle(struct qmachine *m, uint32_t process)
{
	if (m->job[m->process[process].job].disk_s > 0.0)
		enter_disk(m, process);
	else
		enter_cpu(m, process);
	replay_tree(m, m->process[process].node);
}

/* ---- jobs ---- */

static void pass_time(struct qmachine *m)
{
	double dt = m->now_s - m->changed_s;

	m->processes_s += (double)m->n_processes * dt;
	m->jobs_s += (double)m->n_jobs * dt;
	m->changed_s = m->now_s;
	if (!m->n_jobs)
		m->processes_s = m->jobs_s = 0.0;
}

/* Rounding may put a mean a hair below what the job itself brings. */
static double mean_of(double integral, double duration, double own)
{
	return duration > 0.0 ? fmax(own, integral / duration) : own;
}

static void end_job(struct qmachine *m, uint32_t index)
{
	struct qmachine_task *j = &m->job[index];
	double duration = m->now_s - j->start_s;
	uint32_t last = j->first;

	pass_time(m);
	m->ended[m->n_ended++] = (struct qmachine_end){
		.id = j->id,
		.at_s = m->now_s,
		.processes = mean_of(m->processes_s - j->processes_s, duration, j->cpus),
		.njobs = mean_of(m->jobs_s - j->jobs_s, duration, 1.0),
		.tag = j->tag,
	};
	m->n_jobs--;
	m->n_processes -= j->cpus;
	while (m->process[last].sibling != NONE)
		last = m->process[last].sibling;
	m->process[last].sibling = m->free_process;
	m->free_process = j->first;
	j->first = m->free_job;
	m->free_job = index;
	m->events++;
}

static void pass_barrier(struct qmachine *m, struct qmachine_task *j)
{
	if (++j->at_barrier < j->cpus)
		return;
	j->at_barrier = 0;
	for (uint32_t k = j->first; k != NONE; k = m->process[k].sibling)
		begin_cycle(m, k);
}

static void end_cycle(struct qmachine *m, uint32_t process)
{
	struct qmachine_process *p = &m->process[process];
	struct qmachine_task *j = &m->job[p->job];

	if (--p->left) {
		if (m->params.barrier)
			pass_barrier(m, j);
		else
			begin_cycle(m, process);
		return;
	}
	m->node[p->node].n_processes--;
	if (--j->running == 0)
		end_job(m, p->job);
}

/* ---- events ---- */

static double next_event_s(const struct qmachine *m)
{
	return m->node[m->tree[1]].next_s;
}

static void end_disk(struct qmachine *m, struct qmachine_node *n)
{
	uint32_t process = n->disk_first;

	n->disk_first = m->process[process].behind;
	tell(m, QMACHINE_DISK_DONE, process);
	serve_first(m, n);
	enter_cpu(m, process);
}

static void end_cpu(struct qmachine *m, struct qmachine_node *n)
{
	struct heap_entry e;

	heap_pop(&n->cpu, &e);
	settle(n, m->now_s);
	n->attained_s = e.key; /* what it is but for rounding: so those of equal need leave together */
	share_cores(m, n);
	tell(m, QMACHINE_CPU_DONE, e.payload);
	if (m->job[m->process[e.payload].job].device_s > 0.0)
		enter_device(m, e.payload);
	else
		end_cycle(m, e.payload);
}

static void end_device(struct qmachine *m, struct qmachine_node *n)
{
	struct heap_entry e;

	heap_pop(&n->device, &e);
	n->device_done_s = n->device.n ? heap_top(&n->device)->key : INFINITY;
	tell(m, QMACHINE_DEVICE_DONE, e.payload);
	end_cycle(m, e.payload);
}

static void step(struct qmachine *m)
{
	uint32_t i = m->tree[1];
	struct qmachine_node *n = &m->node[i];

	m->now_s = n->next_s;
	m->events++;
	if (n->device_done_s < n->disk_done_s && n->device_done_s < n->cpu_done_s)
		end_device(m, n);
	else if (n->disk_done_s <= n->cpu_done_s)
		end_disk(m, n);
	else
		end_cpu(m, n);
	replay_tree(m, i);
}

static uint32_t emptiest_node(const struct qmachine *m)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < m->params.nodes; i++)
		if (m->node[i].n_processes < m->node[best].n_processes)
			best = i;
	return best;
}

static uint32_t take_process(struct qmachine *m)
{
	uint32_t k = m->free_process;

	if (k == NONE)
		return (uint32_t)m->n_slots++;
	m->free_process = m->process[k].sibling;
	return k;
}

/* All processes of the job, on the nodes with the fewest; room for them at the cores. */
static int place(struct qmachine *m, uint32_t index, const struct qmachine_job *j, struct err *err)
{
	uint32_t *link = &m->job[index].first;

	*link = NONE;
	for (uint32_t c = 0; c < j->cpus; c++) {
		uint32_t at = emptiest_node(m), k;

		if (heap_reserve(&m->node[at].cpu, m->node[at].n_processes + 1) ||
		    (j->device_s > 0.0 && heap_reserve(&m->node[at].device, m->node[at].n_processes + 1)))
			return err_nomem(err, "%u processes of a node", m->node[at].n_processes + 1);
		k = take_process(m);
		m->process[k] = (struct qmachine_process){
			.job = index,
			.node = at,
			.behind = NONE,
			.sibling = NONE,
			.left = j->cycles,
			.rng = rng_stream(j->seed, PROCESS_STREAM + (uint64_t)c),
		};
		m->node[at].n_processes++;
		*link = k;
		link = &m->process[k].sibling;
	}
	return 0;
}

static void take_back(struct qmachine *m, uint32_t index)
{
	for (uint32_t k = m->job[index].first, next; k != NONE; k = next) {
		next = m->process[k].sibling;
		m->node[m->process[k].node].n_processes--;
		m->process[k].sibling = m->free_process;
		m->free_process = k;
	}
	m->job[index].first = m->free_job;
	m->free_job = index;
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

int qmachine_start(struct qmachine *m, double now_s, const struct qmachine_job *j, struct err *err)
{
	uint32_t index;
	int rc;

	if (!(j->compute_s > 0.0 && isfinite(j->compute_s) && j->disk_s >= 0.0 && isfinite(j->disk_s)) ||
	    !(j->device_s >= 0.0 && isfinite(j->device_s)) || !j->cpus || !j->cycles || !isfinite(now_s))
		return err_fail(
			err, ERR_ARG,
			"job %llu: %u cpus, %g s computing, %g s at the disk, %g s at devices, at %g s",
			(unsigned long long)j->id, j->cpus, j->compute_s, j->disk_s, j->device_s, now_s);
	while (next_event_s(m) <= now_s)
		step(m);
	m->now_s = fmax(m->now_s, now_s);
	/* free slots are used again before new ones are; a job that has ended is in its own list */
	rc = qmachine_reserve_slots(m, larger(m->n_slots, m->n_processes + j->cpus),
				    larger(m->n_job_slots, m->n_jobs + 1), m->n_jobs + m->n_ended + 1, err);
	if (rc)
		return rc;
	index = m->free_job;
	if (index == NONE)
		index = (uint32_t)m->n_job_slots++;
	else
		m->free_job = m->job[index].first;
	rc = place(m, index, j, err);
	if (rc) {
		take_back(m, index);
		return rc;
	}
	pass_time(m);
	m->job[index] = (struct qmachine_task){
		.id = j->id,
		.cpus = j->cpus,
		.running = j->cpus,
		.first = m->job[index].first,
		.compute_s = j->compute_s,
		.disk_s = j->disk_s,
		.device_s = j->device_s,
		.start_s = m->now_s,
		.processes_s = m->processes_s,
		.jobs_s = m->jobs_s,
		.tag = j->tag,
	};
	m->n_jobs++;
	m->n_processes += j->cpus;
	m->events++;
	for (uint32_t k = m->job[index].first; k != NONE; k = m->process[k].sibling)
		begin_cycle(m, k);
	return 0;
}

/* ---- ends ---- */

static double nanosecond_of(double at_s)
{
	return ceil(at_s * NS_PER_S);
}

double qmachine_next_s(struct qmachine *m)
{
	double last_ns;

	while (!m->n_ended && m->n_jobs)
		step(m);
	if (!m->n_ended)
		return INFINITY;
	last_ns = nanosecond_of(m->ended[0].at_s);
	while (next_event_s(m) * NS_PER_S <= last_ns)
		step(m);
	return m->ended[0].at_s;
}

bool qmachine_end(struct qmachine *m, struct qmachine_end *out)
{
	size_t first = 0;
	double last_ns;

	if (qmachine_next_s(m) == INFINITY)
		return false;
	last_ns = nanosecond_of(m->ended[0].at_s);
	for (size_t i = 1; i < m->n_ended; i++)
		if (m->ended[i].at_s * NS_PER_S <= last_ns && m->ended[i].id < m->ended[first].id)
			first = i;
	*out = m->ended[first];
	m->n_ended--;
	memmove(&m->ended[first], &m->ended[first + 1], (m->n_ended - first) * sizeof *m->ended);
	return true;
}

double qmachine_busy_s(const struct qmachine *m)
{
	double sum = 0.0;

	for (uint32_t i = 0; i < m->params.nodes; i++) {
		const struct qmachine_node *n = &m->node[i];

		sum += n->busy_s + (m->now_s - n->clock_s) * n->cores_busy;
	}
	return sum;
}

uint64_t qmachine_events(const struct qmachine *m)
{
	return m->events;
}

/* Making a machine, room for its jobs, copies. */
#include <stdlib.h>
#include <string.h>
#include <math.h>

#include "common/mem.h"
#include "sim/world/queueing_machine_internal.h"

int qmachine_new(const struct qmachine_params *p, struct qmachine **out, struct err *err)
{
	struct qmachine *m;

	if (!(p->node_cores > 0.0) || p->nodes < 1 || p->nodes > CLUSTER_MAX_NODES)
		return err_fail(err, ERR_ARG, "%u nodes of %g cores: need 1 to %d and more than 0", p->nodes,
				p->node_cores, CLUSTER_MAX_NODES);
	m = mem_calloc(1, sizeof *m);
	if (!m)
		return err_nomem(err, "a machine");
	m->params = *p;
	m->free_process = m->free_job = QMACHINE_NONE;
	for (m->n_leaves = 1; m->n_leaves < p->nodes;)
		m->n_leaves *= 2;
	m->node = mem_calloc(p->nodes + 1,
			     sizeof *m->node); /* the last one stands for no node and never has an event */
	m->tree = mem_calloc(2 * (size_t)m->n_leaves, sizeof *m->tree);
	if (!m->node || !m->tree) {
		qmachine_free(m);
		return err_nomem(err, "%u nodes", p->nodes);
	}
	for (uint32_t i = 0; i <= p->nodes; i++) {
		struct qmachine_node *n = &m->node[i];

		n->next_s = n->disk_done_s = n->cpu_done_s = n->device_done_s = INFINITY;
		n->disk_first = n->disk_last = QMACHINE_NONE;
	}
	for (uint32_t i = 0; i < m->n_leaves; i++)
		m->tree[m->n_leaves + i] = i < p->nodes ? i : p->nodes;
	for (uint32_t i = m->n_leaves - 1; i >= 1; i--) /* all are equal now: the left one wins */
		m->tree[i] = m->tree[2 * i];
	*out = m;
	return 0;
}

void qmachine_free(struct qmachine *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; m->node && i < m->params.nodes; i++) {
		heap_release(&m->node[i].cpu);
		heap_release(&m->node[i].device);
	}
	free(m->node);
	free(m->tree);
	free(m->process);
	free(m->job);
	free(m->ended);
	free(m);
}

static int grow(void *array, size_t *cap, size_t need, size_t size)
{
	void *p;

	if (need <= *cap)
		return 0;
	memcpy(&p, array, sizeof p);
	if (mem_grow(&p, cap, need, size))
		return -1;
	memcpy(array, &p, sizeof p);
	return 0;
}

int qmachine_reserve_slots(struct qmachine *m, size_t processes, size_t jobs, size_t ended, struct err *err)
{
	if (processes < QMACHINE_NONE && jobs < QMACHINE_NONE &&
	    !grow(&m->process, &m->process_cap, processes, sizeof *m->process) &&
	    !grow(&m->job, &m->job_cap, jobs, sizeof *m->job) &&
	    !grow(&m->ended, &m->ended_cap, ended, sizeof *m->ended))
		return 0;
	return err_nomem(err, "%zu processes of %zu jobs", processes, jobs);
}

int qmachine_reserve(struct qmachine *m, const struct qmachine *like, struct err *err)
{
	int rc = qmachine_reserve_slots(m, like->n_slots, like->n_job_slots, like->n_jobs + like->n_ended,
					err);

	for (uint32_t i = 0; i < m->params.nodes && !rc; i++)
		if (heap_reserve(&m->node[i].cpu, like->node[i].n_processes) ||
		    (like->node[i].device.cap && heap_reserve(&m->node[i].device, like->node[i].n_processes)))
			rc = err_nomem(err, "%u processes of a node", like->node[i].n_processes);
	return rc;
}

/* There is room. */
static struct heap copy_heap(struct heap to, const struct heap *from)
{
	to.n = from->n;
	to.pushes = from->pushes;
	if (to.cap && from->n)
		memcpy(to.entry, from->entry, from->n * sizeof *to.entry);
	return to;
}

int qmachine_copy(struct qmachine *to, const struct qmachine *from, struct err *err)
{
	struct qmachine kept;
	int rc = to == from ? 0 : qmachine_reserve(to, from, err);

	if (rc || to == from)
		return rc;
	kept = *to;
	*to = *from;
	to->params = kept.params;
	to->node = kept.node;
	to->tree = kept.tree;
	to->process = kept.process;
	to->process_cap = kept.process_cap;
	to->job = kept.job;
	to->job_cap = kept.job_cap;
	to->ended = kept.ended;
	to->ended_cap = kept.ended_cap;
	for (uint32_t i = 0; i < to->params.nodes; i++) {
		struct heap cpu = to->node[i].cpu, device = to->node[i].device;

		to->node[i] = from->node[i];
		to->node[i].cpu = copy_heap(cpu, &from->node[i].cpu);
		to->node[i].device = copy_heap(device, &from->node[i].device);
	}
	memcpy(to->tree, from->tree, 2 * (size_t)to->n_leaves * sizeof *to->tree);
	if (from->n_slots)
		memcpy(to->process, from->process, from->n_slots * sizeof *to->process);
	if (from->n_job_slots)
		memcpy(to->job, from->job, from->n_job_slots * sizeof *to->job);
	if (from->n_ended)
		memcpy(to->ended, from->ended, from->n_ended * sizeof *to->ended);
	return 0;
}

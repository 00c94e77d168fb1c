/* Jobs in an order, with the questions that every decision asks: which job stands at a position, at which
 * position a job stands, the first job behind a position with a later turn or with few enough cpus, and sums
 * over the first n jobs. Each question, insertion and removal takes a number of steps that grows with the
 * logarithm of the number of jobs.
 *
 * It is a treap (Aragon and Seidel, 1989): a search tree by position, and a heap by a number drawn for each
 * node. The numbers are drawn from a counter. The shape of the tree decides the time only: what is kept of a
 * subtree are whole numbers, minima and maxima, so answers do not depend on the shape.
 *
 * A job is named by its place in a table. Several orders share one table of nodes, because a job stands in
 * one order at a time; an order is the place of its root. All memory is taken at the beginning. */
#ifndef SCHEDULER_CORE_JOB_ORDER_H
#define SCHEDULER_CORE_JOB_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_ORDER_NONE UINT32_MAX
#define JOB_ORDER_NEVER INT64_MAX

struct order_item {                   /* what an order knows of a job */
	int64_t turn_ns;              /* by priority, then by turn: those with a later turn stand behind */
	int64_t wake_ns;              /* it asks to be looked at from then on; JOB_ORDER_NEVER */
	uint64_t slot_ns;             /* slots x time that it will take */
	uint32_t slot_cpus;
	uint32_t cpus, devices;
	int32_t priority;
	bool by_chance;
	bool unknown;                 /* its work is not known */
};

struct order_sum {                    /* over some jobs */
	unsigned __int128 slot_ns;
	uint64_t slot_cpus, cpus;
	uint32_t n, n_by_chance, n_unknown;
};

void order_sum_add(struct order_sum *to, const struct order_sum *s);

struct order_node;
struct job_order {                    /* all zero: room for none */
	struct order_node *node;
	uint64_t draws;
};

int job_order_init(struct job_order *o, size_t max_jobs); /* 0, or -1 without memory */
void job_order_release(struct job_order *o);

/* `position`: how many of the order at *root go before it. The job must not be in an order yet. */
void job_order_insert(struct job_order *o, uint32_t *root, size_t position, uint32_t place,
		      const struct order_item *item);
void job_order_remove(struct job_order *o, uint32_t *root, uint32_t place);
void job_order_change(struct job_order *o, uint32_t place, const struct order_item *item);

size_t job_order_size(const struct job_order *o, uint32_t root);
size_t job_order_position(const struct job_order *o, uint32_t place); /* in the order it stands in */
uint32_t job_order_at(const struct job_order *o, uint32_t root, size_t position); /* below the size */
struct order_sum job_order_sum(const struct job_order *o, uint32_t root, size_t n); /* of the first n */

/* The position of the first from `from` on for which something holds; the size of the order: there is none.
 * */
size_t job_order_later(const struct job_order *o, uint32_t root, size_t from, int priority, int64_t turn_ns);
/* with at most so many cpus; `plain`: and no devices */
size_t job_order_narrow(const struct job_order *o, uint32_t root, size_t from, uint64_t most_cpus,
			bool plain);
size_t job_order_below(const struct job_order *o, uint32_t root); /* its priority is below 0 */
size_t job_order_not_by_chance(const struct job_order *o, uint32_t root);
/* wake_ns has come */
size_t job_order_woken(const struct job_order *o, uint32_t root, size_t from, int64_t now_ns);

/* Jobs of one tenant on the scale of standings: a job behind others with `cpus` cpus is at
 * start + step x cpus. How many of the jobs [from, to) are below `at`, or at it with `including`; cpus count
 * from `from` on. */
struct order_scale { double start, step; };
size_t job_order_until(const struct job_order *o, uint32_t root, size_t from, size_t to,
		       const struct order_scale *scale, double at, bool including);

#endif

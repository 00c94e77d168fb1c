/* The policies of a comparison: those of scheduler/core by their names, and those that only a simulation
 * has: `greedy-oracle`, `priced-oracle`, `optimum` (optimum.h), queues with the paper's models
 * (brain_queue.c), and the best fixed batch. */
#ifndef SIM_REPLAY_POLICIES_H
#define SIM_REPLAY_POLICIES_H

#include <stdbool.h>

#include "common/err.h"
#include "scheduler/core/policy/policy.h"

#define SIM_MAX_POLICIES 32
#define SIM_POLICY_NAME 240 /* with the names of all layers that are left out */

enum sim_queue { SIM_QUEUE_NONE, SIM_QUEUE_FIFO, SIM_QUEUE_EDF, SIM_QUEUE_WAITS }; /* brain_queue.c */

struct sim_policy {
	char name[SIM_POLICY_NAME];   /* as given: "fixed:128" */
	const char *title;
	bool oracle, optimum;
	bool priced;                  /* an oracle that charges for capacity, as postrider does */
	bool old_name;                /* given as `oracle`, which greedy-oracle was called */
	enum sim_queue queue;         /* its choice is courier's then */
	bool best_fixed;              /* fixed:best: the comparison finds the batch on a pilot */
	struct policy_choice choice;  /* of the others */
};
/* The name of today for the old name `oracle`; every other text as it is. */
const char *sim_policy_name(const char *text);
int sim_policy_parse(const char *text, struct sim_policy *out, struct err *err);
/* "courier,postrider,greedy-oracle"; ERR_ARG: an unknown one, or one twice. */
int sim_policies_parse(const char *list, struct sim_policy *out, size_t max, size_t *out_n, struct err *err);

#endif

/* A decision object of the protocol as text: a table of the candidates with the reasons why they were not
 * chosen. Used by submit and explain. */
#ifndef SCHEDULER_CLI_CLIENT_DECISION_VIEW_H
#define SCHEDULER_CLI_CLIENT_DECISION_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "common/json/json.h"
#include "common/strbuf.h"
#include "scheduler/core/alternatives.h"

struct candidate_view { /* NaN: not known */
	double batch, epochs, lr, wait_s, wait_upper_s, time_s, upper_s, accuracy, chance, cost, memory_mb,
		delays_s, headroom_s;
	const char *breaks, *behind; /* jobs; NULL: none */
	bool feasible, extrapolated;
	struct decide_out_of_range out_of_range; /* what makes it extrapolated */
	const struct json *reasons;
};

struct decision_view { /* borrows from the JSON */
	const char *at, *when, *policy, *model;
	double confidence, slo_s, smallest_slo_s, took_us;
	double accuracy_error; /* within which accuracies are equal; NaN: not known */
	double price;          /* of a process-second, in accuracy; NaN: none */
	double value;          /* of the job; NaN: the usual */
	bool costs;            /* a candidate costs other jobs something */
	double other_load, other_factor; /* processes of other programs, and what they do to the time */
	const struct json *candidates;
	const struct json *failing;  /* batches that were left out because runs with them failed */
	size_t n_candidates;
	long chosen;                 /* -1: none */
	struct candidate_view taken; /* the chosen one */
	struct alternatives beside;  /* what it says beside the choice */
	struct candidate_view offer; /* what it could take without a promise; its chance is NaN: no offer */
};

bool decision_view_read(const struct json *v, struct decision_view *out); /* false: it is not a decision */
/* "other programs (2.1 processes) make it 1.9 times slower"; nothing where there are none. */
void decision_view_other(const struct decision_view *d, const char *before, struct strbuf *out);
/* "capacity costs 0.0003 of accuracy a process-second ...", and what the job is worth; nothing where capacity
 * has no price, and the job the usual value. */
void decision_view_price(const struct decision_view *d, struct strbuf *out);
bool candidate_view_read(const struct json *v, struct candidate_view *out);

/* No candidate can be taken, with any limit or without one. */
bool decision_view_impossible(const struct decision_view *d);

/* A phrase for a reason code; an unknown code is printed as it is. */
void decision_reason(const struct decision_view *d, const struct candidate_view *k, const char *code,
                     struct strbuf *out);
/* What is outside the training table: the column, its value and its range there. */
void decision_out_of_range(const struct candidate_view *k, struct strbuf *out);
/* "60 % chance with batch 128" behind the words before it; there is an offer. */
void decision_offer(const struct decision_view *d, const char *before, struct strbuf *out);
/* Of very many candidates (batches times epochs) only the important ones are shown, unless `every`: the
 * chosen one and its neighbours, the ends of each batch, and where the feasible ones begin and end. */
void decision_view_table(const struct decision_view *d, struct strbuf *out, bool colour, bool every);

#endif

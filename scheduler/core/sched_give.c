/* A running job that left its epochs open gives time back: it ends after an earlier epoch if the jobs that
 * run and wait, and those to come, gain more than it loses.
 *
 * The machine is played as it is, and again with less work for this job. What the others gain is the sum of
 * their values x accuracies x what their chances rise by; later ones gain the price of the capacity that is
 * freed (price.h). What the job loses is value x accuracy, by the model, of the epochs that are left out. An
 * end cannot be taken back and the chances are estimates, so the gain has to be larger by the noise of
 * accuracies, and a job that runs or waits has to have a part in it. */
#include <math.h>

#include "scheduler/core/sched_internal.h"

#define MOST_ENDS 8 /* epochs to end after that are looked at, the nearest first */

struct giver {
	struct live *j;
	double done, epochs; /* that it has behind it, and would have in all */
	double left_s; /* work of the epochs between them */
	double end[MOST_ENDS], accuracy[MOST_ENDS]; /* the ends looked at, and what is left with them */
	size_t n;
};

/* The epochs after which it may end, from now on: those it was submitted with, the one it runs to last. */
static size_t find_ends(struct giver *g)
{
	const struct sched_request *r = &g->j->r;

	for (size_t i = 0; i < r->n_epochs && g->n < MOST_ENDS - 1; i++)
		if (r->epochs[i] >= g->done && r->epochs[i] < g->epochs)
			g->end[g->n++] = r->epochs[i];
	g->end[g->n] = g->epochs;
	return g->n;
}

/* What the model expects with each of the ends; false: nothing. */
static bool find_accuracies(struct sched *s, struct giver *g)
{
	const struct decision *d = live_ask_epochs(s, g->j, g->end, g->n + 1);

	for (size_t i = 0; d && i <= g->n; i++) {
		g->accuracy[i] = d->candidate[i].accuracy;
		if (!isfinite(g->accuracy[i]))
			return false;
	}
	return d;
}

/* What the jobs in the scene are worth with these ends, the giver's seat left out. */
static double worth_of_others(const struct sched *s, const struct fluid_times *t, size_t n, size_t seat)
{
	double sum = 0.0;

	for (size_t i = 0; i < n; i++) {
		const struct decide_neighbour *of = &s->neighbour[i];

		if (i != seat && !t[i].never && !isinf(of->until_s) && of->worth > 0.0)
			sum += of->worth * decide_chance_at(of, t[i].end_s);
	}
	return sum;
}

/* The best of the ends by what the system gets; g->n: as it is. */
static size_t best_end(struct sched *s, int64_t now_ns, const struct giver *g, double noise)
{
	const struct live *j = g->j;
	double price = price_now(s, now_ns, &j->r), value = price_value(&j->r), least, most = 0.0, others,
	       last_s;
	size_t streams, n, best = g->n, seat;
	const struct fluid_times *t;

	order_around(s, NULL);
	t = scene_play(s, now_ns, &streams);
	if (!t)
		return g->n;
	seat = j->seat;
	n = scene_seated(s) + streams + s->order.n;
	others = worth_of_others(s, t, n, seat);
	last_s = t[seat].end_s;
	least = value * noise;
	for (size_t i = 0; i < g->n; i++) {
		double gain, lost;

		t = scene_play_with(s, streams, seat,
				    g->left_s * (g->end[i] - g->done) / (g->epochs - g->done));
		if (!t)
			return g->n;
		gain = worth_of_others(s, t, n, seat) - others;
		lost = value * (g->accuracy[g->n] * decide_chance_at(&s->neighbour[seat], last_s) -
				g->accuracy[i] * decide_chance_at(&s->neighbour[seat], t[seat].end_s));
		if (!(gain > 0.0))
			continue;
		gain += price * j->r.cpus * (last_s - t[seat].end_s) - lost;
		if (gain > least && gain > most) {
			most = gain;
			best = i;
		}
	}
	return best;
}

uint32_t sched_gives_back(struct sched *s, int64_t now_ns, uint64_t id, uint32_t done, uint32_t epochs)
{
	uint32_t place;
	struct live *j = live_find(s, id, &place);
	struct giver g = { .j = j, .done = done, .epochs = epochs };
	size_t best;

	if (!j || !j->running || j->r.apart || !j->r.may_stop || !j->r.epochs || !s->rule.priced ||
	    !s->looks_ahead || s->policy.without & LAYER_GIVE_BACK || !done || done >= epochs ||
	    s->running.n + s->n_queued < 2 || (s->running.n + s->n_queued) * MOST_ENDS > DECIDE_PLAY_ALL)
		return 0;
	now_ns = live_clock(s, now_ns);
	g.left_s = live_left_s(s, j, now_ns);
	if (isnan(j->total_s) || !find_ends(&g) || !find_accuracies(s, &g))
		return 0;
	best = best_end(s, now_ns, &g, decide_accuracy_noise(model_of(s, &j->r)));
	return best < g.n ? (uint32_t)g.end[best] : 0;
}

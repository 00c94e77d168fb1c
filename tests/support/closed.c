/* Mean value analysis of closed networks.
 *
 * The exact solution climbs from the empty network to the full one, one customer at a time: what an arriving
 * customer finds is what the network with one customer less holds on average (Reiser, Lavenberg 1980). With
 * several classes that is a walk through all populations n <= N.
 *
 * A queue with m servers needs, besides its mean number Q, the probabilities p(j) of j = 0..m-2 customers:
 *   R_r(n) = D_r / m * (1 + Q(n - e_r) + sum over j of (m - 1 - j) p(j | n - e_r))
 *   p(j | n) = 1/j * sum over classes r of X_r(n) D_r p(j-1 | n - e_r),   j >= 1.
 * The 1980 paper takes p(0 | n) as what is left to 1. That difference loses all digits when the station is
 * busy, and the recursion multiplies the error by up to m^j / j!. Reiser (1981) found the product form
 *   p(0 | n) = p(0 | n - e_r) X_r(n) / X'_r(n),
 * X' the throughput of the network without the station: positive factors only, so that every digit stays.
 * It asks for the network without each subset of such stations too, hence CLOSED_MAX_SHARED. p(0) is
 * about exp(-m) at its smallest where it still matters, which a double holds up to CLOSED_MAX_SERVERS. */
#include "tests/support/closed.h"

#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "queueing/load.h"

static uint64_t at_most(uint64_t limit, uint64_t most)
{
	return limit && limit < most ? limit : most;
}

static unsigned servers_of(const struct closed_station *s)
{
	return s->servers ? s->servers : 1;
}

static bool is_shared(const struct closed_station *s)
{
	return s->kind == CLOSED_QUEUE && servers_of(s) > 1;
}

static double think_of(const struct closed_network *net, size_t r)
{
	return net->think_s ? net->think_s[r] : 0.0;
}

/* ---- checks ---- */

static int check_class(const struct closed_network *net, size_t r, struct err *err)
{
	double all_s = think_of(net, r), total;

	if (!(all_s >= 0.0 && isfinite(all_s)))
		return err_fail(err, ERR_ARG, "class %zu thinks for %g s: need a finite number >= 0", r,
				all_s);
	for (size_t k = 0; k < net->n_stations; k++) {
		double d = net->demand_s[r * net->n_stations + k];

		if (!(d >= 0.0 && isfinite(d)))
			return err_fail(err, ERR_ARG,
					"class %zu asks %g s of station %zu: need a finite number >= 0", r, d,
					k);
		all_s += d;
	}
	if (net->population[r] && !(all_s > 0.0))
		return err_fail(err, ERR_ARG, "class %zu has neither demand nor think time", r);
	/* a response is at most population x demand; the reciprocal is the largest throughput */
	total = all_s * CLOSED_MAX_POPULATION;
	if (net->population[r] && !(isfinite(total) && isfinite(CLOSED_MAX_POPULATION / all_s)))
		return err_fail(err, ERR_ARG,
				"class %zu has a cycle of %g s: too small or too large to compute with", r,
				all_s);
	return 0;
}

static int check_network(const struct closed_network *net, const struct closed_limits *limits,
			 struct err *err)
{
	static const struct closed_limits none;
	const struct closed_limits *l = limits ? limits : &none;
	size_t stations = at_most(l->stations, CLOSED_MAX_STATIONS);
	size_t classes = at_most(l->classes, CLOSED_MAX_CLASSES);
	uint64_t people = at_most(l->population, CLOSED_MAX_POPULATION), total = 0;

	if (net->n_stations < 1 || net->n_stations > stations)
		return err_fail(err, ERR_ARG, "%zu stations: need 1 to %zu", net->n_stations, stations);
	if (net->n_classes < 1 || net->n_classes > classes)
		return err_fail(err, ERR_ARG, "%zu classes: need 1 to %zu", net->n_classes, classes);
	for (size_t r = 0; r < net->n_classes; r++)
		total += net->population[r];
	if (total > people)
		return err_fail(err, ERR_ARG, "a population of %llu: at most %llu", (unsigned long long)total,
				(unsigned long long)people);
	for (size_t r = 0; r < net->n_classes; r++) {
		int rc = check_class(net, r, err);

		if (rc)
			return rc;
	}
	return 0;
}

/* ---- the solution ---- */

void closed_solution_release(struct closed_solution *s)
{
	if (!s)
		return;
	free(s->throughput_per_s); /* the one allocation; the others point into it */
	*s = (struct closed_solution){ 0 };
}

static int solution_init(struct closed_solution *s, const struct closed_network *net, struct err *err)
{
	size_t k = net->n_stations, c = net->n_classes;
	double *v = mem_calloc(2 * c + 2 * c * k + k, sizeof *v);

	if (!v)
		return err_nomem(err, "a network of %zu stations and %zu classes", k, c);
	*s = (struct closed_solution){ .n_stations = k, .n_classes = c };
	s->throughput_per_s = v;
	s->response_s = v + c;
	s->residence_s = v + 2 * c;
	s->number = v + 2 * c + c * k;
	s->utilisation = v + 2 * c + 2 * c * k;
	return 0;
}

/* From throughputs and residence times, everything else, by Little's law. */
static void solution_finish(struct closed_solution *s, const struct closed_network *net)
{
	size_t n = net->n_stations;

	for (size_t r = 0; r < net->n_classes; r++) {
		s->response_s[r] = 0.0;
		for (size_t k = 0; k < n; k++) {
			double servers = net->station[k].kind == CLOSED_DELAY ? 1.0
									      : servers_of(&net->station[k]);

			s->response_s[r] += s->residence_s[r * n + k];
			s->number[r * n + k] = s->throughput_per_s[r] * s->residence_s[r * n + k];
			s->utilisation[k] += s->throughput_per_s[r] * net->demand_s[r * n + k] / servers;
		}
	}
	for (size_t k = 0; k < n; k++) /* rounding may end a hair above 1 */
		if (net->station[k].kind == CLOSED_QUEUE)
			s->utilisation[k] = fmin(s->utilisation[k], 1.0);
}

/* ---- exact ---- */

struct walk {
	const struct closed_network *net;
	size_t n_states; /* product of (population + 1) */
	size_t stride[CLOSED_MAX_CLASSES]; /* of one customer in the index of a state */
	size_t n_shared;
	size_t shared[CLOSED_MAX_SHARED]; /* the stations with several servers */
	size_t row; /* cells of one state of one subnetwork */
	size_t first_p[CLOSED_MAX_SHARED]; /* where p(0) of a shared station lies in a row */
	size_t first_x; /* where the throughputs lie */
	double *cell; /* [subnetwork][state][row]: Q per station, p of the shared, X per class */
	double *residence_s; /* [class * n_stations + station], of the state at hand */
};
/* Subnetwork s has the shared stations whose bit is set in s; the last one is the whole network. */

static double *row_of(const struct walk *w, size_t s, size_t state)
{
	return w->cell + (s * w->n_states + state) * w->row;
}

/* Fills the sizes in; an error says what puts an exact solution out of reach. */
static int walk_measure(struct walk *w, const struct closed_network *net, const struct closed_limits *limits,
			struct err *err)
{
	size_t most = limits && limits->cells ? limits->cells : CLOSED_MAX_CELLS, room;

	*w = (struct walk){ .net = net, .n_states = 1, .row = net->n_stations };
	for (size_t k = 0; k < net->n_stations; k++) {
		unsigned m = servers_of(&net->station[k]);

		if (!is_shared(&net->station[k]))
			continue;
		if (m > CLOSED_MAX_SERVERS)
			return err_fail(err, ERR_ARG,
					"station %zu has %u servers: at most %d in an exact solution", k, m,
					CLOSED_MAX_SERVERS);
		if (w->n_shared == CLOSED_MAX_SHARED)
			return err_fail(err, ERR_ARG,
					"more than %d stations with several servers in an exact solution",
					CLOSED_MAX_SHARED);
		w->first_p[w->n_shared] = w->row;
		w->shared[w->n_shared++] = k;
		w->row += m - 1; /* p(0) to p(m-2) */
	}
	w->first_x = w->row;
	w->row += net->n_classes;
	room = (most / w->row) >> w->n_shared;
	for (size_t r = 0; r < net->n_classes; r++) {
		w->stride[r] = w->n_states;
		if ((size_t)net->population[r] + 1 > room / w->n_states)
			return err_fail(err, ERR_ARG,
					"an exact solution keeps more than %zu numbers: too many customers "
					"or classes",
					most);
		w->n_states *= (size_t)net->population[r] + 1;
	}
	return 0;
}

/* Seconds a customer of class r spends at station k, having found the state of `found` there. */
static double residence_s(const struct walk *w, size_t r, size_t k, const double *found)
{
	double d = w->net->demand_s[r * w->net->n_stations + k], ahead = 1.0 + found[k], m;
	size_t i = 0;

	if (w->net->station[k].kind == CLOSED_DELAY)
		return d;
	m = servers_of(&w->net->station[k]);
	if (m < 2.0)
		return d * ahead;
	while (w->shared[i] != k)
		i++;
	for (size_t j = 0; j + 2 <= (size_t)m; j++)
		ahead += (m - 1.0 - (double)j) * found[w->first_p[i] + j];
	return d / m * ahead;
}

static bool present(const struct walk *w, size_t s, size_t k)
{
	for (size_t i = 0; i < w->n_shared; i++)
		if (w->shared[i] == k)
			return s >> i & 1;
	return true;
}

/* p(0), p(1), ... of shared station i in a state with the given customers (n[r] of class r). */
static void shared_probabilities(const struct walk *w, size_t s, size_t i, size_t state, const uint32_t *n)
{
	const struct closed_network *net = w->net;
	size_t k = w->shared[i], m = servers_of(&net->station[k]), r = 0;
	double *p = row_of(w, s, state) + w->first_p[i];
	const double *x = row_of(w, s, state) + w->first_x;
	double without;

	while (!n[r])
		r++;
	without = row_of(w, s & ~((size_t)1 << i), state)[w->first_x + r];
	/* a class that would have nowhere else to be is always here */
	p[0] = isfinite(without) && without > 0.0
		       ? row_of(w, s, state - w->stride[r])[w->first_p[i]] * (x[r] / without)
		       : 0.0;
	for (size_t j = 1; j + 2 <= m; j++)
		p[j] = 0.0;
	for (r = 0; r < net->n_classes; r++) {
		double d = net->demand_s[r * net->n_stations + k];
		const double *found;

		if (!n[r] || !(d > 0.0)) /* its throughput may be infinite here, if it has no demand here */
			continue;
		found = row_of(w, s, state - w->stride[r]) + w->first_p[i];
		for (size_t j = 1; j + 2 <= m; j++)
			p[j] += x[r] * d * found[j - 1] / (double)j;
	}
}

/* One state of one subnetwork from the states with one customer less. */
static void walk_step(const struct walk *w, size_t s, size_t state, const uint32_t *n)
{
	const struct closed_network *net = w->net;
	size_t n_stations = net->n_stations;
	double *row = row_of(w, s, state);
	bool empty = state == 0;

	for (size_t r = 0; r < net->n_classes; r++) {
		double cycle_s = think_of(net, r);
		double *at = w->residence_s + r * n_stations;

		if (!n[r])
			continue; /* calloc'd: no throughput, no share of any Q */
		for (size_t k = 0; k < n_stations; k++) {
			at[k] = present(w, s, k) ? residence_s(w, r, k, row_of(w, s, state - w->stride[r]))
						 : 0.0;
			cycle_s += at[k];
		}
		/* infinite where this subnetwork has no place for the class; its Q is not used then */
		row[w->first_x + r] = cycle_s > 0.0 ? n[r] / cycle_s : INFINITY;
		for (size_t k = 0; k < n_stations; k++)
			row[k] += at[k] > 0.0 ? row[w->first_x + r] * at[k] : 0.0;
	}
	for (size_t i = 0; i < w->n_shared; i++) {
		if (!(s >> i & 1))
			continue;
		if (empty)
			row[w->first_p[i]] = 1.0;
		else
			shared_probabilities(w, s, i, state, n);
	}
}

static void walk_all(const struct walk *w)
{
	uint32_t n[CLOSED_MAX_CLASSES] = { 0 };

	for (size_t state = 0; state < w->n_states; state++) {
		for (size_t s = 0; s < (size_t)1 << w->n_shared;
		     s++) /* subsets come before their supersets */
			walk_step(w, s, state, n);
		for (size_t r = 0; r < w->net->n_classes; r++) {
			if (n[r] < w->net->population[r]) {
				n[r]++;
				break;
			}
			n[r] = 0;
		}
	}
}

static int solve_walk(struct walk *w, struct closed_solution *out, struct err *err)
{
	const struct closed_network *net = w->net;
	struct closed_solution s;
	const double *last;
	int rc = solution_init(&s, net, err);

	if (rc)
		return rc;
	w->cell = mem_calloc((w->n_states << w->n_shared) * w->row, sizeof *w->cell);
	if (!w->cell) {
		closed_solution_release(&s);
		return err_nomem(err, "%zu states of a closed network", w->n_states);
	}
	w->residence_s =
		s.residence_s; /* the last step taken is that of the whole network with all customers */
	walk_all(w);
	last = row_of(w, ((size_t)1 << w->n_shared) - 1, w->n_states - 1) + w->first_x;
	for (size_t r = 0; r < net->n_classes; r++)
		s.throughput_per_s[r] = last[r];
	free(w->cell);
	solution_finish(&s, net);
	s.exact = true;
	*out = s;
	return 0;
}

int closed_exact(const struct closed_network *net, const struct closed_limits *limits,
		 struct closed_solution *out, struct err *err)
{
	struct walk w;
	int rc = check_network(net, limits, err);

	if (!rc)
		rc = walk_measure(&w, net, limits, err);
	return rc ? rc : solve_walk(&w, out, err);
}

/* ---- approximate ---- */

/* Schweitzer's assumption: without one customer of a class, the others of the class are where they were, in
 * the same proportions. At a queue with m servers an arrival then waits for those who wait (Q less the busy
 * servers) and, if all servers are busy, for one of them. How often they are all busy is taken from the M/M/m
 * queue with the same utilisation, rho^(sqrt(2 (m + 1)) - 1) (Sakasegawa, Ann. Inst. Statist. Math. 29,
 * 1977). With m = 1 this is Schweitzer and Bard's own formula, D (1 + Q). */
static double approximate_residence_s(const struct closed_network *net, size_t r, size_t k,
				      const struct closed_solution *s)
{
	double d = net->demand_s[r * net->n_stations + k], found = 0.0, busy = 0.0, others = -1.0, m;

	if (net->station[k].kind == CLOSED_DELAY)
		return d;
	for (size_t c = 0; c < net->n_classes; c++) {
		double n = net->population[c], share = c == r ? (n - 1.0) / n : 1.0;

		found += share * s->number[c * net->n_stations + k];
		busy += share * s->throughput_per_s[c] * net->demand_s[c * net->n_stations + k];
		others += n;
	}
	m = servers_of(&net->station[k]);
	if (m < 2.0)
		return d * (1.0 + found);
	if (others < m)
		return d;
	busy = fmin(busy, m);
	return d + d / m * (fmax(found - busy, 0.0) + pow(busy / m, sqrt(2.0 * (m + 1.0)) - 1.0));
}

/* One turn of the fixed point; the largest change of a mean number, as a share of its population. */
static double approximate_turn(const struct closed_network *net, struct closed_solution *s)
{
	size_t n_stations = net->n_stations;
	double change = 0.0;

	for (size_t r = 0; r < net->n_classes; r++) {
		double cycle_s = think_of(net, r), *at = s->residence_s + r * n_stations;

		if (!net->population[r])
			continue;
		for (size_t k = 0; k < n_stations; k++) {
			at[k] = approximate_residence_s(net, r, k, s);
			cycle_s += at[k];
		}
		s->throughput_per_s[r] = net->population[r] / cycle_s;
		for (size_t k = 0; k < n_stations; k++) {
			double number = s->throughput_per_s[r] * at[k], *old = &s->number[r * n_stations + k];

			change = fmax(change, fabs(number - *old) / net->population[r]);
			*old = number; /* used at once by the classes after: one number, always the newest */
		}
	}
	return change;
}

int closed_approximate(const struct closed_network *net, const struct closed_limits *limits,
		       struct closed_solution *out, struct err *err)
{
	enum { MAX_TURNS = 100000 };
	struct closed_solution s;
	double change = INFINITY;
	int rc = check_network(net, limits, err);

	if (!rc)
		rc = solution_init(&s, net, err);
	if (rc)
		return rc;
	for (size_t r = 0; r < net->n_classes; r++) /* a start: everyone evenly spread */
		for (size_t k = 0; k < net->n_stations; k++)
			s.number[r * net->n_stations + k] = (double)net->population[r] /
							    (double)net->n_stations;
	for (int turn = 0; turn < MAX_TURNS && change > 1e-13; turn++)
		change = approximate_turn(net, &s);
	if (!(change <= 1e-9)) { /* far below what the approximation itself is off by */
		closed_solution_release(&s);
		return err_fail(err, ERR_NUMERIC, "the approximation of a closed network did not settle (%g)",
				change);
	}
	solution_finish(&s, net);
	*out = s;
	return 0;
}

int closed_solve(const struct closed_network *net, const struct closed_limits *limits,
		 struct closed_solution *out, struct err *err)
{
	struct walk w;
	int rc = check_network(net, limits, err);

	if (rc)
		return rc;
	if (!walk_measure(&w, net, limits, NULL))
		return solve_walk(&w, out, err);
	return closed_approximate(net, limits, out, err);
}

double closed_cycle_s(unsigned cores, uint32_t n, double compute_s, double disk_s)
{
	struct closed_station station[] = { { CLOSED_QUEUE, cores }, { CLOSED_QUEUE, 1 } };
	double demand_s[] = { compute_s, disk_s };
	struct closed_network net = {
		.n_stations = 2, .n_classes = 1, .station = station, .demand_s = demand_s, .population = &n
	};
	struct closed_solution s;
	double r;

	if (closed_exact(&net, NULL, &s, NULL))
		return NAN;
	r = s.response_s[0];
	closed_solution_release(&s);
	return r;
}

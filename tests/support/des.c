/* A small event simulator of queues: the truth that closed forms are compared with. See des.h. */
#include "tests/support/des.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/heap.h"
#include "common/mem.h"
#include "common/rng.h"

#define MAX_CUSTOMERS (1u << 24)
#define NOBODY UINT32_MAX /* as an event: the next arrival from outside */
#define N_BATCHES 30
#define T_29 2.756385904 /* Student's t: 99.5 % point with 29 degrees of freedom */

struct customer {
	double entered_s; /* the network */
	double reached_s; /* the station it is at */
	uint32_t at; /* station; n_stations: thinking */
	uint32_t next; /* in a queue or in the list of the free */
};

struct station {
	struct des_station s;
	uint32_t n; /* customers here */
	double changed_s; /* when n last changed */
	double number_area; /* integral of n, and of the servers in use */
	double busy_area;
	/* FCFS */
	uint32_t first, last; /* those who wait */
	/* PS */
	struct heap jobs; /* keyed by the attained service at which each one is done */
	double attained_s; /* by a job that was here from the start of this busy period */
	double rate; /* at which it grows */
	double next_s; /* when the first of the jobs is done; INFINITY: no job */
};

struct counts {
	double sum, batch[N_BATCHES];
};

struct des {
	const struct des_params *p;
	struct rng rng;
	double now_s;
	struct heap events;
	struct station station[DES_MAX_STATIONS];
	size_t n_stations, n_ps;
	size_t ps[DES_MAX_STATIONS];
	struct customer *customer;
	size_t n_customers, cap;
	uint32_t unused;
	uint64_t n_events;
	bool failed;
	/* results, from the end of the warm-up on */
	uint64_t warm_up, per_batch, done; /* customers */
	size_t n_batches;
	double began_s, batch_began_s;
	uint64_t waits;
	struct counts response, within, wait_within, residence[DES_MAX_STATIONS], pace;
};

/* ---- chance ---- */

static double draw_service_s(struct des *d, const struct des_station *s)
{
	double p, share;

	switch (s->law) {
	case DES_EXPONENTIAL: return s->service_s * rng_exponential(&d->rng);
	case DES_CONSTANT: return s->service_s;
	case DES_HYPER: break;
	}
	/* p S1 = (1 - p) S2 = S / 2, p = (1 + sqrt((c - 1) / (c + 1))) / 2 */
	p = 0.5 * (1.0 + sqrt((s->scv - 1.0) / (s->scv + 1.0)));
	share = rng_uniform(&d->rng) < p ? p : 1.0 - p;
	return s->service_s / (2.0 * share) * rng_exponential(&d->rng);
}

/* ---- stations ---- */

static void push(struct des *d, double at_s, uint32_t who)
{
	if (heap_push(&d->events, at_s, who))
		d->failed = true;
}

/* Brings the integrals up to now; to be called before n changes. */
static void account(struct des *d, struct station *s)
{
	double passed_s = d->now_s - s->changed_s;
	double in_use = (double)s->n * (s->s.kind == DES_PS ? s->s.processes : 1.0);

	s->number_area += (double)s->n * passed_s;
	s->busy_area += (in_use < s->s.servers ? in_use : s->s.servers) * passed_s;
	s->changed_s = d->now_s;
}

/* The rate after n changed, and with it the time of the next departure. */
static void ps_reschedule(struct des *d, struct station *s)
{
	const struct heap_entry *top = heap_top(&s->jobs);
	double fair;

	if (!top) {
		s->next_s = INFINITY;
		s->attained_s = 0.0; /* a busy period of its own keeps the digits */
		return;
	}
	fair = (double)s->s.servers / s->n;
	s->rate = fair < s->s.processes ? fair : s->s.processes;
	s->next_s = d->now_s + (top->key - s->attained_s) / s->rate;
}

static void start_service(struct des *d, struct station *s, uint32_t who)
{
	if (s == d->station && d->done >= d->warm_up) {
		d->wait_within.sum += d->now_s - d->customer[who].reached_s <= d->p->within_s;
		d->waits++;
	}
	push(d, d->now_s + draw_service_s(d, &s->s), who);
}

static void reach(struct des *d, uint32_t who, uint32_t at)
{
	struct station *s = &d->station[at];
	struct customer *c = &d->customer[who];

	c->at = at;
	c->reached_s = d->now_s;
	if (s->s.kind == DES_PS)
		s->attained_s += (d->now_s - s->changed_s) * s->rate * (s->n > 0);
	account(d, s);
	s->n++;
	if (s->s.kind == DES_PS) {
		if (heap_push(&s->jobs, s->attained_s + draw_service_s(d, &s->s), who))
			d->failed = true;
		ps_reschedule(d, s);
	} else if (s->n <= s->s.servers) {
		start_service(d, s, who);
	} else {
		c->next = NOBODY;
		if (s->first == NOBODY)
			s->first = who;
		else
			d->customer[s->last].next = who;
		s->last = who;
	}
}

/* ---- customers ---- */

static uint32_t customer_new(struct des *d)
{
	uint32_t who = d->unused;
	void *p = d->customer;

	if (who != NOBODY) {
		d->unused = d->customer[who].next;
		return who;
	}
	if (d->n_customers >= MAX_CUSTOMERS ||
	    mem_grow(&p, &d->cap, d->n_customers + 1, sizeof *d->customer)) {
		d->failed = true;
		return NOBODY;
	}
	d->customer = p;
	return (uint32_t)d->n_customers++;
}

static void enter(struct des *d, uint32_t who)
{
	d->customer[who].entered_s = d->now_s;
	reach(d, who, 0);
}

static void think(struct des *d, uint32_t who)
{
	d->customer[who].at = (uint32_t)d->n_stations;
	push(d, d->now_s + d->p->think_s * rng_exponential(&d->rng), who);
}

static void close_batch(struct des *d, struct counts *t, double count)
{
	t->batch[d->n_batches] = count > 0.0 ? t->sum / count : 0.0;
	t->sum = 0.0;
}

/* At the end of the warm-up what was counted so far is forgotten. */
static void begin_counting(struct des *d)
{
	d->began_s = d->batch_began_s = d->now_s;
	d->response.sum = d->within.sum = d->wait_within.sum = 0.0;
	d->waits = 0;
	for (size_t k = 0; k < d->n_stations; k++) {
		account(d, &d->station[k]);
		d->station[k].number_area = d->station[k].busy_area = 0.0;
		d->residence[k].sum = 0.0;
	}
}

static void end_batch(struct des *d)
{
	double n = (double)d->per_batch;

	close_batch(d, &d->response, n);
	close_batch(d, &d->within, n);
	close_batch(d, &d->wait_within, (double)d->waits);
	d->waits = 0;
	for (size_t k = 0; k < d->n_stations; k++)
		close_batch(d, &d->residence[k], n);
	d->pace.sum = n;
	close_batch(d, &d->pace, d->now_s - d->batch_began_s);
	d->batch_began_s = d->now_s;
	d->n_batches++;
}

static void leave(struct des *d, uint32_t who)
{
	struct customer *c = &d->customer[who];
	double response_s = d->now_s - c->entered_s;

	d->response.sum += response_s;
	d->within.sum += response_s <= d->p->within_s;
	d->done++;
	if (d->done == d->warm_up)
		begin_counting(d);
	else if (d->done > d->warm_up && (d->done - d->warm_up) % d->per_batch == 0)
		end_batch(d);
	if (d->p->arrivals_per_s > 0.0) {
		c->next = d->unused;
		d->unused = who;
	} else if (d->p->think_s > 0.0) {
		think(d, who);
	} else {
		enter(d, who);
	}
}

/* A customer's service at station s is over. */
static void depart(struct des *d, struct station *s, uint32_t who)
{
	uint32_t at = (uint32_t)(s - d->station);

	d->residence[at].sum += d->now_s - d->customer[who].reached_s;
	account(d, s);
	s->n--;
	if (s->s.kind == DES_PS) {
		ps_reschedule(d, s);
	} else if (s->first != NOBODY) {
		uint32_t next = s->first;

		s->first = d->customer[next].next;
		start_service(d, s, next);
	}
	if (at + 1 < d->n_stations)
		reach(d, who, at + 1);
	else
		leave(d, who);
}

/* ---- the loop ---- */

static void arrive(struct des *d)
{
	uint32_t who = customer_new(d);

	/* the arrival on top of the heap gives way to the next one: one sift for two */
	heap_replace(&d->events, d->now_s + rng_exponential(&d->rng) / d->p->arrivals_per_s, NOBODY);
	if (who != NOBODY)
		enter(d, who);
}

static void step(struct des *d)
{
	const struct heap_entry *top = heap_top(&d->events);
	double at_s = top ? top->key : INFINITY;
	struct station *sharing = NULL;
	struct heap_entry e;

	for (size_t i = 0; i < d->n_ps; i++) {
		struct station *s = &d->station[d->ps[i]];

		if (s->next_s < at_s) {
			at_s = s->next_s;
			sharing = s;
		}
	}
	d->now_s = at_s;
	d->n_events++;
	if (sharing) {
		heap_pop(&sharing->jobs, &e);
		sharing->attained_s = e.key;
		depart(d, sharing, e.payload);
	} else if (top->payload == NOBODY) {
		arrive(d);
	} else {
		heap_pop(&d->events, &e);
		if (d->customer[e.payload].at == d->n_stations)
			enter(d, e.payload);
		else
			depart(d, &d->station[d->customer[e.payload].at], e.payload);
	}
}

/* ---- beginning and end ---- */

static int check(const struct des_params *p, struct err *err)
{
	if (p->n_stations < 1 || p->n_stations > DES_MAX_STATIONS)
		return err_fail(err, ERR_ARG, "%zu stations: need 1 to %d", p->n_stations, DES_MAX_STATIONS);
	if (!(p->arrivals_per_s >= 0.0 && isfinite(p->arrivals_per_s) && p->think_s >= 0.0 &&
	      isfinite(p->think_s)))
		return err_fail(err, ERR_ARG, "%g arrivals/s, think time %g s: need finite numbers >= 0",
				p->arrivals_per_s, p->think_s);
	if (!(p->arrivals_per_s > 0.0) && (p->population < 1 || p->population > MAX_CUSTOMERS))
		return err_fail(err, ERR_ARG, "neither arrivals nor a population of 1 to %u", MAX_CUSTOMERS);
	for (size_t k = 0; k < p->n_stations; k++) {
		const struct des_station *s = &p->station[k];

		if (!(s->service_s > 0.0 && isfinite(s->service_s)))
			return err_fail(err, ERR_ARG, "station %zu: service of %g s: need more than 0", k,
					s->service_s);
		if (s->law == DES_HYPER && !(s->scv > 1.0 && isfinite(s->scv)))
			return err_fail(err, ERR_ARG,
					"station %zu: squared coefficient of variation %g: need more than 1",
					k, s->scv);
	}
	return 0;
}

static void set_up(struct des *d, const struct des_params *p)
{
	uint64_t per_customer = p->n_stations + (p->arrivals_per_s > 0.0 || p->think_s > 0.0);
	uint64_t customers = p->events / per_customer;

	*d = (struct des){ .p = p, .n_stations = p->n_stations, .unused = NOBODY };
	d->rng = rng_stream(p->seed, 0);
	d->warm_up = customers / 10 > 0 ? customers / 10 : 1;
	d->per_batch = customers * 9 / 10 / N_BATCHES > 0 ? customers * 9 / 10 / N_BATCHES : 1;
	for (size_t k = 0; k < p->n_stations; k++) {
		struct station *s = &d->station[k];

		*s = (struct station){ .s = p->station[k], .first = NOBODY, .next_s = INFINITY };
		s->s.servers += !s->s.servers;
		s->s.processes += !s->s.processes;
		if (s->s.kind == DES_PS)
			d->ps[d->n_ps++] = k;
	}
	if (p->arrivals_per_s > 0.0) {
		push(d, rng_exponential(&d->rng) / p->arrivals_per_s, NOBODY);
		return;
	}
	for (uint32_t i = 0; i < p->population && !d->failed; i++) {
		uint32_t who = customer_new(d);

		if (who == NOBODY)
			break;
		if (p->think_s > 0.0)
			think(d, who);
		else
			enter(d, who);
	}
}

static struct des_mean mean_of(const struct counts *t)
{
	double mean = 0.0, squares = 0.0;

	for (int i = 0; i < N_BATCHES; i++)
		mean += t->batch[i];
	mean /= N_BATCHES;
	for (int i = 0; i < N_BATCHES; i++)
		squares += (t->batch[i] - mean) * (t->batch[i] - mean);
	return (struct des_mean){ mean, T_29 * sqrt(squares / (N_BATCHES - 1) / N_BATCHES) };
}

static void report(struct des *d, struct des_result *out)
{
	*out = (struct des_result){ .events = d->n_events };
	out->response_s = mean_of(&d->response);
	out->within = mean_of(&d->within);
	out->wait_within = mean_of(&d->wait_within);
	out->throughput_per_s = mean_of(&d->pace);
	for (size_t k = 0; k < d->n_stations; k++) {
		account(d, &d->station[k]);
		out->residence_s[k] = mean_of(&d->residence[k]);
		out->number[k] = d->station[k].number_area / (d->now_s - d->began_s);
		out->busy[k] = d->station[k].busy_area / (d->now_s - d->began_s);
	}
}

int des_run(const struct des_params *params, struct des_result *out, struct err *err)
{
	struct des *d;
	int rc = check(params, err);

	if (rc)
		return rc;
	d = mem_alloc(sizeof *d);
	if (!d)
		return err_fail(err, ERR_NOMEM, "out of memory for a simulation");
	set_up(d, params);
	while (d->n_batches < N_BATCHES && !d->failed)
		step(d);
	if (d->failed)
		rc = d->n_customers >= MAX_CUSTOMERS
			     ? err_fail(err, ERR_UNSTABLE, "%zu customers at once: is the load below 1?",
					d->n_customers)
			     : err_fail(err, ERR_NOMEM, "out of memory for %zu customers", d->n_customers);
	else
		report(d, out);
	for (size_t k = 0; k < d->n_stations; k++)
		heap_release(&d->station[k].jobs);
	heap_release(&d->events);
	free(d->customer);
	free(d);
	return rc;
}

unsigned des_thrift(void)
{
	const char *san = getenv("SAN");

	return san && *san ? 25 : 1;
}

bool des_agrees(struct des_mean sim, double want, double share)
{
	double off = fabs(sim.mean - want);

	if (off <= DES_SURE * sim.half && sim.half <= DES_WIDEST * share * sqrt(des_thrift()) * fabs(want))
		return true;
	printf("# simulated %.6g +- %.3g, expected %.6g: off by %.2f %%\n", sim.mean, sim.half, want,
	       100.0 * off / fabs(want));
	return false;
}

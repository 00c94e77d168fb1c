/* The price of capacity: none where jobs do not harm each other, the mean of what the last arrivals cost the
 * others, faded when none comes; and what a decision does with it. */
#include <stdio.h>

#include "scheduler/core/policy/price.h"
#include "tests/unit/core/sched_bed.h"

static struct price every(double gap_s, double harm, int n)
{
	struct price p = { 0 };

	for (int i = 0; i < n; i++)
		price_see(&p, (int64_t)(i * gap_s * 1e9), harm);
	return p;
}

TEST(test_no_arrival_and_no_harm_have_no_price)
{
	struct price none = { 0 }, calm = every(10.0, 0.0, 100);

	assert_true(price_at(&none, 5 * S) == 0.0);
	assert_true(price_at(&calm, 1000 * S) == 0.0);
}

TEST(test_the_price_is_in_proportion_to_the_harm)
{
	struct price one = every(10.0, 1e-4, 100), three = every(10.0, 3e-4, 100);
	double low = price_at(&one, 1000 * S);

	assert_true(low > 1e-4);
	near(price_at(&three, 1000 * S), 3.0 * low);
}

TEST(test_a_price_follows_the_last_arrivals)
{
	struct price p = every(10.0, 1e-4, 100);
	double calm = price_at(&p, 1000 * S), before;

	for (int i = 100; i < 160; i++)
		price_see(&p, i * 10 * S, 5e-4);
	assert_true(price_at(&p, 1600 * S) > 3.0 * calm);
	before = price_at(&p, 1600 * S);
	for (int i = 160; i < 400; i++)
		price_see(&p, i * 10 * S, 0.0);
	assert_true(price_at(&p, 4000 * S) < 0.05 * before);
}

TEST(test_a_price_fades_when_none_comes)
{
	struct price p = every(10.0, 1e-4, 100);
	double soon = price_at(&p, 1000 * S);

	near(price_at(&p, (990 + 79) * S), soon);
	near(price_at(&p, (990 + 160) * S), 0.5 * soon);
	assert_true(price_at(&p, 100000 * S) < 0.001 * soon);
}

TEST(test_a_lull_begins_after_five_gaps)
{
	struct price p = every(10.0, 1e-4, 100), none = { 0 };

	assert_false(price_lull(&p, (990 + 49) * S));
	assert_true(price_lull(&p, (990 + 51) * S));
	assert_true(price_lull(&none, S));
}

/* A job that is refused, and asks again at the same moment, finds the same price. */
TEST(test_an_arrival_counts_from_the_next_moment_on)
{
	struct price p = every(10.0, 1e-4, 100);
	double before;

	price_see(&p, 1000 * S, 1.0);
	before = price_at(&p, 1000 * S);
	near(before, price_at(&p, 1000 * S));
	assert_true(price_at(&p, 1001 * S) > 10.0 * before);
}

TEST(test_a_harm_that_is_no_number_counts_as_none)
{
	static const double odd[] = { NAN, INFINITY, -1.0 };

	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		struct price p = { 0 }, none = { 0 };

		price_see(&p, 0, odd[i]);
		assert_true(price_at(&p, S) == 0.0);
		price_see(&p, S, 1e-4); /* and spoils nothing that comes later */
		price_see(&none, 0, 0.0);
		price_see(&none, S, 1e-4);
		assert_true(price_at(&p, 2 * S) > 0.0 && price_at(&p, 2 * S) == price_at(&none, 2 * S));
	}
}

/* ---- in decisions ---- */

/* On an idle machine a candidate harms no job, and nothing is charged. Beside a job that is just in time the
 * longer candidates harm it more. */
TEST(test_harm_is_what_others_lose)
{
	struct bed b;
	struct sched_request r;

	make(&b, "postrider", 4);
	assert_int_equal(submit_batch(&b, 0, 1, &b64, 200), SCHED_PROMISED);
	assert_false(b.d.costs);
	for (size_t i = 0; i < b.d.n_candidates; i++)
		assert_true(b.d.candidate[i].harm == 0.0 && b.d.candidate[i].cost == 0.0);
	assert_int_equal(next(&b, 0), 1);
	r = job(&b, 2, 230);
	submit(&b, 0, &r);
	assert_true(b.d.costs);
	assert_true(b.d.candidate[0].harm > 0.0);
	for (size_t i = 1; i < b.d.n_candidates; i++)
		assert_true(b.d.candidate[i].harm <= b.d.candidate[i - 1].harm + 1e-12);
	drop(&b);
}

TEST(test_the_harm_to_a_job_is_in_proportion_to_its_value)
{
	double harm[2];

	for (int k = 0; k < 2; k++) {
		struct bed b;
		struct sched_request r;

		make(&b, "postrider", 4);
		r = job(&b, 1, 200);
		r.batch = &b64;
		r.n_batches = 1;
		r.value = k ? 2.0 : 0.0; /* 0 is 1 */
		submit(&b, 0, &r);
		assert_int_equal(next(&b, 0), 1);
		r = job(&b, 2, 230);
		submit(&b, 0, &r);
		harm[k] = b.d.candidate[0].harm;
		drop(&b);
	}
	assert_true(harm[0] > 0.0);
	near(harm[1], 2.0 * harm[0]);
}

/* The daemon asks again for a job that was rejected, if it takes it to learn from it. That is one arrival. */
TEST(test_a_job_that_is_asked_for_twice_is_one_arrival)
{
	double price[2];

	for (int twice = 0; twice < 2; twice++) {
		struct bed b;
		struct sched_request r;

		make(&b, "postrider", 4);
		assert_int_equal(submit_batch(&b, 0, 1, &b64, 200), SCHED_PROMISED);
		assert_int_equal(next(&b, 0), 1);
		r = job(&b, 2, 14);
		assert_int_equal(submit(&b, 10, &r), SCHED_REJECTED);
		r.slo_s = NAN;
		if (twice)
			assert_int_equal(submit(&b, 10, &r), SCHED_BEST_EFFORT);
		r = job(&b, 3, NAN);
		assert_int_equal(sched_what_if(b.s, 11 * S, &r, &b.d, &b.verdict, NULL), 0);
		price[twice] = b.d.price;
		drop(&b);
	}
	assert_true(price[0] > 0.0);
	near(price[1], price[0]);
}

/* Jobs that came at once and harmed each other have all ended. Long after, a job that is alone pays no price,
 * neither when it arrives nor when it starts, and takes the most accurate one; beside another it pays. */
TEST(test_an_idle_machine_has_no_price_after_a_burst)
{
	struct bed b;
	struct sched_request r;
	double most = 0.0;

	make(&b, "postrider", 4);
	assert_int_equal(submit_batch(&b, 0, 1, &b64, 200), SCHED_PROMISED);
	assert_int_equal(next(&b, 0), 1);
	for (uint64_t id = 2; id < 12; id++) { /* rejected, and counted: each would make the first one late */
		r = job(&b, id, 14);
		assert_int_equal(submit(&b, (int)id, &r), SCHED_REJECTED);
	}
	r = job(&b, 20, 4000);
	assert_int_equal(sched_what_if(b.s, 100 * S, &r, &b.d, &b.verdict, NULL), 0);
	assert_true(b.d.price > 0.0); /* the first one still runs */
	assert_int_equal(sched_remove(b.s, 100 * S, 1, NULL), 0);
	assert_int_equal(submit(&b, 101, &r), SCHED_PROMISED);
	assert_true(b.d.price == 0.0 && !b.d.costs);
	for (size_t i = 0; i < b.d.n_candidates; i++)
		most = fmax(most, b.d.candidate[i].accuracy);
	near(b.d.candidate[b.d.chosen].accuracy, most);
	assert_int_equal(next(&b, 101), 20);
	near(b.d.candidate[b.d.chosen].accuracy, most);
	drop(&b);
}

/* A constant price that no job is worth: on an idle machine one is promised all the same, beside another
 * none. One taken by chance waits while another runs, says why, and starts when nothing runs. */
TEST(test_a_job_that_costs_more_than_it_brings_waits)
{
	struct bed b;
	struct sched_request r;
	struct sched_waiting w;

	make(&b, "postrider:price=10", 4);
	r = job(&b, 1, 1000);
	assert_int_equal(submit(&b, 0, &r), SCHED_PROMISED);
	r.id = 2;
	assert_int_equal(submit(&b, 0, &r), SCHED_REJECTED); /* beside one that waits */
	assert_true(b.d.candidate[0].reasons & REASON_PRICE);
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(submit(&b, 0, &r), SCHED_REJECTED); /* beside one that runs */
	assert_true(b.d.candidate[0].reasons & REASON_PRICE);
	r.chance = 0.3;
	assert_int_equal(submit(&b, 0, &r), SCHED_CHANCE);
	assert_int_equal(next(&b, 0), 0);
	assert_int_equal(sched_waiting(b.s, 0, 2, &w, NULL), 0);
	assert_int_equal(w.why, SCHED_WAIT_PRICE);
	assert_string_equal(sched_wait_name(w.why), "price");
	assert_int_equal(sched_remove(b.s, 10 * S, 1, NULL), 0);
	assert_int_equal(next(&b, 10), 2);
	drop(&b);
}

/* What is more accurate, in time and passed over lost by the price, and is not called slower. The chance that
 * is shown is the same whatever the price. */
TEST(test_what_a_price_passed_over_says_so)
{
	double shown[DECIDE_MAX_CANDIDATES];
	unsigned passed = 0, prices = 0;

	for (double price = 1e-5; price < 1.0; price *= 2.0) {
		struct bed b;
		struct sched_request r;
		char policy[64];

		snprintf(policy, sizeof policy, "postrider:price=%g", price);
		make(&b, policy, 4);
		assert_int_equal(submit_batch(&b, 0, 1, &b64, 200), SCHED_PROMISED);
		assert_int_equal(next(&b, 0), 1);
		r = job(&b, 3, 4000);
		assert_int_equal(sched_what_if(b.s, 0, &r, &b.d, &b.verdict, NULL), 0);
		for (size_t i = 0; b.d.chosen >= 0 && i < b.d.n_candidates; i++) {
			const struct candidate *c = &b.d.candidate[i];

			shown[i] = prices ? shown[i] : c->chance;
			near(c->chance, shown[i]);
			if (!c->feasible || !(c->accuracy > b.d.candidate[b.d.chosen].accuracy))
				continue;
			assert_int_equal(c->reasons & (REASON_PRICE | REASON_SLOWER), REASON_PRICE);
			passed++;
		}
		prices++;
		drop(&b);
	}
	assert_true(passed > 0);
}

/* What a job may cost the others grows with its value: one of the usual value is refused at a price that one
 * of value 20 pays, and the more it is worth, the more accurate is what it takes. */
TEST(test_a_job_of_more_value_may_cost_more)
{
	static const double value[] = { 1.0, 20.0, 1000.0 };
	double accuracy[3] = { 0.0, 0.0, 0.0 };

	for (int k = 0; k < 3; k++) {
		struct bed b;
		struct sched_request r;

		make(&b, "postrider:price=0.05", 4);
		r = job(&b, 1, 1000);
		assert_int_equal(submit(&b, 0, &r), SCHED_PROMISED);
		assert_int_equal(next(&b, 0), 1);
		r = job(&b, 2, 1000);
		r.value = value[k];
		assert_int_equal(submit(&b, 0, &r), k ? SCHED_PROMISED : SCHED_REJECTED);
		assert_true(b.d.value == value[k]);
		if (k)
			accuracy[k] = b.d.candidate[b.d.chosen].accuracy;
		else
			assert_true(b.d.candidate[0].reasons & REASON_PRICE);
		drop(&b);
	}
	assert_true(accuracy[2] > accuracy[1]);
}

/* A value is no way past a job that is due: the window holds for jobs of the usual value, too. */
TEST(test_no_value_passes_a_job_that_is_due)
{
	struct bed b;
	struct sched_params p;
	struct sched_request r;
	struct sched_waiting w;

	make(&b, "postrider", 4);
	p = params(&b, "postrider", 4);
	p.window_s = 100;
	remake(&b, &p);
	assert_int_equal(submit_batch(&b, 0, 1, &b64, NAN), SCHED_BEST_EFFORT);
	assert_int_equal(next(&b, 0), 1);
	r = job(&b, 2, NAN); /* the whole machine */
	r.cpus = 4;
	submit(&b, 0, &r);
	assert_int_equal(next(&b, 0), 0);
	for (uint64_t id = 3; id < 5; id++) { /* without a limit, and with one */
		r = job(&b, id, id == 3 ? NAN : 4000);
		r.cpus = 1;
		r.value = 1000.0;
		submit(&b, 100, &r);
		assert_int_equal(next(&b, 100), 0);
		assert_int_equal(sched_waiting(b.s, 100 * S, id, &w, NULL), 0);
		assert_int_equal(w.why, SCHED_WAIT_HELD);
		assert_int_equal(w.job, 2);
	}
	assert_int_equal(sched_remove(b.s, 160 * S, 1, NULL), 0);
	assert_int_equal(next(&b, 160), 2);
	drop(&b);
}

/* Devices: jobs wait for theirs, batches that want too many are refused, no device is promised twice. On the
 * model of hand_model.h, where batch B takes 6400 / B seconds, and larger batches are less accurate. */
#include "tests/unit/core/sched_bed.h"

/* Eight slots, the two cores of the model, and so many devices of 16 GB. */
static void equip(struct bed *b, uint32_t devices)
{
	struct sched_params p;

	make(b, "postrider", 8);
	p = params(b, "postrider", 8);
	p.machine.devices = devices;
	p.machine.device_memory_mb = 16000;
	remake(b, &p);
}

static struct sched_request wants(const struct bed *b, uint64_t id, double slo_s, uint32_t devices)
{
	struct sched_request r = job(b, id, slo_s);

	r.device.least = devices;
	return r;
}

TEST(test_a_job_waits_for_its_device_and_others_pass_it)
{
	struct bed b;
	struct sched_request one, two, none;
	struct sched_waiting w;

	equip(&b, 1);
	one = wants(&b, 1, NAN, 1);
	two = wants(&b, 2, NAN, 1);
	none = wants(&b, 3, NAN, 0);
	submit(&b, 0, &one);
	submit(&b, 0, &two);
	submit(&b, 0, &none);
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(sched_devices_used(b.s), 1);
	assert_int_equal(next(&b, 0), 3);
	assert_int_equal(next(&b, 0), 0);
	assert_int_equal(sched_waiting(b.s, 0, 2, &w, NULL), 0);
	assert_int_equal(w.why, SCHED_WAIT_DEVICES);
	near(w.needed, 1);
	near(w.available, 0);
	assert_string_equal(sched_wait_name(w.why), "devices");
	sched_remove(b.s, 5 * S, 1, NULL);
	assert_int_equal(sched_devices_used(b.s), 0);
	assert_int_equal(next(&b, 5), 2);
	drop(&b);
}

/* A hundred seconds on the one device: who wants it by 120 s is refused, who wants none is not. */
TEST(test_the_wait_for_a_device_is_foreseen)
{
	struct bed b;
	struct sched_request first, second, third;

	equip(&b, 1);
	first = wants(&b, 1, NAN, 1);
	first.batch = &b64;
	first.n_batches = 1;
	submit(&b, 0, &first);
	assert_int_equal(next(&b, 0), 1);
	second = wants(&b, 2, 120, 1);
	assert_int_equal(submit(&b, 0, &second), SCHED_REJECTED);
	near(b.d.candidate[4].wait_s, 100);
	near(b.d.smallest_slo_s, 135); /* 100 s of wait and 12.5 s, both at most 1.2 times as long */
	third = wants(&b, 3, 120, 0);
	assert_int_equal(submit(&b, 0, &third), SCHED_PROMISED);
	near(b.d.candidate[b.d.chosen].wait_s, 0);
	sched_remove(b.s, 0, 3, NULL); /* it would slow the first one down */
	second.id = 4;
	second.slo_s = 260;
	assert_int_equal(submit(&b, 0, &second), SCHED_PROMISED);
	near(b.d.candidate[b.d.chosen].wait_s, 100);
	drop(&b);
}

TEST(test_a_larger_batch_may_want_more_devices_than_there_are)
{
	struct bed b;
	struct sched_request r;

	equip(&b, 2);
	r = wants(&b, 1, NAN, 1);
	r.device.records_each = 100; /* 32 and 64: 1; 128: 2; 256: 3; 512: 6 */
	assert_int_equal(submit(&b, 0, &r), SCHED_BEST_EFFORT);
	for (int i = 0; i < 5; i++) {
		static const uint32_t count[] = { 1, 1, 2, 3, 6 };

		assert_int_equal(b.d.candidate[i].devices, count[i]);
		assert_int_equal(!!(b.d.candidate[i].reasons & REASON_DEVICES), i > 2);
	}
	r.id = 2;
	r.device.least = 3;
	assert_int_equal(submit(&b, 0, &r), SCHED_REJECTED);
	drop(&b);
}

/* 9,000 MB, and 50 MB for each record that a device has. */
TEST(test_a_batch_that_does_not_fit_into_a_device_is_refused)
{
	struct bed b;
	struct sched_request r;

	equip(&b, 2);
	r = wants(&b, 1, NAN, 1);
	r.device.memory_mb = 9000;
	r.device.memory_mb_per_record = 50;
	submit(&b, 0, &r);
	for (int i = 0; i < 5; i++) /* 128 records want 15,400 MB, 256 want 21,800 */
		assert_int_equal(!!(b.d.candidate[i].reasons & REASON_DEVICES), i > 2);
	near(device_need_memory_mb(&r.device, 128), 15400);
	r.id = 2;
	r.device.least = 2; /* half of the records on each */
	submit(&b, 0, &r);
	for (int i = 0; i < 5; i++)
		assert_int_equal(!!(b.d.candidate[i].reasons & REASON_DEVICES), i > 3);
	drop(&b);
}

TEST(test_devices_have_a_quota)
{
	const struct sched_tenant two[] = { { .name = "ada", .weight = 1, .max_devices = 1 },
					    { .name = "bob", .weight = 1 } };
	struct bed b;
	struct sched_request r;
	struct sched_waiting w;
	struct sched_share share;

	equip(&b, 4);
	assert_int_equal(sched_set_tenants(b.s, 0, two, 2, NULL), 0);
	for (uint64_t id = 1; id <= 2; id++) {
		r = wants(&b, id, NAN, 1);
		submit(&b, 0, &r);
	}
	r = wants(&b, 3, NAN, 2);
	assert_int_equal(submit(&b, 0, &r), SCHED_REJECTED); /* never */
	r.tenant = 1;
	assert_int_equal(submit(&b, 0, &r), SCHED_BEST_EFFORT);
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(next(&b, 0), 3);
	assert_int_equal(next(&b, 0), 0);
	assert_int_equal(sched_waiting(b.s, 0, 2, &w, NULL), 0);
	assert_int_equal(w.why, SCHED_WAIT_DEVICE_QUOTA);
	near(w.needed, 1);
	near(w.available, 0);
	assert_int_equal(sched_share(b.s, 0, 1, &share, NULL), 0);
	assert_int_equal(share.devices, 2);
	drop(&b);
}

TEST(test_a_restored_job_holds_what_it_held)
{
	struct bed b;
	struct sched_restored back = { .running = true, .taken = { .decision = 64, .devices = 2 } };
	struct sched_request r;

	equip(&b, 2);
	back.request = wants(&b, 1, NAN, 1); /* the configuration says less by now */
	assert_int_equal(sched_restore(b.s, &back, NULL), 0);
	assert_int_equal(sched_devices_used(b.s), 2);
	r = wants(&b, 2, NAN, 1);
	submit(&b, 1, &r);
	assert_int_equal(next(&b, 1), 0);
	sched_remove(b.s, 2 * S, 1, NULL);
	assert_int_equal(sched_devices_used(b.s), 0);
	assert_int_equal(next(&b, 2), 2);
	drop(&b);
}

TEST(test_an_owner_cannot_start_what_has_no_device)
{
	struct bed b;
	struct sched_request r;
	struct err err = { 0 };

	equip(&b, 1);
	for (uint64_t id = 1; id <= 2; id++) {
		r = wants(&b, id, NAN, 1);
		submit(&b, 0, &r);
	}
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(sched_start_now(b.s, 0, 2, &b.d, &err), -ERR_BUSY);
	assert_string_equal(err.text, "job 2 wants 1 devices, and 0 are free");
	sched_remove(b.s, 1 * S, 1, NULL);
	assert_int_equal(sched_start_now(b.s, 1 * S, 2, &b.d, &err), 0);
	assert_int_equal(sched_devices_used(b.s), 1);
	drop(&b);
}

/* ---- a model that knows what devices do ---- */

static size_t batch_at, devices_at, n_features; /* where these are among its features */

static void faster_with_devices(const void *self, const double *x, size_t n_rows, double *out)
{
	(void)self;
	for (size_t i = 0; i < n_rows; i++, x += n_features)
		out[i] = (x[devices_at] >= 1.0 ? 640.0 : 6400.0) / x[batch_at];
}

/* The table says for jobs with devices and without how long they take; accuracies are not known. */
static void learn_devices(struct model *m, struct predictor_ops *time)
{
	static const char text[] = "network,cpus,njobs,batch,gpus,time_s\n"
				   "a,1,1,32,0,1\na,8,9,6400,2,1\n";
	struct csv *csv;
	struct table *table;

	assert_int_equal(csv_parse("t", text, strlen(text), &csv, NULL), 0);
	schema_free(m->schema);
	features_free(m->features);
	assert_int_equal(schema_for_table(csv, &m->schema, NULL), 0);
	assert_int_equal(table_read(csv, m->schema, true, &table, NULL), 0);
	assert_int_equal(features_fit(table, &m->features, NULL), 0);
	table_free(table);
	csv_free(csv);
	n_features = m->features->n;
	for (size_t i = 0; i < n_features; i++) {
		int source = (int)m->features->feature[i].source;

		batch_at = source == schema_find(m->schema, m->schema->decision) ? i : batch_at;
		devices_at = source == schema_role(m->schema, ROLE_DEVICES) ? i : devices_at;
	}
	assert_int_not_equal(batch_at, devices_at);
	*time = hand_hybrid;
	time->predict = faster_with_devices;
	m->time.predictor = (struct predictor){ .ops = time, .n_features = n_features };
	m->accuracy = (struct model_target){ 0 };
	for (size_t i = 0; i < m->time.conformal.n; i++)
		m->time.conformal.score[i] = 0.1 * ((double)i - 4.0); /* evenly between -0.4 and 0.4 */
	conformal_set_groups(&m->time.conformal, m->time.conformal.n);
}

/* With its device a job takes 1.25 s at batch 512 and has 2.9 s; without one it would take 12.5 s. */
TEST(test_a_job_that_waits_by_chance_hopes_for_its_devices)
{
	struct predictor_ops time;
	struct sched_params p;
	struct sched_request r;
	struct bed b;
	uint64_t id;

	make(&b, "postrider", 8);
	job_values_release(&b.values);
	learn_devices(b.m, &time);
	b.values = hand_values(b.m);
	p = params(&b, "postrider", 8);
	p.machine.devices = 1;
	remake(&b, &p);
	r = wants(&b, 1, NAN, 1);
	r.batch = &b512;
	r.n_batches = 1;
	submit(&b, 0, &r);
	near(b.d.candidate[0].time_s, 1.25);
	assert_int_equal(next(&b, 0), 1);
	r.id = 2;
	r.slo_s = 2.9; /* behind the first it needs 2.5 s, and more by its bound */
	r.chance = 0.3;
	assert_int_equal(submit(&b, 0, &r), SCHED_CHANCE);
	assert_int_equal(next(&b, 0), 0);
	assert_false(sched_hopeless(b.s, &id));
	assert_int_equal(sched_remove(b.s, 1 * S, 1, NULL), 0);
	assert_int_equal(next(&b, 1), 2);
	drop(&b);
}

/* More jobs that want the one device than are looked at in a turn do not hide one that wants none. */
TEST(test_many_that_wait_for_a_device_hide_no_other)
{
	struct bed b;
	struct sched_request r;

	equip(&b, 1);
	for (uint64_t id = 1; id <= 400; id++) {
		r = wants(&b, id, NAN, 1);
		submit(&b, 0, &r);
	}
	r = wants(&b, 401, NAN, 0);
	submit(&b, 0, &r);
	assert_int_equal(next(&b, 0), 1);
	assert_int_equal(next(&b, 0), 401);
	assert_int_equal(next(&b, 0), 0);
	drop(&b);
}

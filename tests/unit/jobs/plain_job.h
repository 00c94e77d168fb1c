/* A queued job with ordinary values, for the tests of records and of the store. */
#ifndef TESTS_UNIT_JOBS_PLAIN_JOB_H
#define TESTS_UNIT_JOBS_PLAIN_JOB_H

#include "scheduler/jobs/record.h"

#define NOON INT64_C(1794909600123456789) /* 2026-11-17T10:00:00.123456789Z */

static inline struct job_record plain_job(uint64_t id)
{
	struct job_record r;

	job_record_init(&r);
	r.id = id;
	r.uid = 1000;
	r.gid = 100;
	r.type = "digits";
	r.mode = "run";
	r.params = "{\"network\":\"lenet5\",\"epochs\":4}";
	r.cpus = 2;
	r.slo_s = 60;
	r.confidence = 0.9;
	r.verdict = VERDICT_PROMISED;
	r.submitted_ns = NOON + (int64_t)(id % 1000000);
	r.batch = 128;
	r.lr = 0.02;
	r.predicted_s = 41.2;
	r.upper_s = 55;
	r.predicted_accuracy = 0.94;
	r.work_s = 41;
	r.cpu_share = 0.7;
	r.disk_share = 0.1;
	r.policy = "postrider";
	r.model = "9f2c";
	r.tenant = "lab";
	return r;
}

#endif

/* Jobs as comma-separated values, for spreadsheets and scripts: `postrider list --csv`. */
#include <math.h>
#include <pwd.h>
#include <stdio.h>

#include "common/csv.h"
#include "common/text/text.h"
#include "scheduler/cli/client/job_view.h"

char *job_user(uid_t uid, char *buf, size_t size)
{
	const struct passwd *p = getpwuid(uid);

	snprintf(buf, size, "%u", (unsigned)uid);
	if (p && p->pw_name)
		snprintf(buf, size, "%s", p->pw_name);
	return buf;
}

void job_csv_header(struct strbuf *out)
{
	strbuf_puts(out,
		    "job,user,type,state,verdict,batch,epochs,cpus,slo_s,submitted_at,started_at,ended_at,"
		    "wait_s,run_s,"
		    "response_s,accuracy,predicted_s,predicted_accuracy,slo_outcome,exit_code,tag,reason\n");
}

static void put_moment(struct strbuf *out, int64_t ns)
{
	char buf[40];

	if (ns)
		strbuf_puts(out, text_utc(ns, buf));
	strbuf_puts(out, ",");
}

static void put_text(struct strbuf *out, const char *text)
{
	csv_put(out, text ? cli_clean(text) : "");
	strbuf_puts(out, ",");
}

static void put_number(struct strbuf *out, double v)
{
	csv_put_number(out, v);
	strbuf_puts(out, ",");
}

void job_csv_row(const struct job_view *j, struct strbuf *out)
{
	const struct job_record *r = &j->r;
	char user[64];

	put_text(out, j->id);
	put_text(out, r->uid != (uid_t)-1 ? job_user(r->uid, user, sizeof user) : NULL);
	put_text(out, r->type);
	put_text(out, job_state_name[r->state]);
	put_text(out, job_verdict_name[r->verdict]);
	put_number(out, r->batch);
	put_number(out, r->epochs);
	put_number(out, r->cpus);
	put_number(out, r->slo_s);
	put_moment(out, r->submitted_ns);
	put_moment(out, r->started_ns);
	put_moment(out, r->ended_ns);
	put_number(out, j->t.wait_s);
	put_number(out, j->t.run_s);
	put_number(out, j->t.response_s);
	put_number(out, r->accuracy);
	put_number(out, r->predicted_s);
	put_number(out, r->predicted_accuracy);
	put_text(out, r->slo_outcome ? slo_outcome_name[r->slo_outcome] : NULL);
	put_number(out, r->ended_ns && r->exit_code >= 0 ? (double)r->exit_code : NAN);
	put_text(out, r->tag);
	csv_put(out, r->reason ? cli_clean(r->reason) : "");
	strbuf_puts(out, "\n");
}

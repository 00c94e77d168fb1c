/* Journals of an AutoML campaign (automl/journal.h): any bytes behind a whole first line, or
 * (first byte '!') in the place of all of it. Reading must not crash or leak; what it takes as done lies
 * within the campaign. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/io.h"
#include "automl/journal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define UNITS 6

static char dir[64], table[96], path[96];
static struct campaign *campaign;
static struct prepared *prepared;
static char *head; /* the first line of a journal of this campaign */
static size_t head_len;

static void must(int claim, const char *what)
{
	if (claim)
		return;
	fprintf(stderr, "fuzz_trials: %s\n", what);
	abort();
}

static void clean_up(void)
{
	unlink(path);
	unlink(table);
	rmdir(dir);
	free(head);
	prepared_free(prepared);
	campaign_free(campaign);
}

/* Opens the journal that is there into room for UNITS of each stage, and gives all back. */
static int open_once(struct err *err)
{
	struct automl_params p = {
		.c = campaign, .p = prepared, .dir = dir, .program = "fuzz", .created = "2026-01-01T00:00:00Z"
	};
	struct automl a = { .c = campaign, .p = prepared };
	struct outcome room[N_STAGES][UNITS] = { 0 };
	struct journal *j = NULL;
	char created[32];
	int rc;

	for (size_t s = 0; s < N_STAGES; s++) {
		a.outcome[s] = room[s];
		a.n[s] = UNITS;
	}
	rc = journal_open(&p, &a, created, &j, err);
	for (size_t s = 0; s < N_STAGES; s++)
		for (size_t i = 0; i < UNITS; i++) {
			must(room[s][i].n_losses <= campaign->max_evals, "more trials than there are");
			must(room[s][i].n_tuned <= CAMPAIGN_MAX_AXES, "more priors than there are");
			must(!room[s][i].done || !room[s][i].loss, "trials of a search that is done");
			free(room[s][i].features.column);
			free(room[s][i].loss);
		}
	journal_close(j);
	return rc;
}

static void set_up(void)
{
	static const char rows[] = "a,b,t\n1,2,3\n2,1,4\n3,5,6\n4,4,7\n";
	static const char text[] =
		"[General]\ny = t\ntechniques = ['LRRidge']\nhp_selection = All\nvalidation = All\n"
		"hyperparameter_tuning = Hyperopt\nhyperopt_max_evals = 8\nhyperopt_save_interval = 2\n"
		"[DataPreparation]\ninput_path = t.csv\n[LRRidge]\nalpha = ['loguniform(0.01,1)']\n";
	struct err err = { 0 };
	struct ini *ini;

	snprintf(dir, sizeof dir, "%s/postrider-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	must(mkdtemp(dir) != NULL, "no temporary folder");
	snprintf(table, sizeof table, "%s/t.csv", dir);
	snprintf(path, sizeof path, "%s/journal.jsonl", dir);
	must(!io_write_file(table, rows, strlen(rows), &err) &&
		     !ini_parse("c.ini", text, strlen(text), &ini, &err) &&
		     !campaign_of(ini, &(struct campaign_params){ 0 }, &campaign, &err) &&
		     !prepare(campaign, table, &prepared, &err) && !open_once(&err) &&
		     !io_read_file(path, JOURNAL_MAX_BYTES, &head, &head_len, &err),
	     err.text);
	atexit(clean_up);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool whole = size && data[0] == '!';
	struct strbuf text = { 0 };
	struct err err = { 0 };

	if (!head)
		set_up();
	if (!whole)
		strbuf_add(&text, head, head_len);
	strbuf_add(&text, (const char *)data + whole, size - whole);
	must(!io_write_file(path, strbuf_text(&text), text.len, NULL), "cannot write");
	must(!open_once(&err) || err.text[0], "refused without a reason");
	strbuf_release(&text);
	return 0;
}

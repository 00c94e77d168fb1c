/* The protocol as documented is the protocol as it is: every transcript of docs/PROTOCOL.md is replayed
 * against a real daemon, and whatever the sources know of ops, members, error codes, events, states and
 * reasons must be told there. */
#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/io.h"
#include "common/mem.h"
#include "tests/daemon/harness.h"
#include "tests/daemon/transcript.h"
#include "tests/support/test.h"

#define DOCUMENT "docs/PROTOCOL.md"
#define MAX_WORDS 128

static struct document doc;
static char model[128];

/* ---- replaying ---- */

static void replay(void **state)
{
	const struct transcript *t = *state;

	if (t->needs_root && geteuid() != 0) {
		printf("skipped: %s needs root, to be another user\n", t->name);
		skip();
	}
	assert_true(transcript_replay(&doc, t, model));
}

/* ---- what the sources know ---- */

struct words {
	char word[MAX_WORDS][64];
	size_t n;
};

static bool has_word(const struct words *w, const char *word)
{
	for (size_t i = 0; i < w->n; i++) {
		if (!strcmp(w->word[i], word))
			return true;
	}
	return false;
}

static void add_word(struct words *w, const char *from, size_t len)
{
	char word[64];

	if (len >= sizeof word)
		return;
	memcpy(word, from, len);
	word[len] = '\0';
	if (has_word(w, word))
		return;
	assert_true(w->n < MAX_WORDS);
	strcpy(w->word[w->n++], word);
}

/* The literal that begins at `quote`; its end quote. */
static const char *literal_end(const char *quote)
{
	const char *p = quote + 1;

	while (*p && *p != '"')
		p += *p == '\\' && p[1] ? 2 : 1;
	return p;
}

static char *source(const char *path)
{
	struct err err = { 0 };
	char *text = NULL;
	size_t len;

	if (io_read_file(path, (size_t)1 << 22, &text, &len, &err))
		die("%s (run from the root of the repository)", err.text);
	return text;
}

/* Every literal in argument `index` of the calls of `function`. */
static void literals_of_calls(const char *text, const char *function, unsigned index, struct words *out)
{
	size_t len = strlen(function);

	for (const char *p = strstr(text, function); p; p = strstr(p + 1, function)) {
		unsigned at = 0;
		int depth = 0;

		if ((p > text && (isalnum((unsigned char)p[-1]) || p[-1] == '_')) || p[len] != '(')
			continue;
		for (const char *q = p + len; *q; q++) {
			depth += *q == '(';
			depth -= *q == ')';
			at += *q == ',' && depth == 1;
			if (depth == 0)
				break;
			if (*q == '"') {
				const char *end = literal_end(q);

				if (at == index)
					add_word(out, q + 1, (size_t)(end - q - 1));
				q = end;
			}
		}
	}
}

/* Every literal between `from` and the next `to`. */
static void literals_between(const char *text, const char *from, const char *to, struct words *out)
{
	const char *p = strstr(text, from), *end = p ? strstr(p, to) : NULL;

	for (; p && p < end; p++) {
		if (*p == '"') {
			const char *stop = literal_end(p);

			add_word(out, p + 1, (size_t)(stop - p - 1));
			p = stop;
		}
	}
}

static void each_source(void (*fn)(const char *text, struct words *out), struct words *out)
{
	glob_t found;

	*out = (struct words){ 0 };
	if (glob("scheduler/daemon/*.c", 0, NULL, &found) ||
	    glob("scheduler/daemon/*/*.c", GLOB_APPEND, NULL, &found) ||
	    glob("scheduler/jobs/*.c", GLOB_APPEND, NULL, &found))
		die("scheduler/daemon is not here: run from the root of the repository");
	for (size_t i = 0; i < found.gl_pathc; i++) {
		char *text = source(found.gl_pathv[i]);

		fn(text, out);
		free(text);
	}
	globfree(&found);
	assert_true(out->n > 0);
}

static void codes_in(const char *text, struct words *out)
{
	literals_of_calls(text, "reply_error", 1, out);
	literals_of_calls(text, "later_error", 1, out);
	literals_of_calls(text, "conn_refuse", 1, out);
	literals_of_calls(text, "refusal", 1, out);
	literals_of_calls(text, "turn_away", 2, out);
	literals_between(text, "const code[] = {", "};", out);
}

static void events_in(const char *text, struct words *out)
{
	literals_of_calls(text, "watch_tell", 1, out);
	literals_of_calls(text, "tell", 1, out); /* jobs/life.c */
}

static void waiting_codes_in(const char *text, struct words *out)
{
	for (const char *p = text; (p = strstr(p, "waiting_code = \"")); p++)
		add_word(out, p + 16, strcspn(p + 16, "\""));
}

static void states_in(const char *text, struct words *out)
{
	literals_between(text, "const job_state_name[", "};", out);
}

/* ---- what the document has ---- */

static bool is_marked(const char *text, const char *word)
{
	char marked[80];

	snprintf(marked, sizeof marked, "`%s`", word);
	return strstr(text, marked) != NULL;
}

/* Is the value of `path` this word in some expected line? */
static bool is_expected(const char *path, const char *word)
{
	for (size_t i = 0; i < doc.n_transcripts; i++) {
		for (size_t k = 0; k < doc.transcript[i].n_steps; k++) {
			if (!strcmp(text_at(doc.transcript[i].step[k].expected, path), word))
				return true;
		}
	}
	return false;
}

static bool is_asked(const char *op)
{
	char member[80];

	snprintf(member, sizeof member, "\"op\":\"%s\"", op);
	for (size_t i = 0; i < doc.n_transcripts; i++) {
		for (size_t k = 0; k < doc.transcript[i].n_steps; k++) {
			const struct step *s = &doc.transcript[i].step[k];

			if (s->kind == '>' && strstr(s->text, member))
				return true;
		}
	}
	return false;
}

static size_t complain_unless(bool good, const char *what, const char *word)
{
	if (!good)
		printf("%s: %s\n", what, word);
	return !good;
}

/* ---- claims ---- */

TEST(test_every_error_code_is_documented_and_shown)
{
	/* The harness has no way to make a socket overflow in a transcript; test_hostile.c has. */
	static const char *const elsewhere[] = { "slow_reader" };
	struct words codes;
	size_t bad = 0;

	each_source(codes_in, &codes);
	for (size_t i = 0; i < codes.n; i++) {
		const char *code = codes.word[i];

		bad += complain_unless(is_marked(doc.text, code), "an error code that is not documented",
				       code);
		bad += complain_unless(!strcmp(code, elsewhere[0]) || is_expected("error.code", code),
				       "an error code that no transcript shows", code);
	}
	assert_int_equal(bad, 0);
	assert_true(codes.n >= 18);
}

TEST(test_every_documented_code_exists)
{
	const char *from = strstr(doc.text, "## Error codes"), *end = from ? strstr(from + 1, "\n## ") : NULL;
	struct words codes;
	size_t n = 0, bad = 0;

	assert_non_null(end);
	each_source(codes_in, &codes);
	for (const char *p = from; (p = strstr(p, "\n| `")) && p < end; p++, n++) {
		char code[64];

		snprintf(code, sizeof code, "%.*s", (int)strcspn(p + 4, "`"), p + 4);
		bad += complain_unless(has_word(&codes, code),
				       "a documented error code that nothing produces", code);
	}
	assert_int_equal(bad, 0);
	assert_int_equal(n, codes.n);
}

TEST(test_every_event_is_documented_and_shown)
{
	struct words events;
	size_t bad = 0;

	each_source(events_in, &events);
	for (size_t i = 0; i < events.n; i++) {
		bad += complain_unless(is_marked(doc.text, events.word[i]), "an event that is not documented",
				       events.word[i]);
		bad += complain_unless(is_expected("event", events.word[i]),
				       "an event that no transcript shows", events.word[i]);
	}
	assert_int_equal(bad, 0);
}

TEST(test_every_state_waiting_code_and_reason_is_documented)
{
	struct words states, waiting, reasons = { 0 };
	char *core = source("scheduler/core/decide.c"), *ask = source("scheduler/core/sched_ask.c");
	size_t bad = 0;

	each_source(states_in, &states);
	each_source(waiting_codes_in, &waiting);
	assert_int_equal(states.n, 7);
	/* Why jobs wait is the scheduler's to say, but for what only the daemon knows. */
	literals_between(ask, "case SCHED_WAIT_SLOTS:", "\n\t}", &waiting);
	assert_int_equal(waiting.n, 13);
	for (size_t i = 0; i < states.n; i++)
		bad += complain_unless(is_marked(doc.text, states.word[i]), "a state that is not documented",
				       states.word[i]);
	for (size_t i = 0; i < waiting.n; i++)
		bad += complain_unless(is_marked(doc.text, waiting.word[i]),
				       "a code of waiting that is not documented", waiting.word[i]);
	literals_between(core, "switch (one) {", "\n\t}", &reasons);
	assert_int_equal(reasons.n, 14);
	for (size_t i = 0; i < reasons.n; i++)
		bad += complain_unless(is_marked(doc.text, reasons.word[i]),
				       "a reason that is not documented", reasons.word[i]);
	free(core);
	free(ask);
	assert_int_equal(bad, 0);
}

/* The section of an op, to be freed; NULL: none. */
static char *section_of(const char *op)
{
	char heading[80];
	const char *from, *end;

	snprintf(heading, sizeof heading, "\n### %s\n", op);
	from = strstr(doc.text, heading);
	if (!from)
		return NULL;
	end = strstr(from + 1, "\n##");
	return mem_strndup(from, end ? (size_t)(end - from) : strlen(from));
}

TEST(test_every_op_and_member_is_documented_and_asked)
{
	char *text = source("scheduler/daemon/ops/ops.c"), *section = NULL;
	const char *p = strstr(text, "op_all[] = {"), *end = p ? strstr(p, "\n};") : NULL;
	size_t n_ops = 0, bad = 0;
	int depth = 0;

	assert_non_null(end);
	for (; p < end; p++) {
		char word[64];

		depth += *p == '{';
		depth -= *p == '}';
		if (*p != '"')
			continue;
		snprintf(word, sizeof word, "%.*s", (int)(literal_end(p) - p - 1), p + 1);
		p = literal_end(p);
		if (depth == 2) { /* an op's name */
			free(section);
			section = section_of(word);
			n_ops++;
			bad += complain_unless(section, "an op without a section", word);
			bad += complain_unless(is_asked(word), "an op that no transcript asks for", word);
		} else {
			bad += complain_unless(section && is_marked(section, word),
					       "a member that its op's section lacks", word);
		}
	}
	assert_int_equal(bad, 0);
	assert_true(n_ops >= 18);
	free(section);
	free(text);
}

/* A transcript is a case of its own. */
void test_more_cases(void)
{
	document_read(DOCUMENT, &doc);
	for (size_t i = 0; i < doc.n_transcripts; i++)
		test_add(doc.transcript[i].name, replay, &doc.transcript[i]);
}

static struct fixture school; /* where the model comes from */

static int open_school(void **state)
{
	(void)state;
	fixture_open(&school);
	fixture_train(&school);
	memcpy(model, school.model, sizeof model);
	return 0;
}

static int close_school(void **state)
{
	(void)state;
	fixture_close(&school);
	document_release(&doc);
	return 0;
}

TEST_GROUP(open_school, close_school);

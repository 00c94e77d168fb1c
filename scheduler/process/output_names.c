/* Names of numbers in training logs: "val_acc", "Test accuracy", "Acc@1", "testAccuracy". A name is cut into
 * words, and lists of words say what it is. */
#include "scheduler/process/output_names.h"

#include <ctype.h>
#include <string.h>

#define MAX_WORDS 8
#define MAX_WORD 24

struct words {
	char word[MAX_WORDS][MAX_WORD];
	size_t n;
};

static const char *const accuracy[] = { "accuracy", "acc", "acc1", "top1", "accuracies", NULL };
static const char *const tested[] = { "test", "testing", NULL };
static const char *const held_out[] = { "val", "valid",   "validation", "eval", "evaluation",
					"dev", "holdout", "heldout",    NULL };
/* Words that make another number of it: of the training data, a goal, a difference, the fifth guess. */
static const char *const not_it[] = { "train",    "training",  "loss",     "target", "goal",   "min",
				      "minimum",  "wanted",    "required", "delta",  "change", "error",
				      "time",     "top5",      "top3",     "acc5",   "std",    "baseline",
				      "patience", "threshold", NULL };
static const char *const weak[] = { "best", "max", "previous", "last", "old", "running", NULL };

static bool in_list(const char *s, const char *const *list)
{
	for (; *list; list++) {
		if (!strcmp(*list, s))
			return true;
	}
	return false;
}

static bool any(const struct words *w, const char *const *list)
{
	for (size_t i = 0; i < w->n; i++) {
		if (in_list(w->word[i], list))
			return true;
	}
	return false;
}

/* Cuts at everything that is not a letter or digit, and before a capital that follows a small letter. */
static void split(const char *s, size_t len, struct words *out)
{
	size_t k = 0;

	out->n = 0;
	for (size_t i = 0; i <= len; i++) {
		bool letter = i < len && isalnum((unsigned char)s[i]);
		bool hump = letter && i && islower((unsigned char)s[i - 1]) && isupper((unsigned char)s[i]);

		if ((!letter || hump) && k) {
			out->word[out->n++][k] = '\0';
			k = 0;
			if (out->n == MAX_WORDS)
				return;
		}
		if (letter && k < MAX_WORD - 1)
			out->word[out->n][k++] = (char)tolower((unsigned char)s[i]);
	}
}

int output_accuracy_rank(const char *name, size_t len)
{
	struct words w;

	split(name, len, &w);
	if (!any(&w, accuracy) || any(&w, not_it))
		return 0;
	for (size_t i = 0; i < w.n; i++) { /* "acc@5" */
		if (isdigit((unsigned char)w.word[i][0]) && strcmp(w.word[i], "1"))
			return 0;
	}
	if (any(&w, weak))
		return 1;
	return any(&w, tested) ? 4 : any(&w, held_out) ? 3 : 2;
}

bool output_is_epoch(const char *whole, size_t whole_len, const char *name, size_t len)
{
	struct words w, one;

	split(whole, whole_len, &w);
	split(name, len, &one);
	return one.n == 1 && (!strcmp(one.word[0], "epoch") || !strcmp(one.word[0], "ep")) && !any(&w, weak);
}

bool output_is_training(const char *whole, size_t len)
{
	static const char *const train[] = { "train", "training", NULL };
	struct words w;

	split(whole, len, &w);
	return any(&w, train);
}

bool output_is_loss(const char *name, size_t len)
{
	struct words w;

	split(name, len, &w);
	return w.n && !strcmp(w.word[w.n - 1], "loss");
}

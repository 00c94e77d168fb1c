/* Tokens and their file. See token.h. */
#include "scheduler/daemon/http/token.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/io.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/strbuf.h"

#define FILE_MAX (TOKENS_MAX * 120)

static void put_hex(const unsigned char *bytes, size_t n, char *out)
{
	for (size_t i = 0; i < n; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static bool read_line(const char *line, struct token *out)
{
	unsigned uid;
	long long expires;

	for (size_t i = 0; i < SHA256_BYTES; i++) {
		unsigned byte;

		if (sscanf(line + 2 * i, "%2x", &byte) != 1)
			return false;
		out->hash[i] = (unsigned char)byte;
	}
	if (sscanf(line + 2 * SHA256_BYTES, " %u %lld", &uid, &expires) != 2)
		return false;
	out->uid = uid;
	out->expires_s = expires;
	return true;
}

int tokens_open(struct tokens *t, const char *state_dir, struct err *err)
{
	struct strbuf path = { 0 };
	char *text = NULL, *rest, *line;
	size_t len;
	int rc;

	*t = (struct tokens){ 0 };
	strbuf_printf(&path, "%s/tokens", state_dir);
	if (path.failed)
		return err_nomem(err, "the tokens");
	t->path = path.text;
	rc = io_read_file(t->path, FILE_MAX, &text, &len, err);
	if (rc == -ERR_NOTFOUND) {
		if (err)
			*err = (struct err){ 0 };
		return 0;
	}
	for (line = rc ? NULL : strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		struct token one;

		if (!read_line(line, &one) || t->n >= TOKENS_MAX)
			log_warn("%s: a line is not valid, and is ignored", t->path);
		else if (mem_grow((void **)&t->one, &t->cap, t->n + 1, sizeof *t->one))
			rc = err_nomem(err, "the tokens");
		else
			t->one[t->n++] = one;
	}
	free(text);
	return rc;
}

void tokens_close(struct tokens *t)
{
	free(t->path);
	free(t->one);
	*t = (struct tokens){ 0 };
}

static int save(const struct tokens *t, struct err *err)
{
	struct strbuf text = { 0 };
	char hex[2 * SHA256_BYTES + 1];
	int rc;

	for (size_t i = 0; i < t->n; i++) {
		put_hex(t->one[i].hash, SHA256_BYTES, hex);
		strbuf_printf(&text, "%s %u %lld\n", hex, (unsigned)t->one[i].uid,
			      (long long)t->one[i].expires_s);
	}
	rc = text.failed ? err_nomem(err, "the tokens")
			 : io_write_file(t->path, strbuf_text(&text), text.len, err);
	strbuf_release(&text);
	return rc;
}

static void drop(struct tokens *t, size_t i)
{
	memmove(t->one + i, t->one + i + 1, (t->n - i - 1) * sizeof *t->one);
	t->n--;
	t->dropped++;
}

/* Those that have expired, and of this user the oldest ones until there is room. */
static void tidy(struct tokens *t, uid_t uid, int64_t now_s)
{
	for (size_t i = t->n; i-- > 0;) {
		if (t->one[i].expires_s <= now_s)
			drop(t, i);
	}
	for (size_t i = 0; i < t->n && tokens_of(t, uid, now_s) >= TOKENS_PER_UID;) {
		if (t->one[i].uid == uid)
			drop(t, i);
		else
			i++;
	}
}

int tokens_make(struct tokens *t, uid_t uid, int64_t now_s, int64_t expires_s, char out[TOKEN_TEXT],
		struct err *err)
{
	unsigned char secret[20];
	struct token *one;
	int rc;

	tidy(t, uid, now_s);
	if (t->n >= TOKENS_MAX)
		return err_fail(err, ERR_BUSY, "there are %d tokens, as many as are allowed", TOKENS_MAX);
	if (mem_grow((void **)&t->one, &t->cap, t->n + 1, sizeof *t->one))
		return err_nomem(err, "a token");
	if (getrandom(secret, sizeof secret, 0) != sizeof secret)
		return err_fail(err, ERR_IO, "the kernel gives no random numbers");
	strcpy(out, "prt_");
	put_hex(secret, sizeof secret, out + 4);
	one = &t->one[t->n];
	sha256(out, strlen(out), one->hash);
	one->uid = uid;
	one->expires_s = expires_s;
	t->n++;
	rc = save(t, err);
	if (rc)
		t->n--;
	return rc;
}

int tokens_revoke(struct tokens *t, uid_t uid, int64_t now_s, struct err *err)
{
	for (size_t i = t->n; i-- > 0;) {
		if (t->one[i].uid == uid || t->one[i].expires_s <= now_s)
			drop(t, i);
	}
	return save(t, err);
}

size_t tokens_of(const struct tokens *t, uid_t uid, int64_t now_s)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += t->one[i].uid == uid && t->one[i].expires_s > now_s;
	return n;
}

static const struct token *with_hash(const struct tokens *t, const unsigned char *hash, int64_t now_s)
{
	for (size_t i = 0; i < t->n; i++) {
		if (!memcmp(t->one[i].hash, hash, SHA256_BYTES) && t->one[i].expires_s > now_s)
			return &t->one[i];
	}
	return NULL;
}

bool tokens_find(const struct tokens *t, const char *text, int64_t now_s, struct token *out)
{
	unsigned char hash[SHA256_BYTES];
	const struct token *one;

	if (strlen(text) >= TOKEN_TEXT)
		return false;
	/* The hashes are compared, not the secrets: how long that takes says nothing of a secret. */
	sha256(text, strlen(text), hash);
	one = with_hash(t, hash, now_s);
	if (one)
		*out = *one;
	return one != NULL;
}

bool tokens_hold(const struct tokens *t, const struct token *one, int64_t now_s)
{
	return with_hash(t, one->hash, now_s) != NULL;
}

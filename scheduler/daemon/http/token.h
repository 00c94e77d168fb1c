/* Tokens: which user sends a request over HTTP. Users get one over the Unix socket (`postrider token`), where
 * the kernel says who they are. Only its hash is kept, in STATE/tokens, a line each: "HASH UID EXPIRES",
 * seconds since 1970. */
#ifndef SCHEDULER_DAEMON_HTTP_TOKEN_H
#define SCHEDULER_DAEMON_HTTP_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/sha256.h"

#define TOKEN_TEXT 48 /* "prt_" and 40 hexadecimal digits, and room for the NUL */
#define TOKENS_MAX 4096
#define TOKENS_PER_UID 16 /* the oldest one goes */

struct token { unsigned char hash[SHA256_BYTES]; uid_t uid; int64_t expires_s; };
struct tokens {
	char *path;
	struct token *one; size_t n, cap;
	uint64_t dropped;             /* how many were, since they were opened */
};

/* A file that is not there holds none; lines that make no sense are dropped with a warning. */
int tokens_open(struct tokens *t, const char *state_dir, struct err *err);
void tokens_close(struct tokens *t);
int tokens_make(struct tokens *t, uid_t uid, int64_t now_s, int64_t expires_s, char out[TOKEN_TEXT],
                struct err *err);
int tokens_revoke(struct tokens *t, uid_t uid, int64_t now_s, struct err *err); /* all of a user's */
size_t tokens_of(const struct tokens *t, uid_t uid, int64_t now_s);
/* False: there is no such token, or it has expired. */
bool tokens_find(const struct tokens *t, const char *text, int64_t now_s, struct token *out);
bool tokens_hold(const struct tokens *t, const struct token *one, int64_t now_s); /* still */

#endif

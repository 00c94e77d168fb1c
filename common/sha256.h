/* SHA-256 (FIPS 180-4), for secrets that are kept as their hash. */
#ifndef COMMON_SHA256_H
#define COMMON_SHA256_H

#include <stddef.h>

#define SHA256_BYTES 32

void sha256(const void *bytes, size_t len, unsigned char out[SHA256_BYTES]);

#endif

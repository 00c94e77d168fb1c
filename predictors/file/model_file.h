/* The parts of a model file, for model_write.c and model_read.c. docs/MODEL_FORMAT.md is the contract; a
 * change here is a change there. */
#ifndef PREDICTORS_FILE_MODEL_FILE_H
#define PREDICTORS_FILE_MODEL_FILE_H

#include "predictors/model.h"

/* As in PNG: a byte that is no text, a line end that a text-mode copy would change, and the end-of-file
 * of old terminals. */
static const unsigned char model_magic[8] = { 0x89, 'P', 'R', 'M', '\r', '\n', 0x1a, '\n' };

#define HEADER_BYTES 24 /* magic, version, number of sections, their checksum */
#define SECTION_BYTES 20 /* tag, length, checksum */
#define META_MAX_BYTES ((size_t)64 << 20)
#define MAX_CANDIDATES 65536
#define NAME_SHOWN 160 /* bytes of a file's name in a message */

enum section_id {
	SECTION_META,
	SECTION_TIME,
	SECTION_ACCURACY,
	SECTION_TIME_BOUNDS,
	SECTION_ACCURACY_BOUNDS,
	SECTION_TIME_SPREAD,
	SECTION_MIXED,
	N_SECTIONS
};
static const char model_section_tag[N_SECTIONS][5] = { "META", "TMOD", "AMOD", "TRES",
						       "ARES", "TSPR", "MIXD" };

/* Over the first 12 bytes of a section's head, tag and length, and its payload. */
uint64_t model_section_crc(const unsigned char *head, const void *payload, size_t len);

#endif

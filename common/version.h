/* The version of the program. It is written down once, in the file VERSION at the root; the Makefile hands it
 * to version.c. */
#ifndef COMMON_VERSION_H
#define COMMON_VERSION_H

extern const char postrider_version[]; /* "0.1.0" */
extern const char postrider_program[]; /* "postrider 0.1.0", for files that say who wrote them */

#endif

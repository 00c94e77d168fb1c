/* What the hand-vectorised loops share: eight floats at a time, and compiling a function twice. The
 * Makefile builds the files that include this with -O3 and fused multiply-add: unlike elsewhere in the
 * project the last bit may differ from one kind of processor to the next, as it does in the BLAS these
 * loops work beside. */
#ifndef WORKLOADS_KERNEL_H
#define WORKLOADS_KERNEL_H

#include <stdint.h>

/* For processors with AVX2 and FMA and for all; the loader picks one. ThreadSanitizer cannot be used with
 * that: the picking runs before its start-up. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define KERNEL_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define KERNEL_CLONES
#endif
#define KERNEL_INLINE static inline __attribute__((always_inline))

#define LANES 8
typedef float v8f __attribute__((vector_size(32)));
typedef int32_t v8i __attribute__((vector_size(32)));
typedef float v8f_any __attribute__((vector_size(32), aligned(4), may_alias)); /* at any float's address */

/* Loops read and write whole vectors: every buffer handed to them has this many floats behind its end. */
#define KERNEL_SLACK 16

#endif

/* Draws handwritten digits at random and writes them in the format of MNIST. See digits.h. */
#include "workloads/digits.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/io.h"
#include "common/mem.h"
#include "common/rng.h"
#include "common/text/text.h"
#include "workloads/idx.h"

#define SIDE DIGITS_SIDE
#define CACHE_VERSION "1" /* part of the folder's name: new drawings get a new one */
#define CACHE_TRAIN 60000
#define CACHE_TEST 10000
#define CACHE_SEED 1

/* ---- what the digits look like: points of a pen's way in a unit square, y downwards ---- */

#define MAX_POINTS 12
#define MAX_STROKES 2

struct point {
	double x, y;
};

struct stroke {
	struct point point[MAX_POINTS];
	size_t n;
};

struct glyph {
	uint8_t digit;
	size_t n;
	struct stroke stroke[MAX_STROKES];
};

/* clang-format off */
static const struct glyph glyph_all[] = {
	{ 0, 1, { { { { .5, .05 }, { .77, .15 }, { .86, .5 }, { .76, .85 }, { .5, .95 }, { .24, .85 },
		      { .14, .5 }, { .23, .15 }, { .5, .05 } }, 9 } } },
	{ 1, 1, { { { { .36, .25 }, { .55, .05 }, { .54, .5 }, { .53, .95 } }, 4 } } },
	{ 1, 1, { { { { .5, .05 }, { .5, .5 }, { .5, .95 } }, 3 } } },
	{ 1, 2, { { { { .35, .22 }, { .52, .05 }, { .52, .5 }, { .52, .93 } }, 4 },
		  { { { .28, .93 }, { .78, .93 } }, 2 } } },
	{ 2, 1, { { { { .18, .28 }, { .32, .08 }, { .6, .05 }, { .8, .22 }, { .75, .45 }, { .5, .68 },
		      { .18, .93 }, { .5, .93 }, { .85, .92 } }, 9 } } },
	{ 2, 1, { { { { .2, .2 }, { .5, .05 }, { .77, .2 }, { .68, .52 }, { .4, .85 }, { .22, .9 },
		      { .26, .74 }, { .5, .84 }, { .86, .93 } }, 9 } } },
	{ 3, 1, { { { { .2, .12 }, { .5, .04 }, { .78, .2 }, { .7, .4 }, { .42, .48 }, { .75, .56 },
		      { .82, .78 }, { .55, .96 }, { .18, .86 } }, 9 } } },
	{ 3, 1, { { { { .2, .08 }, { .78, .08 }, { .45, .4 }, { .78, .56 }, { .8, .82 }, { .5, .96 },
		      { .2, .88 } }, 7 } } },
	{ 4, 2, { { { { .6, .05 }, { .38, .33 }, { .15, .62 }, { .5, .62 }, { .88, .62 } }, 5 },
		  { { { .66, .35 }, { .65, .65 }, { .64, .97 } }, 3 } } },
	{ 4, 2, { { { { .2, .08 }, { .17, .48 }, { .45, .52 }, { .8, .48 } }, 4 },
		  { { { .8, .08 }, { .77, .5 }, { .73, .95 } }, 3 } } },
	{ 5, 2, { { { { .28, .08 }, { .24, .45 }, { .55, .38 }, { .82, .55 }, { .8, .8 }, { .5, .96 },
		      { .18, .86 } }, 7 },
		  { { { .28, .08 }, { .82, .06 } }, 2 } } },
	{ 6, 1, { { { { .7, .06 }, { .38, .25 }, { .2, .6 }, { .28, .88 }, { .55, .96 }, { .8, .8 },
		      { .74, .56 }, { .48, .5 }, { .24, .66 } }, 9 } } },
	{ 7, 1, { { { { .15, .1 }, { .5, .08 }, { .85, .08 }, { .58, .5 }, { .4, .95 } }, 5 } } },
	{ 7, 2, { { { { .15, .1 }, { .5, .08 }, { .85, .08 }, { .58, .5 }, { .4, .95 } }, 5 },
		  { { { .32, .52 }, { .78, .48 } }, 2 } } },
	{ 8, 1, { { { { .5, .5 }, { .24, .3 }, { .3, .08 }, { .55, .04 }, { .76, .2 }, { .5, .5 },
		      { .2, .74 }, { .3, .94 }, { .58, .97 }, { .8, .78 }, { .5, .5 } }, 11 } } },
	{ 9, 1, { { { { .76, .34 }, { .52, .5 }, { .26, .4 }, { .22, .18 }, { .48, .04 }, { .74, .14 },
		      { .76, .34 }, { .7, .7 }, { .55, .96 } }, 9 } } },
	{ 9, 1, { { { { .74, .3 }, { .5, .48 }, { .24, .34 }, { .3, .1 }, { .6, .05 }, { .76, .2 },
		      { .76, .6 }, { .75, .96 } }, 8 } } },
};
/* clang-format on */
enum { N_GLYPHS = sizeof glyph_all / sizeof glyph_all[0] };

/* How far records of one digit differ: large enough that ten epochs do not learn them by heart. */
#define JITTER 0.04 /* of a point, in glyph heights */
#define TURN 0.16 /* radians */
#define SLANT 0.22
#define SHIFT 1.0 /* pixels */
#define NOISE 18.0 /* grey levels of 255 */
#define SCRIBBLES 0.35 /* share of the records with a stray stroke */
#define PIECES 4 /* straight lines between two points of a curve */

struct canvas {
	double grey[SIDE * SIDE];
	double radius; /* of the pen, in pixels */
};

static void draw_line(struct canvas *c, struct point a, struct point b)
{
	double reach = c->radius + 1.0, dx = b.x - a.x, dy = b.y - a.y, length2 = dx * dx + dy * dy;
	int x0 = (int)fmax(0.0, floor(fmin(a.x, b.x) - reach)),
	    x1 = (int)fmin(SIDE - 1, fmax(a.x, b.x) + reach);
	int y0 = (int)fmax(0.0, floor(fmin(a.y, b.y) - reach)),
	    y1 = (int)fmin(SIDE - 1, fmax(a.y, b.y) + reach);

	for (int y = y0; y <= y1; y++) {
		for (int x = x0; x <= x1; x++) {
			double px = x - a.x, py = y - a.y;
			double t = length2 > 0.0 ? fmin(fmax((px * dx + py * dy) / length2, 0.0), 1.0) : 0.0;
			double ex = px - t * dx, ey = py - t * dy;
			double ink = c->radius + 0.5 - sqrt(ex * ex + ey * ey); /* an edge one pixel wide */

			if (ink > c->grey[y * SIDE + x])
				c->grey[y * SIDE + x] = fmin(ink, 1.0);
		}
	}
}

/* Catmull and Rom's curve between b and c. */
static struct point curve_at(struct point a, struct point b, struct point c, struct point d, double t)
{
	double t2 = t * t, t3 = t2 * t;
	double wa = -t3 + 2 * t2 - t, wb = 3 * t3 - 5 * t2 + 2, wc = -3 * t3 + 4 * t2 + t, wd = t3 - t2;

	return (struct point){ 0.5 * (wa * a.x + wb * b.x + wc * c.x + wd * d.x),
			       0.5 * (wa * a.y + wb * b.y + wc * c.y + wd * d.y) };
}

static void draw_curve(struct canvas *c, const struct point *p, size_t n)
{
	struct point from = p[0];

	for (size_t k = 0; k + 1 < n; k++) {
		for (int i = 1; i <= PIECES; i++) {
			struct point to = curve_at(p[k ? k - 1 : 0], p[k], p[k + 1],
						   p[k + 2 < n ? k + 2 : n - 1], (double)i / PIECES);

			draw_line(c, from, to);
			from = to;
		}
	}
}

static double between(struct rng *rng, double low, double high)
{
	return low + (high - low) * rng_uniform(rng);
}

/* Nearly normal (the sum of four uniforms, scaled), mean 0, variance 1: one draw where rng_normal() needs a
 * logarithm and a root, for 784 pixels a digit. */
static double soft_noise(struct rng *rng)
{
	uint64_t v = rng_next(rng);
	double sum = (double)((v & 0xffff) + (v >> 16 & 0xffff) + (v >> 32 & 0xffff) + (v >> 48));

	return (sum / 65535.0 - 2.0) * 1.7320508075688772;
}

uint8_t digits_draw(uint64_t seed, int test, uint64_t i, uint8_t pixel[SIDE * SIDE])
{
	struct rng rng = rng_stream(seed, 2 * i + (test ? 1 : 0));
	uint8_t digit = (uint8_t)rng_below(&rng, 10);
	const struct glyph *candidate[N_GLYPHS], *g;
	struct canvas canvas = { .radius = between(&rng, 0.5, 1.6) };
	uint32_t n = 0;
	double turn = TURN * rng_normal(&rng), slant = SLANT * rng_normal(&rng),
	       ink = between(&rng, 0.55, 1.0);
	double wide = between(&rng, 11.0, 19.0), high = between(&rng, 15.0, 21.0);
	double shift_x = SHIFT * rng_normal(&rng), shift_y = SHIFT * rng_normal(&rng);

	for (size_t k = 0; k < N_GLYPHS; k++)
		if (glyph_all[k].digit == digit)
			candidate[n++] = &glyph_all[k];
	g = candidate[rng_below(&rng, n)];
	for (size_t s = 0; s < g->n; s++) {
		struct point p[MAX_POINTS];

		for (size_t k = 0; k < g->stroke[s].n; k++) {
			double y = high * (g->stroke[s].point[k].y - 0.5 + JITTER * rng_normal(&rng));
			double x = wide * (g->stroke[s].point[k].x - 0.5 + JITTER * rng_normal(&rng)) -
				   slant * y;

			p[k].x = (SIDE - 1) / 2.0 + shift_x + cos(turn) * x - sin(turn) * y;
			p[k].y = (SIDE - 1) / 2.0 + shift_y + sin(turn) * x + cos(turn) * y;
		}
		draw_curve(&canvas, p, g->stroke[s].n);
	}
	if (rng_uniform(&rng) < SCRIBBLES) {
		struct point a = { between(&rng, 0, SIDE), between(&rng, 0, SIDE) };
		struct point b = { a.x + 5.0 * rng_normal(&rng), a.y + 5.0 * rng_normal(&rng) };

		draw_line(&canvas, a, b);
	}
	for (size_t k = 0; k < SIDE * SIDE; k++) {
		double v = 255.0 * ink * canvas.grey[k] + NOISE * soft_noise(&rng);

		pixel[k] = (uint8_t)(v < 0.0 ? 0.0 : v > 255.0 ? 255.0 : v);
	}
	return digit;
}

/* ---- files ---- */

static int make_dir(const char *dir, struct err *err)
{
	if (mkdir(dir, 0777) == 0 || errno == EEXIST)
		return 0;
	return err_fail(err,
			errno == ENOENT   ? ERR_NOTFOUND
			: errno == EACCES ? ERR_PERM
					  : ERR_IO,
			"cannot make the folder %s: %s", text_tail(dir, 300), strerror(errno));
}

/* DIR/NAME, to be freed. */
static char *path_in(const char *dir, const char *name)
{
	size_t size = strlen(dir) + strlen(name) + 2;
	char *path = mem_alloc(size);

	if (path)
		snprintf(path, size, "%s/%s", dir, name);
	return path;
}

static int write_in(const char *dir, const char *name, const void *bytes, size_t len, struct err *err)
{
	char *path = path_in(dir, name);
	int rc = path ? io_write_file(path, bytes, len, err) : err_nomem(err, "a path");

	free(path);
	return rc;
}

static const char *const file_name[2][2] = {
	{ "train-images-idx3-ubyte", "train-labels-idx1-ubyte" },
	{ "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte" },
};

static int write_part(const char *dir, int test, size_t n, uint64_t seed, struct err *err)
{
	const uint32_t dim[] = { (uint32_t)n, SIDE, SIDE };
	uint8_t *image = mem_array(n + 1, SIDE * SIDE), *label = mem_array(n + IDX_HEADER_MAX, 1);
	size_t head_image, head_label;
	int rc;

	if (!image || !label) {
		rc = err_nomem(err, "%zu digits", n);
		goto out;
	}
	head_image = idx_put_header(image, dim, 3);
	head_label = idx_put_header(label, dim, 1);
	for (size_t i = 0; i < n; i++)
		label[head_label + i] = digits_draw(seed, test, i, image + head_image + i * SIDE * SIDE);
	rc = write_in(dir, file_name[test][0], image, head_image + n * SIDE * SIDE, err);
	if (!rc)
		rc = write_in(dir, file_name[test][1], label, head_label + n, err);
out:
	free(image);
	free(label);
	return rc;
}

int digits_write(const char *dir, size_t n_train, size_t n_test, uint64_t seed, struct err *err)
{
	int rc;

	if (n_train < 1 || n_test < 1 || n_train > DIGITS_MAX || n_test > DIGITS_MAX)
		return err_fail(err, ERR_ARG,
				"%zu digits to train with and %zu to test: from 1 to %u of each", n_train,
				n_test, DIGITS_MAX);
	rc = make_dir(dir, err);
	if (!rc)
		rc = write_part(dir, 0, n_train, seed, err);
	return rc ? rc : write_part(dir, 1, n_test, seed, err);
}

/* ---- the cache ---- */

/* "BASE/postrider", its parents made; to be freed. */
static int cache_base(char **out, struct err *err)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *base = NULL, *dir;
	int rc;

	if (xdg && *xdg == '/')
		base = mem_strdup(xdg);
	else if (home && *home == '/')
		base = path_in(home, ".cache");
	else
		return err_fail(err, ERR_ARG,
				"neither XDG_CACHE_HOME nor HOME says where to keep digits: say --data DIR");
	dir = base ? path_in(base, "postrider") : NULL;
	rc = dir ? 0 : err_nomem(err, "a path");
	if (!rc)
		rc = make_dir(base, err);
	if (!rc)
		rc = make_dir(dir, err);
	free(base);
	if (rc)
		free(dir);
	else
		*out = dir;
	return rc;
}

static void remove_digits(const char *dir)
{
	for (int k = 0; k < 4; k++) {
		char *path = path_in(dir, file_name[k / 2][k % 2]);

		if (path)
			unlink(path);
		free(path);
	}
	rmdir(dir);
}

int digits_cached(char **out_dir, void (*notice)(const char *dir), struct err *err)
{
	char *base = NULL, *dir = NULL, *temp = NULL;
	int rc = cache_base(&base, err);

	if (rc)
		return rc;
	dir = path_in(base, "digits-" CACHE_VERSION);
	temp = path_in(base, ".digits-XXXXXX");
	if (!dir || !temp) {
		rc = err_nomem(err, "a path");
		goto out;
	}
	if (access(dir, F_OK) == 0)
		goto out;
	if (notice)
		notice(dir);
	if (!mkdtemp(temp)) {
		rc = err_fail(err, ERR_IO, "cannot make a folder in %s: %s", text_tail(base, 300),
			      strerror(errno));
		goto out;
	}
	rc = digits_write(temp, CACHE_TRAIN, CACHE_TEST, CACHE_SEED, err);
	/* Another process may have been faster: its files are the same to the byte. */
	if (!rc && rename(temp, dir) < 0 && errno != ENOTEMPTY && errno != EEXIST)
		rc = err_fail(err, ERR_IO, "cannot rename %s: %s", text_tail(temp, 300), strerror(errno));
	remove_digits(temp);
out:
	free(base);
	free(temp);
	if (rc)
		free(dir);
	else
		*out_dir = dir;
	return rc;
}

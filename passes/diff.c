/*
 * diff.c: two texts, compared line by line by Myers' greedy algorithm: the
 * fewest lines that go and come.
 */
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"

enum { EFFORT = 4000 };		/* edits; beyond it all lines differ */

struct lines {
	int n;
	char **at;
	uint64_t *hash;
};

static struct lines lines_of(struct arena *a, const char *s)
{
	LIST(char *) at = {0};
	struct lines l;

	while (*s) {
		size_t n = strcspn(s, "\n");

		PUSH(a, at, arena_text(a, "%.*s", (int)n, s));
		s += n + (s[n] == '\n');
	}
	l.n = at.n;
	l.at = at.at;
	l.hash = NEW_N(a, uint64_t, at.n + 1);
	for (int i = 0; i < at.n; i++)
		l.hash[i] = hash_bytes(0, at.at[i], strlen(at.at[i]));
	return l;
}

static bool same(const struct lines *x, int i, const struct lines *y, int j)
{
	return x->hash[i] == y->hash[j] && !strcmp(x->at[i], y->at[j]);
}

/* After D edits the furthest x on each diagonal k = x - y is far[k + D], for
 * k = -D, -D + 2, ..., D. All are kept for the way back. */
struct trace {
	LIST(int *) far;
};

static int step_down(const int *before, int d, int k)
{
	/* `before` belongs to d - 1: its diagonal j is at j + d - 1. */
	return k == -d || (k != d && before[k - 1 + d - 1] <
				     before[k + 1 + d - 1]);
}

static bool search(struct arena *a, const struct lines *x,
		   const struct lines *y, struct trace *t)
{
	for (int d = 0; d <= x->n + y->n && d <= EFFORT; d++) {
		int *far = NEW_N(a, int, 2 * d + 1);
		const int *before = d ? t->far.at[d - 1] : NULL;

		PUSH(a, t->far, far);
		for (int k = -d; k <= d; k += 2) {
			int i = 0;

			if (d && step_down(before, d, k))
				i = before[k + 1 + d - 1];
			else if (d)
				i = before[k - 1 + d - 1] + 1;
			while (i < x->n && i - k < y->n &&
			       same(x, i, y, i - k))
				i++;
			far[k + d] = i;
			if (i >= x->n && i - k >= y->n)
				return true;
		}
	}
	return false;
}

/* Marks the lines that go and those that come. */
static void walk_back(const struct trace *t, int i, int j, bool *goes,
		      bool *comes)
{
	for (int d = t->far.n - 1; d > 0; d--) {
		const int *before = t->far.at[d - 1];
		int k = i - j;

		if (step_down(before, d, k)) {
			i = before[k + 1 + d - 1];
			j = i - (k + 1);
			comes[j] = true;
		} else {
			i = before[k - 1 + d - 1];
			j = i - (k - 1);
			goes[i] = true;
		}
	}
}

static void print_hunk(const struct lines *x, const struct lines *y, int i,
		       int ni, int j, int nj, FILE *out)
{
	fprintf(out, "@@ -%d,%d +%d,%d @@\n", ni ? i + 1 : i, ni,
		nj ? j + 1 : j, nj);
	for (int k = 0; k < ni; k++)
		fprintf(out, "-%s\n", x->at[i + k]);
	for (int k = 0; k < nj; k++)
		fprintf(out, "+%s\n", y->at[j + k]);
}

static void print_hunks(const struct lines *x, const struct lines *y,
			const bool *goes, const bool *comes, FILE *out)
{
	int i = 0, j = 0;

	while (i < x->n || j < y->n) {
		int ni = 0, nj = 0;

		while (i + ni < x->n && goes[i + ni])
			ni++;
		while (j + nj < y->n && comes[j + nj])
			nj++;
		if (ni || nj)
			print_hunk(x, y, i, ni, j, nj, out);
		i += ni + 1;
		j += nj + 1;
	}
}

void diff_print(const char *old, const char *new, FILE *out)
{
	struct arena *a = arena_new();
	struct lines x = lines_of(a, old), y = lines_of(a, new);
	bool *goes = NEW_N(a, bool, x.n + 1), *comes = NEW_N(a, bool, y.n + 1);
	struct trace t = {{0}};

	if (search(a, &x, &y, &t)) {
		walk_back(&t, x.n, y.n, goes, comes);
	} else {
		memset(goes, true, (size_t)x.n);
		memset(comes, true, (size_t)y.n);
	}
	print_hunks(&x, &y, goes, comes, out);
	arena_free(a);
}

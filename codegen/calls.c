/*
 * calls.c: where a step repeats itself.
 *
 * Layers of equal shape give the same calls on other buffers. A run of them
 * becomes a loop, so that neither the emitted text nor the time to compile it
 * grows with the depth of a model. Equality of two blocks of calls is asked
 * of prefix hashes, and only distances at which the first call of a block
 * comes again are tried, so the search is linear.
 */
#include <string.h>

#include "codegen/codegen.h"

enum {
	MOST_PERIOD = 256, /* calls in a turn */
	TRIES = 12,        /* distances tried at one place */
	LEAST_CALLS = 64,  /* shorter steps stay as they are */
	LEAST_TURNS = 4,
	LEAST_SAVED = 24, /* calls that a loop must save */
};

static const uint64_t BASE = UINT64_C(0x9e3779b97f4a7c15) | 1;

/* Prefix hashes of the calls' kinds: of calls [i, j) it is
 * sum[j] - sum[i] * power[j - i]. */
struct finder {
	int n;
	uint64_t *kind, *sum, *power;
	int *again; /* the next call of the same kind, or n */
};

static uint64_t call_kind(const struct call *c)
{
	uint64_t h = hash_bytes(c->status, c->function, strlen(c->function));

	for (int i = 0; i < c->args.n; i++) {
		const struct arg *arg = &c->args.at[i];
		int kind = arg->kind;

		h = hash_bytes(h, &kind, sizeof kind);
		if (arg->text != NULL)
			h = hash_bytes(h, arg->text, strlen(arg->text));
	}
	return h;
}

static void fill_sums(struct finder *f)
{
	f->power[0] = 1;
	for (int i = 0; i < f->n; i++) {
		f->power[i + 1] = f->power[i] * BASE;
		f->sum[i + 1] = f->sum[i] * BASE + f->kind[i];
	}
}

struct seen {
	uint64_t kind;
	int at;
};

/* From the last call to the first, with a table of the nearest of a kind. */
static void fill_again(struct arena *a, struct finder *f)
{
	uint64_t room = 64;
	struct seen *seen;

	while (room < 2 * (uint64_t)f->n)
		room *= 2;
	seen = NEW_N(a, struct seen, room);
	for (int i = f->n - 1; i >= 0; i--) {
		uint64_t h = f->kind[i] ^ f->kind[i] >> 32;

		while (seen[h & (room - 1)].at != 0 &&
		       seen[h & (room - 1)].kind != f->kind[i])
			h++;
		h &= room - 1;
		f->again[i] = seen[h].at != 0 ? seen[h].at - 1 : f->n;
		seen[h] = (struct seen){f->kind[i], i + 1};
	}
}

static uint64_t block_hash(const struct finder *f, int at, int n)
{
	return f->sum[at + n] - f->sum[at] * f->power[n];
}

static bool block_eq(const struct finder *f, int i, int j, int n)
{
	return j + n <= f->n && block_hash(f, i, n) == block_hash(f, j, n);
}

static int count_turns(const struct finder *f, int at, int period)
{
	int count = 1;

	while (block_eq(f, at, at + count * period, period))
		count++;
	return count;
}

/* The loop that begins at AT and saves most calls; the shortest of those. */
static struct turn best_turn(const struct finder *f, int at)
{
	struct turn best = {at, 1, 1};
	int saved = LEAST_SAVED - 1, next = f->again[at];

	for (int i = 0; i < TRIES && next - at <= MOST_PERIOD; i++) {
		int period = next - at, count;

		if (next >= f->n)
			break;
		count = count_turns(f, at, period);
		if (count >= LEAST_TURNS && (count - 1) * period > saved) {
			best = (struct turn){at, period, count};
			saved = (count - 1) * period;
		}
		next = f->again[next];
	}
	return best;
}

void find_turns(struct arena *a, const struct call *calls, int n,
		struct turns *out)
{
	struct finder f = {
		.n = n,
		.kind = NEW_N(a, uint64_t, n + 1),
		.sum = NEW_N(a, uint64_t, n + 1),
		.power = NEW_N(a, uint64_t, n + 1),
		.again = NEW_N(a, int, n + 1),
	};

	for (int i = 0; i < n; i++)
		f.kind[i] = call_kind(&calls[i]);
	fill_sums(&f);
	fill_again(a, &f);
	for (int i = 0; i < n;) {
		struct turn t = {i, 1, 1};

		if (n > LEAST_CALLS)
			t = best_turn(&f, i);
		PUSH(a, out->at, t);
		i += t.period * t.count;
	}
}

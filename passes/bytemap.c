/*
 * bytemap.c: a hash table from byte strings to pointers. What inference
 * computes once for all equal operators is found again by such a key.
 */
#include <string.h>

#include "passes/passes.h"

struct byteslot {
	uint64_t hash;
	const void *key;
	size_t n;
	void *value;
};

/* Eight bytes at a time; keys are long and looked up often. */
static uint64_t mix(const void *key, size_t n)
{
	const unsigned char *p = key;
	uint64_t hash = n, word;

	for (size_t i = 0; i < n; i += sizeof word) {
		word = 0;
		memcpy(&word, p + i, n - i < sizeof word ? n - i : sizeof word);
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 32;
	}
	return hash;
}

static struct byteslot *find(struct bytemap *m, uint64_t hash, const void *key,
			     size_t n)
{
	size_t i = hash & (m->room - 1);

	for (;; i = (i + 1) & (m->room - 1)) {
		struct byteslot *s = &m->at[i];

		if (!s->key)
			return s;
		if (s->hash == hash && s->n == n && !memcmp(s->key, key, n))
			return s;
	}
}

static void grow(struct arena *a, struct bytemap *m)
{
	struct bytemap bigger = {0};

	bigger.room = m->room ? 2 * m->room : 64;
	bigger.n = m->n;
	bigger.at = NEW_N(a, struct byteslot, bigger.room);
	for (size_t i = 0; i < m->room; i++) {
		struct byteslot *s = &m->at[i];

		if (s->key)
			*find(&bigger, s->hash, s->key, s->n) = *s;
	}
	*m = bigger;
}

void **bytemap_at(struct arena *a, struct bytemap *m, const void *key, size_t n)
{
	uint64_t hash = mix(key, n);
	struct byteslot *s;

	if (2 * (m->n + 1) > m->room)
		grow(a, m);
	s = find(m, hash, key, n);
	if (!s->key) {
		void *copy = arena_alloc(a, n + 1);

		memcpy(copy, key, n);
		*s = (struct byteslot){hash, copy, n, NULL};
		m->n++;
	}
	return &s->value;
}

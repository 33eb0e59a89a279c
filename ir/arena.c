/*
 * arena.c: memory that is freed all at once, growing lists and texts.
 *
 * An arena is a list of blocks, each twice as large as the one before; a
 * request that does not fit the current block opens a new one. Big requests
 * get a block of their own, so that they waste nothing.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"

enum { FIRST = 1 << 12, BLOCK = 1 << 18, ALIGN = 16 };
enum { RING = 64, RING_TEXT = 512 };

struct block {
	struct block *next;
	size_t used, size;
	_Alignas(ALIGN) char bytes[];
};

struct arena {
	struct block *blocks;
	size_t next;		/* size of the next one */
};

static void *must(void *p)
{
	if (!p) {
		fprintf(stderr, "sbpc: error: out of memory\n");
		exit(3);
	}
	return p;
}

struct arena *arena_new(void)
{
	struct arena *a = must(calloc(1, sizeof *a));

	a->next = FIRST;
	return a;
}

void arena_free(struct arena *a)
{
	struct block *b, *next;

	if (!a)
		return;
	for (b = a->blocks; b; b = next) {
		next = b->next;
		free(b);
	}
	free(a);
}

static struct block *block_new(size_t size)
{
	struct block *b;

	if (size > SIZE_MAX - sizeof *b)
		must(NULL);
	b = must(calloc(1, sizeof *b + size));
	b->size = size;
	return b;
}

/* A block of its own for SIZE bytes, behind the one that is being filled. */
static void *alloc_big(struct arena *a, size_t size)
{
	struct block *b = block_new(size);

	b->used = size;
	if (a->blocks) {
		b->next = a->blocks->next;
		a->blocks->next = b;
	} else {
		a->blocks = b;
	}
	return b->bytes;
}

void *arena_alloc(struct arena *a, size_t size)
{
	struct block *b = a->blocks;
	void *p;

	if (size > SIZE_MAX - ALIGN)
		must(NULL);
	size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (size > a->next / 4)
		return alloc_big(a, size);
	if (!b || b->size - b->used < size) {
		b = block_new(a->next);
		b->next = a->blocks;
		a->blocks = b;
		if (a->next < BLOCK)
			a->next *= 2;
	}
	p = b->bytes + b->used;
	b->used += size;
	return p;
}

/* Bytes of the text that FORMAT gives. */
static size_t measure(const char *format, va_list args)
{
	int n = format ? vsnprintf(NULL, 0, format, args) : 0;

	return n < 0 ? 0 : (size_t)n;
}

char *arena_text(struct arena *a, const char *format, ...)
{
	va_list args;
	char *s;
	size_t n;

	va_start(args, format);
	n = measure(format, args);
	va_end(args);
	s = arena_alloc(a, n + 1);
	va_start(args, format);
	vsnprintf(s, n + 1, format, args);
	va_end(args);
	return s;
}

void list_room(struct arena *a, void **at, int n, int *room, size_t size)
{
	void *p;

	if (n < *room)
		return;
	*room = *room ? 2 * *room : 8;
	p = arena_alloc(a, size * (size_t)*room);
	if (n)
		memcpy(p, *at, size * (size_t)n);
	*at = p;
}

/* ---- texts ---- */

static void text_room(struct text *t, size_t more)
{
	if (t->n + more + 1 <= t->room)
		return;
	t->room = 2 * t->room + more + 64;
	t->at = must(realloc(t->at, t->room));
}

void text_add_n(struct text *t, const char *s, size_t n)
{
	text_room(t, n);
	memcpy(t->at + t->n, s, n);
	t->n += n;
	t->at[t->n] = 0;
}

void text_add(struct text *t, const char *format, ...)
{
	va_list args;
	size_t n;

	va_start(args, format);
	n = measure(format, args);
	va_end(args);
	text_room(t, n);
	va_start(args, format);
	vsnprintf(t->at + t->n, n + 1, format, args);
	va_end(args);
	t->n += n;
}

void text_free(struct text *t)
{
	free(t->at);
	*t = (struct text){0};
}

static bool add_special(struct text *t, double d)
{
	if (isnan(d))
		text_add(t, "nan");
	else if (isinf(d))
		text_add(t, d < 0 ? "-inf" : "inf");
	else
		return false;
	return true;
}

void text_add_double(struct text *t, double d)
{
	char s[40];
	int digits;

	if (add_special(t, d))
		return;
	for (digits = 1; digits <= 17; digits++) {
		snprintf(s, sizeof s, "%.*g", digits, d);
		if (strtod(s, NULL) == d)
			break;
	}
	text_add(t, "%s", s);
}

void text_add_float(struct text *t, float f)
{
	char s[40];
	int digits;

	if (add_special(t, (double)f))
		return;
	for (digits = 1; digits <= 9; digits++) {
		snprintf(s, sizeof s, "%.*g", digits, (double)f);
		if (strtof(s, NULL) == f)
			break;
	}
	text_add(t, "%s", s);
}

const char *text_brief(const char *format, ...)
{
	static char ring[RING][RING_TEXT];
	static int at;
	char *s = ring[at++ % RING];
	va_list args;

	va_start(args, format);
	vsnprintf(s, RING_TEXT, format, args);
	va_end(args);
	return s;
}

uint64_t hash_bytes(uint64_t seed, const void *p, size_t n)
{
	const unsigned char *c = p;
	uint64_t h = seed ? seed : 0xcbf29ce484222325u;

	for (; n; n--)
		h = (h ^ *c++) * 0x100000001b3u;
	return h;
}

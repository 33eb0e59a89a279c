/*
 * source.c: all sources in one address space, so that a place is two numbers.
 *
 * A source of n bytes takes n + 1 addresses: its end is a place too. Address
 * 0 belongs to none.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ir/ir.h"

/* A source, and where its lines begin once that was asked for. */
struct entry {
	struct source source;
	LIST(uint32_t) start;
};

static struct arena *memory;
static LIST(struct entry *) sources;
static uint32_t next_base = 1;

const struct source *source_text(const char *path, const char *text, size_t n)
{
	struct entry *e;
	char *copy;

	if (n >= UINT32_MAX - next_base - 1) {
		errno = EFBIG;
		return NULL;
	}
	if (!memory)
		memory = arena_new();
	copy = arena_alloc(memory, n + 1);
	memcpy(copy, text, n);
	e = NEW(memory, struct entry);
	e->source.path = arena_text(memory, "%s", path);
	e->source.text = copy;
	e->source.base = next_base;
	e->source.size = (uint32_t)n;
	next_base += (uint32_t)n + 1;
	PUSH(memory, sources, e);
	return &e->source;
}

/* All bytes of FD in T; false with errno. */
static bool read_all(int fd, struct text *t)
{
	char buffer[1 << 16];
	ssize_t n;

	for (;;) {
		n = read(fd, buffer, sizeof buffer);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0;
		text_add_n(t, buffer, (size_t)n);
		if (t->n >= UINT32_MAX) {
			errno = EFBIG;
			return false;
		}
	}
}

const struct source *source_read(const char *path)
{
	struct entry *e = NULL;
	struct text t = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC), error;

	if (fd < 0)
		return NULL;
	text_add_n(&t, "", 0);
	if (read_all(fd, &t) && source_text(path, t.at, t.n)) {
		e = sources.at[sources.n - 1];
		e->source.file = true;
	}
	error = errno;
	close(fd);
	text_free(&t);
	errno = error;
	return e ? &e->source : NULL;
}

static struct entry *entry_of(Span at)
{
	int lo = 0, hi = sources.n, mid;
	const struct source *s;

	while (hi - lo > 1) {
		mid = (lo + hi) / 2;
		if (sources.at[mid]->source.base <= at.lo)
			lo = mid;
		else
			hi = mid;
	}
	if (!at.lo || lo >= sources.n)
		return NULL;
	s = &sources.at[lo]->source;
	return at.lo - s->base <= s->size ? sources.at[lo] : NULL;
}

const struct source *source_of(Span at)
{
	struct entry *e = entry_of(at);

	return e ? &e->source : NULL;
}

int source_count(void)
{
	return sources.n;
}

const struct source *source_nth(int i)
{
	return i >= 0 && i < sources.n ? &sources.at[i]->source : NULL;
}

static void find_lines(struct entry *e)
{
	uint32_t i;

	if (e->start.n)
		return;
	PUSH(memory, e->start, 0);
	for (i = 0; i < e->source.size; i++)
		if (e->source.text[i] == '\n')
			PUSH(memory, e->start, i + 1);
}

struct place place_of(Span at)
{
	struct entry *e = entry_of(at);
	int lo = 0, hi, mid;
	uint32_t offset;

	if (!e)
		return (struct place){"?", 0, 0};
	find_lines(e);
	offset = at.lo - e->source.base;
	for (hi = e->start.n; hi - lo > 1;) {
		mid = (lo + hi) / 2;
		if (e->start.at[mid] <= offset)
			lo = mid;
		else
			hi = mid;
	}
	return (struct place){e->source.path, lo + 1,
			      (int)(offset - e->start.at[lo]) + 1};
}

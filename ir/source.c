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
#include <sys/stat.h>
#include <unistd.h>

#include "ir/ir.h"

static struct arena *memory;
static LIST(struct source *) sources;
static uint32_t next_base = 1;

const struct source *source_text(const char *path, const char *text, size_t n)
{
	struct source *s;
	char *copy;

	if (n >= UINT32_MAX - next_base - 1) {
		errno = EFBIG;
		return NULL;
	}
	if (!memory)
		memory = arena_new();
	copy = arena_alloc(memory, n + 1);
	memcpy(copy, text, n);
	s = NEW(memory, struct source);
	s->path = arena_text(memory, "%s", path);
	s->text = copy;
	s->base = next_base;
	s->size = (uint32_t)n;
	next_base += (uint32_t)n + 1;
	PUSH(memory, sources, s);
	return s;
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
	const struct source *s = NULL;
	struct text t = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC), error;

	if (fd < 0)
		return NULL;
	text_add_n(&t, "", 0);
	if (read_all(fd, &t))
		s = source_text(path, t.at, t.n);
	error = errno;
	close(fd);
	text_free(&t);
	errno = error;
	return s;
}

const struct source *source_of(Span at)
{
	int lo = 0, hi = sources.n, mid;

	if (!at.lo)
		return NULL;
	while (hi - lo > 1) {
		mid = (lo + hi) / 2;
		if (sources.at[mid]->base <= at.lo)
			lo = mid;
		else
			hi = mid;
	}
	if (lo >= sources.n || at.lo - sources.at[lo]->base >
	    sources.at[lo]->size)
		return NULL;
	return sources.at[lo];
}

int source_count(void)
{
	return sources.n;
}

const struct source *source_nth(int i)
{
	return i >= 0 && i < sources.n ? sources.at[i] : NULL;
}

/* Where lines begin, for the source that was asked for last. */
static struct {
	const struct source *of;
	LIST(uint32_t) start;
} lines;

static void find_lines(const struct source *s)
{
	uint32_t i;

	if (lines.of == s)
		return;
	lines.of = s;
	lines.start.n = 0;
	PUSH(memory, lines.start, 0);
	for (i = 0; i < s->size; i++)
		if (s->text[i] == '\n')
			PUSH(memory, lines.start, i + 1);
}

struct place place_of(Span at)
{
	const struct source *s = source_of(at);
	int lo = 0, hi, mid;
	uint32_t offset;

	if (!s)
		return (struct place){"?", 0, 0};
	find_lines(s);
	offset = at.lo - s->base;
	for (hi = lines.start.n; hi - lo > 1;) {
		mid = (lo + hi) / 2;
		if (lines.start.at[mid] <= offset)
			lo = mid;
		else
			hi = mid;
	}
	return (struct place){s->path, lo + 1,
			      (int)(offset - lines.start.at[lo]) + 1};
}

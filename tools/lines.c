/*
 * lines.c: passes on what ranks print, whole lines only, however long.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/launch.h"

int lines_error;

static void write_all(int fd, const char *at, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, at, n);

		if (done < 0 && errno == EAGAIN) {
			struct pollfd p = {.fd = fd, .events = POLLOUT};

			poll(&p, 1, -1);
			continue;
		}
		if (done < 0 && errno != EINTR) {
			if (fd == STDOUT_FILENO && !lines_error)
				lines_error = errno;
			return;
		}
		if (done > 0) {
			at += done;
			n -= (size_t)done;
		}
	}
}

static void append(char **to, size_t *n, size_t *room, const char *at,
		   size_t size)
{
	if (*n + size > *room) {
		*room = 2 * (*n + size) + 256;
		*to = realloc(*to, *room);
		if (!*to) {
			fprintf(stderr, "sbprun: error: out of memory\n");
			exit(2);
		}
	}
	memcpy(*to + *n, at, size);
	*n += size;
}

static size_t whole_lines(const char *at, size_t n)
{
	const char *last = memrchr(at, '\n', n);

	return last ? (size_t)(last - at) + 1 : 0;
}

/* The first N bytes of PART, each line with its label, in one piece. */
static void write_lines(struct lines *l, size_t n)
{
	char *out = NULL;
	size_t size = 0, room = 0;

	if (!l->label[0]) {
		write_all(l->to, l->part, n);
		return;
	}
	for (size_t at = 0; at < n;) {
		const char *end = memchr(l->part + at, '\n', n - at);
		size_t line = (size_t)(end - (l->part + at)) + 1;

		append(&out, &size, &room, l->label, strlen(l->label));
		append(&out, &size, &room, l->part + at, line);
		at += line;
	}
	write_all(l->to, out, size);
	free(out);
}

bool lines_move(struct lines *l)
{
	char chunk[65536];
	ssize_t n = read(l->from, chunk, sizeof chunk);
	size_t old = l->n, whole;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0) {
		lines_end(l);
		return false;
	}
	append(&l->part, &l->n, &l->room, chunk, (size_t)n);
	whole = whole_lines(l->part + old, (size_t)n);
	if (!whole)
		return true;
	whole += old;
	write_lines(l, whole);
	l->n -= whole;
	memmove(l->part, l->part + whole, l->n);
	return true;
}

void lines_end(struct lines *l)
{
	if (l->from >= 0)
		close(l->from);
	l->from = -1;
	if (l->n > 0) {
		append(&l->part, &l->n, &l->room, "\n", 1);
		write_lines(l, l->n);
	}
	l->n = l->room = 0;
	free(l->part);
	l->part = NULL;
}

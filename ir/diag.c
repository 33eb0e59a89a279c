/*
 * diag.c: what the user is told.
 *
 * An error that repeats the one before it (a def that is called often, an
 * unrolled loop) is counted but not printed again, its notes neither.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"

enum { WIDEST = 120, TRAIL_SHOWN = 8 };

static int errors;
static const char *pass_name;
static uint64_t last;		/* hash of the last message */
static bool muted;

/* The bytes of the line that holds offset AT of S. */
static void line_around(const struct source *s, uint32_t at, uint32_t *lo,
			uint32_t *hi)
{
	for (*lo = at; *lo > 0 && s->text[*lo - 1] != '\n';)
		--*lo;
	for (*hi = at; *hi < s->size && s->text[*hi] != '\n';)
		++*hi;
	if (*hi > *lo && s->text[*hi - 1] == '\r')
		--*hi;
}

static bool continues(char c)	/* a later byte of a UTF-8 character */
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Moves LO and HI around FROM so that at most WIDEST bytes are shown. */
static void cut_line(const struct source *s, uint32_t from, uint32_t *lo,
		     uint32_t *hi)
{
	if (from - *lo > WIDEST * 2 / 3)
		*lo = from - WIDEST * 2 / 3;
	while (*lo < from && continues(s->text[*lo]))
		++*lo;
	if (*hi - *lo > WIDEST)
		*hi = *lo + WIDEST;
	while (*hi < s->size && continues(s->text[*hi]))
		++*hi;
}

static void put_carets(const struct source *s, uint32_t lo, uint32_t from,
		       uint32_t to)
{
	uint32_t i;

	fputs("      | ", stderr);
	for (i = lo; i < from; i++)
		if (s->text[i] == '\t')
			fputc('\t', stderr);
		else if (!continues(s->text[i]))
			fputc(' ', stderr);
	fputc('^', stderr);
	for (i = from + 1; i < to; i++)
		if (!continues(s->text[i]))
			fputc('~', stderr);
	fputc('\n', stderr);
}

static void put_line(const struct source *s, uint32_t lo, uint32_t hi)
{
	uint32_t i;
	unsigned char c;

	for (i = lo; i < hi; i++) {
		c = (unsigned char)s->text[i];
		fputc(c < ' ' && c != '\t' ? '?' : c, stderr);
	}
	fputc('\n', stderr);
}

static void show_source(Span at)
{
	const struct source *s = source_of(at);
	uint32_t lo, hi, from, to;

	if (!s)
		return;
	from = at.lo - s->base;
	line_around(s, from, &lo, &hi);
	cut_line(s, from, &lo, &hi);
	to = at.hi > at.lo ? from + (at.hi - at.lo) : from + 1;
	if (to > hi)
		to = hi;	/* the span goes on in the next line */
	fprintf(stderr, "%5d | ", place_of(at).line);
	put_line(s, lo, hi);
	put_carets(s, lo, from, to);
}

static void head(Span at, const char *kind, const char *format, va_list args)
{
	struct place p = place_of(at);

	if (p.line)
		fprintf(stderr, "%s:%d:%d: %s: ", p.path, p.line, p.column,
			kind);
	else
		fprintf(stderr, "sbpc: %s: ", kind);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

/* Whether the message is the same as the last one. */
static bool repeats(Span at, const char *format, va_list args)
{
	char s[512];
	uint64_t h;
	bool same;

	vsnprintf(s, sizeof s, format, args);
	h = hash_bytes(hash_bytes(0, &at, sizeof at), s, strlen(s));
	same = h == last && at.lo;
	last = h;
	return same;
}

static void report(Span at, const char *kind, const char *format,
		   va_list args)
{
	va_list copy;

	va_copy(copy, args);
	muted = repeats(at, format, copy);
	va_end(copy);
	if (muted)
		return;
	head(at, kind, format, args);
	show_source(at);
}

void diag_error(Span at, const char *format, ...)
{
	va_list args;

	errors++;
	va_start(args, format);
	report(at, "error", format, args);
	va_end(args);
}

void diag_warn(Span at, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	report(at, "warning", format, args);
	va_end(args);
}

void diag_note(Span at, const char *format, ...)
{
	va_list args;

	if (muted)
		return;
	va_start(args, format);
	head(at, "note", format, args);
	va_end(args);
}

void diag_hint(const char *format, ...)
{
	va_list args;

	if (muted)
		return;
	va_start(args, format);
	fputs("      = hint: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

void diag_trail(const struct trail *up)
{
	int depth = 0;

	for (; up; up = up->up) {
		if (depth++ == TRAIL_SHOWN && up->up) {
			for (depth = 0; up->up; up = up->up)
				depth++;
			diag_note((Span){0, 0}, "... and %d more call%s", depth,
				  depth == 1 ? "" : "s");
		}
		diag_note(up->at, "in this call of '%s'", up->def);
	}
}

int diag_errors(void)
{
	return errors;
}

void diag_pass(const char *name)
{
	pass_name = name;
}

void diag_reset(void)
{
	errors = 0;
	last = 0;
	muted = false;
}

void bug_at(const char *file, int line, const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("sbpc: bug: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, " (%s%s%s:%d)\n", pass_name ? pass_name : "",
		pass_name ? ", " : "", file, line);
	exit(3);
}

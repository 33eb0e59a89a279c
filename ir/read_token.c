/*
 * read_token.c: words, numbers and strings of a graph's text.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ir/read.h"

void read_fail(struct reader *r, const char *what)
{
	uint32_t at = r->source->base + (uint32_t)(r->s - r->source->text);

	if (!r->failed)
		diag_error((Span){at, at + 1}, "%s", what);
	r->failed = true;
	r->s = r->end;
}

void read_blank(struct reader *r)
{
	while (r->s < r->end) {
		if (*r->s == '#')
			while (r->s < r->end && *r->s != '\n')
				r->s++;
		else if (isspace((unsigned char)*r->s))
			r->s++;
		else
			break;
	}
}

bool read_next_is(struct reader *r, const char *what)
{
	read_blank(r);
	return !strncmp(r->s, what, strlen(what));
}

bool read_word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* Takes a sign, or a whole word. */
bool read_take(struct reader *r, const char *what)
{
	size_t n = strlen(what);

	if (!read_next_is(r, what) ||
	    (read_word_char(what[0]) && read_word_char(r->s[n])))
		return false;
	r->s += n;
	return true;
}

void read_expect(struct reader *r, const char *what)
{
	if (!r->failed && !read_take(r, what))
		read_fail(r, text_brief("'%s' expected", what));
}

Name read_word(struct reader *r)
{
	const char *start;

	read_blank(r);
	start = r->s;
	while (read_word_char(*r->s))
		r->s++;
	if (r->s == start)
		read_fail(r, "a name expected");
	return name_n(start, (size_t)(r->s - start));
}

static int hex_digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : (c | 32) - 'a' + 10;
}

/* "..." as put_quoted writes it. */
Name read_quoted(struct reader *r)
{
	struct text t = {0};
	Name name;
	char c;

	read_expect(r, "\"");
	text_add_n(&t, "", 0);
	while (!r->failed && *r->s != '"') {
		if (r->s >= r->end || *r->s == '\n') {
			read_fail(r, "a string is not closed");
			break;
		}
		c = *r->s++;
		if (c == '\\' && *r->s == 'x' &&
		    isxdigit((unsigned char)r->s[1]) &&
		    isxdigit((unsigned char)r->s[2])) {
			c = (char)(16 * hex_digit(r->s[1]) +
				   hex_digit(r->s[2]));
			r->s += 3;
		} else if (c == '\\' && r->s < r->end) {
			c = *r->s++;
		}
		text_add_n(&t, &c, 1);
	}
	if (!r->failed)
		r->s++;
	name = name_of(t.at);
	text_free(&t);
	return name;
}

Name read_name(struct reader *r)
{
	return read_next_is(r, "\"") ? read_quoted(r) : read_word(r);
}

int64_t read_integer(struct reader *r)
{
	char *end;
	long long i;

	read_blank(r);
	errno = 0;
	i = strtoll(r->s, &end, 10);
	if (end == r->s || errno)
		read_fail(r, "an integer expected");
	else
		r->s = end;
	return r->failed ? 0 : i;
}

int read_small(struct reader *r, int lo, int hi, const char *what)
{
	int64_t i = read_integer(r);

	if (!r->failed && (i < lo || i > hi))
		read_fail(r, text_brief("%s expected", what));
	return r->failed ? lo : (int)i;
}

double read_number(struct reader *r)
{
	char *end;
	double d;

	read_blank(r);
	d = strtod(r->s, &end);
	if (end == r->s)
		read_fail(r, "a number expected");
	else
		r->s = end;
	return r->failed ? 0 : d;
}

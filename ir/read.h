/*
 * read.h: between read.c, read_token.c and read_part.c.
 *
 * After the first error the reader stands still at the end of the text: loops
 * end, and functions give zeros.
 */
#ifndef SBPC_IR_READ_H
#define SBPC_IR_READ_H

#include "ir/ir.h"

struct reader {
	struct graph *g;
	struct arena *a;
	const struct source *source;
	const char *s, *end;
	bool failed;
	LIST(struct value *) by_id;	/* NULL: not defined yet */
};

/* ---- read_token.c ---- */

void read_fail(struct reader *r, const char *what);
void read_blank(struct reader *r);	/* spaces and comments */
bool read_word_char(char c);
bool read_next_is(struct reader *r, const char *what);
/* Takes a sign, or a whole word, if it comes. */
bool read_take(struct reader *r, const char *what);
void read_expect(struct reader *r, const char *what);
Name read_word(struct reader *r);
Name read_quoted(struct reader *r);
Name read_name(struct reader *r);	/* either */
int64_t read_integer(struct reader *r);
int read_small(struct reader *r, int lo, int hi, const char *what);
double read_number(struct reader *r);

/* ---- read_part.c ---- */

void read_placement_line(struct reader *r);
const struct placement *read_placement(struct reader *r);
Dist read_distribution(struct reader *r);
Type read_type(struct reader *r);
void read_attrs(struct reader *r, struct node *n);
const struct init *read_init(struct reader *r, const struct value *v);

#endif

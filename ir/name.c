/*
 * name.c: interned names, spelling distance, patterns with * and ?.
 *
 * Names live as long as the process: two names are equal when their pointers
 * are.
 */
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"

enum { LONGEST = 64 };		/* longer names have no near ones */

static struct arena *memory;
static Name *table;
static size_t room, used;

static void grow(void)
{
	Name *old = table;
	size_t i, at, old_room = room;

	room = room ? 2 * room : 1024;
	table = NEW_N(memory, Name, room);
	for (i = 0; i < old_room; i++) {
		if (!old[i])
			continue;
		at = hash_bytes(0, old[i], strlen(old[i])) & (room - 1);
		while (table[at])
			at = (at + 1) & (room - 1);
		table[at] = old[i];
	}
}

Name name_n(const char *s, size_t n)
{
	size_t at;
	char *copy;

	if (!memory)
		memory = arena_new();
	if (2 * used >= room)
		grow();
	at = hash_bytes(0, s, n) & (room - 1);
	for (; table[at]; at = (at + 1) & (room - 1))
		if (!strncmp(table[at], s, n) && !table[at][n])
			return table[at];
	copy = arena_alloc(memory, n + 1);
	memcpy(copy, s, n);
	table[at] = copy;
	used++;
	return copy;
}

Name name_of(const char *s)
{
	return name_n(s, strlen(s));
}

static int min3(int a, int b, int c)
{
	int m = a < b ? a : b;

	return m < c ? m : c;
}

/* Edits from A to B: insert, delete, replace, swap two neighbours. */
static int distance(const char *a, int na, const char *b, int nb)
{
	int row[3][LONGEST + 1], i, j;
	int *before = row[0], *last = row[1], *now = row[2], *free_row;

	for (j = 0; j <= nb; j++)
		last[j] = j;
	for (i = 1; i <= na; i++) {
		now[0] = i;
		for (j = 1; j <= nb; j++) {
			now[j] = min3(last[j] + 1, now[j - 1] + 1,
				      last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				now[j] = min3(now[j], before[j - 2] + 1,
					      now[j]);
		}
		free_row = before;
		before = last;
		last = now;
		now = free_row;
	}
	return last[nb];
}

Name name_nearest(Name wanted, const Name *candidates, int n)
{
	int length = (int)strlen(wanted), best, d, i, m;
	Name nearest = NULL;

	if (length > LONGEST)
		return NULL;
	/* One edit for each three letters, and never all of them. */
	best = (length + 2) / 3 < length ? (length + 2) / 3 + 1 : 1;
	for (i = 0; i < n; i++) {
		m = (int)strlen(candidates[i]);
		if (m > LONGEST || abs(m - length) >= best)
			continue;
		d = distance(wanted, length, candidates[i], m);
		if (d < best && d) {
			best = d;
			nearest = candidates[i];
		}
	}
	return nearest;
}

bool name_match(const char *pattern, const char *name)
{
	const char *star = NULL, *mark = NULL;

	while (*name) {
		if (*pattern == '*') {
			star = ++pattern;
			mark = name;
		} else if (*pattern == '?' || *pattern == *name) {
			pattern++;
			name++;
		} else if (star) {
			pattern = star;	/* let the last * take one more */
			name = ++mark;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

/*
 * launch.h: starting the ranks of a program on this host, and ending them.
 */
#ifndef SBPC_LAUNCH_H
#define SBPC_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct launch {
	int n;			/* ranks */
	const char *address;	/* MASTER_ADDR */
	int port;		/* 0: a free one */
	bool label;
	char **argv;		/* of every rank, ended by NULL */
	int program;		/* an executable in memory, or -1: argv[0] */
};

/* Runs them all; returns sbprun's exit code. */
int launch(const struct launch *l);

/* ---- lines.c: whole lines from many pipes ---- */

struct lines {
	int from, to;		/* from: -1 when closed */
	char label[16];		/* "[3] ", or "" */
	char *part;		/* of a line without its end */
	size_t n, room;
};
/* Reads what is there and writes the whole lines of it. False at the end of
 * the stream, whose last line is then written too. */
bool lines_move(struct lines *l);
void lines_end(struct lines *l);
/* Why stdout could not be written; 0: it could. */
extern int lines_error;

/* ---- spawn.c ---- */

/* A child that dies with this process. 0 in the child, -1 on an error. */
pid_t fork_bound(void);
/* Starts RANK; its pipes are in OUT and ERR. -1 with errno. */
pid_t spawn_rank(const struct launch *l, int rank, int *out, int *err);
/* Kills all that descends from this process. */
void kill_descendants(void);
/* A port that nobody else is given while this process lives; -1 with errno. */
int port_reserve(void);
void token_make(char *to, size_t size);

#endif

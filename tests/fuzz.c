/*
 * fuzz.c: feeds the front end with damaged programs:
 *	fuzz SECONDS PRELUDE PATH...
 * It takes the .sbp files under each PATH, mutates their bytes and words, and
 * compiles them; under the sanitizers a crash, a leak past the arena or an
 * overrun ends it. The numbers are fixed by SBPC_FUZZ_SEED (1), which the
 * last line prints with the iterations done.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "frontend/frontend.h"

enum { MAX_SEEDS = 400, MAX_TEXT = 20000, PER_CHILD = 50 };

struct seed {
	char *text;
	size_t n;
};
static struct seed seeds[MAX_SEEDS];
static int nseeds;
static uint64_t state;

static uint64_t number(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static size_t below(size_t n)
{
	return n ? (size_t)(number() % n) : 0;
}

/* ---- seeds ---- */

static void add_seed(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *text = malloc(MAX_TEXT);

	if (!f || !text || nseeds == MAX_SEEDS) {
		free(text);
		if (f)
			fclose(f);
		return;
	}
	seeds[nseeds++] = (struct seed){text, fread(text, 1, MAX_TEXT, f)};
	fclose(f);
}

static void add_seeds(const char *path, int depth)
{
	DIR *d = opendir(path);
	struct dirent *e;
	char name[4096 + 256];
	size_t n;

	if (!d)
		return;
	while ((e = readdir(d))) {
		n = strlen(e->d_name);
		snprintf(name, sizeof name, "%.4000s/%s", path, e->d_name);
		if (n > 4 && !strcmp(e->d_name + n - 4, ".sbp"))
			add_seed(name);
		else if (e->d_name[0] != '.' && depth > 0)
			add_seeds(name, depth - 1);
	}
	closedir(d);
}

/* ---- mutations ---- */

static const char *const words[] = {
	"placement", "model", "let", "def", "input", "param", "state", "const",
	"output", "update", "for", "if", "else", "return", "import", "on",
	"as", "distribute", "assert", "local", "npy", "(", ")", "[", "]", "{",
	"}", ",", "=", "..", "@", "**", "//", "S(0)", "P(max)", "B", "_", "-1",
	"0", "9223372036854775807", "1e400", "nan", "\"", "\"{", "}\"", "\n",
	";", "#", "f32[", "cpu[0..4]", "cpu[[0, 1], [2, 3]]", "x", "x.shape",
	"0..1000000000", "f(f", "grad", "every", "\\", "\xff", "\0",
	"matmul", "reshape", "softmax(", "axis =", "[[[[[[[[", "((((((((",
};

static size_t splice(char *to, size_t n, size_t at, size_t drop,
		     const char *from, size_t k)
{
	if (drop > n - at)
		drop = n - at;
	if (n - drop + k > MAX_TEXT)
		return n;
	memmove(to + at + k, to + at + drop, n - at - drop);
	memmove(to + at, from, k);
	return n - drop + k;
}

static size_t mutate(char *text, size_t n)
{
	const struct seed *other = &seeds[below((size_t)nseeds)];
	size_t at = below(n + 1), k = sizeof words / sizeof *words;
	char copy[64], byte = (char)number();
	const char *word = words[below(k)];
	size_t from = below(other->n), size = below(sizeof copy);

	switch (below(6)) {
	case 0:
		return splice(text, n, at, 1, &byte, 1);
	case 1:
		return splice(text, n, at, below(20), "", 0);
	case 2:
		return splice(text, n, at, below(3), word, strlen(word));
	case 3:
		return splice(text, n, at, below(8), word, strlen(word));
	case 4:
		if (size > other->n - from)
			size = other->n - from;
		memcpy(copy, other->text + from, size);
		return splice(text, n, at, below(size + 1), copy, size);
	default:
		return n && at < n ? at : n;	/* cut */
	}
}

/* ---- runs ---- */

static const char *prelude;

static void compile(const char *path, const char *text, size_t n)
{
	struct front_options o = {.prelude = prelude};
	struct front_files files = {0};
	struct arena *a = arena_new();
	struct graph *g = NULL;
	struct text t = {0};
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(text, 1, n, f) != n || fclose(f))
		exit(4);
	if (front_compile(a, path, &o, &files, &g) == FRONT_OK)
		graph_verify(g);
	front_print_tree(a, path, &t);
	text_free(&t);
	diag_reset();
	arena_free(a);
}

/* In a child, so that one that fails can be named and kept. */
static int run_some(const char *path, uint64_t start)
{
	static char text[MAX_TEXT + 1];
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(4);
		alarm(60);
		state = start;
		for (int i = 0; i < PER_CHILD; i++) {
			const struct seed *s = &seeds[below((size_t)nseeds)];
			size_t n = s->n;

			memcpy(text, s->text, n);
			for (size_t k = 1 + below(8); k > 0; k--)
				n = mutate(text, n);
			compile(path, text, n);
		}
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return status;
}

int main(int argc, char **argv)
{
	const char *seed = getenv("SBPC_FUZZ_SEED");
	uint64_t start = seed ? strtoull(seed, NULL, 10) : 1;
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 0);
	char path[64];
	long done = 0;
	int status = 0;

	if (argc < 4)
		return 2;
	prelude = argv[2];
	for (int i = 3; i < argc; i++)
		add_seeds(argv[i], 2);
	snprintf(path, sizeof path, "fuzz.%d.sbp", (int)getpid());
	while (nseeds && !status && time(NULL) < end) {
		status = run_some(path, start * 0x9e3779b97f4a7c15u + 1);
		start++;
		done += PER_CHILD;
	}
	if (status) {
		printf("fuzz: %s fails with status %d, seed %llu\n", path,
		       status, (unsigned long long)(start - 1));
		return 1;
	}
	unlink(path);
	printf("fuzz: %ld programs of %d seeds, nothing found\n", done,
	       nseeds);
	return nseeds == 0;
}

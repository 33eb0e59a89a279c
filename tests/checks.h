/*
 * checks.h: CHECK(x), for tests whose ranks are threads: it counts, and says
 * which line failed.
 */
#ifndef SBPC_TESTS_CHECKS_H
#define SBPC_TESTS_CHECKS_H

#include <stdbool.h>
#include <stdio.h>

static _Atomic int passed, failed;

static void check_at(bool good, int line, const char *what)
{
	if (good) {
		passed++;
		return;
	}
	failed++;
	printf("FAILED line %d: %s\n", line, what);
}
#define CHECK(x) check_at(x, __LINE__, #x)

#endif

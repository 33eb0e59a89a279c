/*
 * isa.c: what the processor can do, asked of it directly.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/private.h"

#if defined __x86_64__
#include <cpuid.h>

enum reg { EBX, ECX, EDX };
enum state { NONE, YMM = 6, ZMM = 0xe6 };	/* bits of XCR0 */

static const struct feature {
	const char *name;
	unsigned leaf, sub;
	enum reg reg;
	int bit;
	enum state state;	/* that the system must save */
} features[] = {
	{"sse3", 1, 0, ECX, 0, NONE},
	{"ssse3", 1, 0, ECX, 9, NONE},
	{"fma", 1, 0, ECX, 12, YMM},
	{"sse4.1", 1, 0, ECX, 19, NONE},
	{"sse4.2", 1, 0, ECX, 20, NONE},
	{"movbe", 1, 0, ECX, 22, NONE},
	{"popcnt", 1, 0, ECX, 23, NONE},
	{"avx", 1, 0, ECX, 28, YMM},
	{"f16c", 1, 0, ECX, 29, YMM},
	{"bmi", 7, 0, EBX, 3, NONE},
	{"avx2", 7, 0, EBX, 5, YMM},
	{"bmi2", 7, 0, EBX, 8, NONE},
	{"avx512f", 7, 0, EBX, 16, ZMM},
	{"avx512dq", 7, 0, EBX, 17, ZMM},
	{"avx512cd", 7, 0, EBX, 28, ZMM},
	{"avx512bw", 7, 0, EBX, 30, ZMM},
	{"avx512vl", 7, 0, EBX, 31, ZMM},
	{"avx512vbmi", 7, 0, ECX, 1, ZMM},
	{"avx512vnni", 7, 0, ECX, 11, ZMM},
	{"lzcnt", 0x80000001, 0, ECX, 5, NONE},
};

static unsigned saved_state(void)
{
	unsigned a, b, c, d, low, high;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 27))
		return 0;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return low;
}

static bool has_feature(const struct feature *f)
{
	unsigned r[4] = {0};

	if (!__get_cpuid_count(f->leaf, f->sub, &r[0], &r[1], &r[2], &r[3]))
		return false;
	return (r[f->reg + 1] >> f->bit & 1) &&
	       (saved_state() & f->state) == (unsigned)f->state;
}

static bool has_name(const char *name, size_t n)
{
	for (size_t i = 0; i < sizeof features / sizeof *features; i++)
		if (strlen(features[i].name) == n &&
		    memcmp(features[i].name, name, n) == 0)
			return has_feature(&features[i]);
	return false;
}
#else
static bool has_name(const char *name, size_t n)
{
	(void)name;
	(void)n;
	return true;
}
#endif

sbp_status isa_check(const char *list, sbp_message *e)
{
	char missing[256] = "";
	size_t room = sizeof missing, n, used = 0;

	for (; list && *list; list += n + (list[n] == ',')) {
		n = strcspn(list, ",");
		if (n && !has_name(list, n) && used < room)
			used += (size_t)snprintf(missing + used, room - used,
						 "%s%.*s", used ? ", " : "",
						 (int)n, list);
	}
	if (!used)
		return SBP_OK;
	return message_set(e, SBP_FAILED,
			   "this program was compiled for a processor with "
			   "%s, which this one lacks", missing);
}

/*
 * signatures.h: a node of every operator, and all its signatures.
 */
#ifndef SBPC_TESTS_SIGNATURES_H
#define SBPC_TESTS_SIGNATURES_H

/* %0 f32[4, 6], %1 f32[6, 5], %2 f32[4, 1], %3 bool[4, 6], %4 i64[4, 6],
 * %5 i64[3], %6 a constant 2, %7 a constant -1, %8 i32[4, 6], %9 f32[],
 * %10 f32[3, 4, 6], %11 i64[2, 6], %12 bool[6] */
static const char leaves[] =
	"%0: f32[4, 6] = input()\n"
	"%1: f32[6, 5] = input()\n"
	"%2: f32[4, 1] = input()\n"
	"%3: bool[4, 6] = input()\n"
	"%4: i64[4, 6] = input()\n"
	"%5: i64[3] = input()\n"
	"%6: f32[] = fill() {shape = [], value = 2.0, dtype = f32}\n"
	"%7: f32[] = fill() {shape = [], value = -1.0, dtype = f32}\n"
	"%8: i32[4, 6] = input()\n"
	"%9: f32[] = input()\n"
	"%10: f32[3, 4, 6] = input()\n"
	"%11: i64[2, 6] = input()\n"
	"%12: bool[6] = input()\n";

static const struct {
	const char *node, *golden;
} goldens[] = {
#include "tests/signatures.def"
};

#endif

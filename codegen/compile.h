/*
 * compile.h: what compile.c and cc.c share.
 */
#ifndef SBPC_COMPILE_H
#define SBPC_COMPILE_H

/* The path of a library's file, malloc'ed; NULL if it is not installed. */
char *library_find(const char *name);
/* SLEEF's, which programs link if they use it. */
char *library_sleef(void);

#endif

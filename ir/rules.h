/*
 * rules.h: between rules.c, rules_move.c and rules_index.c.
 */
#ifndef SBPC_IR_RULES_H
#define SBPC_IR_RULES_H

#include "ir/ir.h"

/* Each ends with a row whose name is NULL. */
extern const struct rule rules_move[];
extern const struct rule rules_index[];

/* The list KEY, and how many. */
const int64_t *rule_ints(const struct node *n, const char *key, int *count);
int rule_rank(const struct node *n, int input);
/* A letter at axis I of input 0 and axis J of the result. */
void rule_pair(struct arena *a, struct letters *l, int i, int j);
/* A letter of the result alone. */
void rule_free(struct arena *a, struct letters *l, int j);
/* The attribute `shape`, -1 allowed; false after reporting. */
bool rule_shape(const struct node *n, Shape *s);

#endif

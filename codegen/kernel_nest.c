/*
 * kernel_nest.c: the loops of a fused kernel.
 *
 * Axes of the domain that every tensor of the kernel has, or lacks, together
 * run as one loop; axes of extent 1 vanish. The last loop is the vector's,
 * whether it is kept or reduced. Reductions cut the kernel into phases: what
 * needs a reduced value runs in a later pass over the row.
 */
#include <string.h>

#include "codegen/kernel.h"

/* ---- tensors from outside ---- */

static int maker(const struct nest *k, int before, const struct value *v)
{
	for (int i = 0; i < before; i++)
		for (int o = 0; o < k->body[i]->nout; o++)
			if (k->body[i]->out[o] == v)
				return i;
	return -1;
}

static bool is_output(const struct nest *k, const struct value *v)
{
	if (k->n->op != OP_kernel)
		return true;
	for (int i = 0; i < k->n->nout; i++)
		if (k->n->out[i] == v)
			return true;
	return false;
}

static void find_params(struct nest *k)
{
	for (int i = 0; i < k->nbody; i++)
		if (is_output(k, k->body[i]->out[0]))
			k->out[i].param = param_value(
				k->e, &k->p, k->out[i].v = k->body[i]->out[0],
				true);
	for (int i = 0; i < k->nbody; i++)
		for (int j = 0; j < k->body[i]->nin; j++) {
			const struct value *v = k->body[i]->in[j];

			k->from[i][j] = maker(k, i, v);
			if (k->from[i][j] < 0)
				k->in[i][j] = (struct access){
					.v = v, .param = param_value(
						k->e, &k->p, v, false)};
			else if (v->def->op == OP_iota)
				k->in[i][j].ramp = v->def;
		}
}

/* ---- axes ---- */

struct axis {
	int64_t max;
	const struct extent *extent;
};

/* The axes of the domain that a tensor really runs along. */
static unsigned axes_of(const struct nest *k, const struct value *v,
			const int8_t axis[MAX_RANK])
{
	unsigned mask = 0;

	for (int j = 0; j < v->type.shape.rank; j++)
		if (axis[j] >= 0 &&
		    v->type.shape.d[j] == k->d.shape.d[axis[j]])
			mask |= 1u << axis[j];
	return mask;
}

unsigned nest_input_axes(const struct nest *k, int i, int j)
{
	int8_t axis[MAX_RANK];
	unsigned mask;

	domain_input(&k->d, k->body, i, j, axis);
	mask = axes_of(k, k->body[i]->in[j], axis);
	if (k->in[i][j].ramp != NULL)
		mask &= 1u << axis[attr_int(k->in[i][j].ramp, "axis")];
	if (k->d.row[i] && !node_is_fold(k->body[i]))
		mask &= ~k->d.reduced;
	return mask;
}

static unsigned output_axes(const struct nest *k, int i)
{
	unsigned mask = axes_of(k, k->body[i]->out[0], k->d.axis[i]);

	return k->d.row[i] ? mask & ~k->d.reduced : mask;
}

static void enter_axes(const struct nest *k, const struct value *v,
		       const int8_t axis[MAX_RANK], unsigned mask,
		       struct axis *axes)
{
	const struct local *own = &k->e->p->local[v->id];

	for (int j = 0; j < v->type.shape.rank; j++)
		if (axis[j] >= 0 && (mask >> axis[j] & 1))
			axes[axis[j]] = (struct axis){own->max.d[j],
						      own->extent[j]};
}

/* What a rank has of each axis, from any tensor that runs along it. */
static void find_axes(const struct nest *k, struct axis *axes)
{
	int8_t axis[MAX_RANK];

	for (int d = 0; d < k->d.shape.rank; d++)
		axes[d] = (struct axis){k->d.shape.d[d], NULL};
	for (int i = 0; i < k->nbody; i++) {
		if (node_is_number(k->body[i]) && k->nbody > 1)
			continue;
		for (int j = 0; j < k->body[i]->nin; j++) {
			if (k->from[i][j] >= 0 &&
			    node_is_number(k->body[k->from[i][j]]))
				continue;
			domain_input(&k->d, k->body, i, j, axis);
			enter_axes(k, k->body[i]->in[j], axis,
				   nest_input_axes(k, i, j), axes);
		}
		enter_axes(k, k->body[i]->out[0], k->d.axis[i],
			   output_axes(k, i), axes);
	}
}

/* ---- loops ---- */

/* Reproducible programs reduce in an order that logical extents give, not what
 * a rank has of the other axes, nor what else the kernel does. */
static bool is_fixed(const struct nest *k)
{
	return k->e->p->reproducible;
}

static bool vanishes(const struct nest *k, const struct axis *axes, int d)
{
	int64_t n = is_fixed(k) ? k->d.shape.d[d] : axes[d].max;

	return n == 1 && axes[d].extent == NULL;
}

/* Whether no tensor runs along one of axes A and B alone, or has gaps. */
static bool together(const struct nest *k, int a, int b)
{
	unsigned both = 1u << a | 1u << b, mask;

	if ((k->d.reduced >> a & 1) != (k->d.reduced >> b & 1))
		return false;
	if (is_fixed(k) && (k->d.reduced >> a & 1))
		return false;
	for (int i = 0; i < k->nbody; i++) {
		for (int j = 0; j < k->body[i]->nin; j++) {
			if (k->in[i][j].v == NULL && k->in[i][j].ramp == NULL)
				continue;
			mask = nest_input_axes(k, i, j) & both;
			if (mask != 0 && mask != both)
				return false;
			if (mask == both && nest_cut_between(k, i, j, a, b))
				return false;
		}
		mask = k->out[i].v ? output_axes(k, i) & both : 0;
		if (mask != 0 && mask != both)
			return false;
	}
	return true;
}

/* The product of the extents of a run of axes, as C. */
static void set_extent(struct nest *k, struct loop *l, const struct axis *axes,
		       const bool *member)
{
	int64_t number = 1;
	const char *product = NULL;
	int factors = 0;

	l->max = 1;
	l->fixed = true;
	for (int d = 0; d < k->d.shape.rank; d++) {
		if (!member[d])
			continue;
		l->max *= axes[d].max;
		if (axes[d].extent == NULL) {
			number *= axes[d].max;
			continue;
		}
		l->fixed = false;
		factors++;
		product = product == NULL
				  ? param_extent(k->e, &k->p, axes[d].extent,
						 "n")
				  : arena_text(k->a, "%s * %s", product,
					       param_extent(k->e, &k->p,
							    axes[d].extent,
							    "n"));
	}
	l->extent = product;
	if (l->fixed)
		l->extent = arena_text(k->a, "%lld", (long long)number);
	if (l->fixed || (factors == 1 && number == 1))
		return;
	l->extent = arena_text(k->a, "size%d", k->head.n);
	PUSH(k->a, k->head,
	     number == 1 ? arena_text(k->a, "const int64_t %s = %s;",
				      l->extent, product)
			 : arena_text(k->a, "const int64_t %s = %s * %lld;",
				      l->extent, product, (long long)number));
}

/* Fills the loops, and loop_of with each axis's, -1 where it has none. */
static void find_loops(struct nest *k, const struct axis *axes, int *loop_of)
{
	bool member[MAX_RANK] = {false};
	bool single = true;
	int last = -1;

	for (int d = 0; d <= k->d.shape.rank; d++) {
		bool end = d == k->d.shape.rank;

		if (!end) {
			loop_of[d] = -1;
			if (vanishes(k, axes, d))
				continue;
		}
		if (last >= 0 && (end || !together(k, last, d))) {
			set_extent(k, &k->loop[k->nloops], axes, member);
			k->loop[k->nloops].reduced = k->d.reduced >> last & 1;
			k->loop[k->nloops].single = single;
			single = true;
			k->nloops++;
			memset(member, 0, sizeof member);
		}
		if (end)
			break;
		loop_of[d] = k->nloops;
		member[d] = true;
		single = single && k->d.shape.d[d] == 1;
		last = d;
	}
}

static unsigned loops_of(const int *loop_of, unsigned axes)
{
	unsigned mask = 0;

	for (int d = 0; d < MAX_RANK; d++)
		if ((axes >> d & 1) && loop_of[d] >= 0)
			mask |= 1u << loop_of[d];
	return mask;
}

/* The index of a ramp: that of the only loop it runs along, from where this
 * rank's piece begins. */
static const char *ramp_index(struct nest *k, const struct access *x)
{
	const struct value *v = x->ramp->out[0];
	const char *first, *at = "0";

	first = param_first(k->e, &k->p, v, (int)attr_int(x->ramp, "axis"));
	for (int l = 0; l < k->nloops; l++)
		if (x->loops >> l & 1)
			at = k->loop[l].index;
	if (!strcmp(first, "0"))
		return at;
	return arena_text(k->a, "%s + %s", first, at);
}

static void find_accesses(struct nest *k, const int *loop_of)
{
	for (int i = 0; i < k->nbody; i++) {
		for (int j = 0; j < k->body[i]->nin; j++) {
			struct access *x = &k->in[i][j];

			x->loops = loops_of(loop_of, nest_input_axes(k, i, j));
			if (x->ramp != NULL)
				x->index = ramp_index(k, x);
		}
		k->out[i].loops = loops_of(loop_of, output_axes(k, i));
	}
}

/* The last loop is the vector's; where that must not depend on the mesh, the
 * last one that is more than an extent of 1 cut into pieces. One that is
 * always at most a vector long is not written as a loop. */
static void choose_lane(struct nest *k)
{
	struct loop *l;

	k->lane = k->nloops - 1;
	if (k->lane < 0)
		return;
	while (is_fixed(k) && k->lane > 0 && k->loop[k->lane].single)
		k->lane--;
	l = &k->loop[k->lane];
	l->straight = k->vectors && l->fixed && l->max <= LANES;
}

enum { PART = 8192, LARGE = 4 * PART };	/* elements */
enum { MOST_PARTS = 512 };

/* Where all elements are of one row, and one pass reduces it: parts that are
 * joined in order. Short enough that a lane sums few of them by itself. How
 * long they are depends on the rest of the kernel. */
static bool choose_cut(struct nest *k, int64_t all)
{
	int64_t inner = all / (k->nloops > 0 ? k->loop[0].max : 1);

	if (is_fixed(k))
		return false;
	for (int i = 0; i < k->nloops; i++)
		if (!k->loop[i].reduced)
			return false;
	for (int i = 0; i < k->nbody; i++)
		if (k->d.row[i] && k->phase[i] != 1)
			return false;
	if (k->nphases != 2 || k->loop[0].max < 2)
		return false;
	k->cut = 0;
	k->grain = 2 * PART / inner + 1;
	if (k->loop[0].max / k->grain > MOST_PARTS)
		k->grain = k->loop[0].max / MOST_PARTS + 1;
	if (k->lane == 0)
		k->grain = (k->grain + LANES - 1) / LANES * LANES;
	k->p.model = true;
	return true;
}

/* The outermost kept loop that is long enough, else the vector's. */
static void choose_parallel(struct nest *k)
{
	int64_t all = 1, best = 0;

	k->parallel = k->cut = -1;
	for (int i = 0; i < k->nloops; i++)
		all *= k->loop[i].max;
	if (all < LARGE || k->fails || choose_cut(k, all))
		return;
	for (int i = 0; i < k->nloops; i++) {
		int64_t turns = k->loop[i].max;

		if (k->loop[i].reduced || k->loop[i].straight)
			continue;
		if (i == k->lane && k->vectors)
			turns /= LANES;
		if (turns > best && best < 32) {
			best = turns;
			k->parallel = i;
		}
	}
	if (best < 2) {
		k->parallel = -1;
		return;
	}
	k->grain = PART / (all / k->loop[k->parallel].max) + 1;
	k->grain = (k->grain + LANES - 1) / LANES * LANES;
	if (k->parallel != k->lane && k->grain == LANES)
		k->grain = PART / (all / k->loop[k->parallel].max) + 1;
	k->p.model = true;
}

/* ---- phases ---- */

static void find_phases(struct nest *k)
{
	for (int i = 0; i < k->nbody; i++) {
		int phase = 0;

		for (int j = 0; j < k->body[i]->nin; j++) {
			int from = k->from[i][j];

			if (from >= 0 && k->phase[from] > phase)
				phase = k->phase[from];
		}
		k->phase[i] = phase + node_is_fold(k->body[i]);
		if (k->phase[i] + 1 > k->nphases)
			k->nphases = k->phase[i] + 1;
	}
}

/* What is not stored waits for the first phase that needs it. */
static void delay_elements(struct nest *k)
{
	for (int i = k->nbody - 1; i >= 0; i--) {
		int first = k->nphases;

		if (k->d.row[i] || k->out[i].v != NULL)
			continue;
		for (int r = i + 1; r < k->nbody; r++)
			for (int j = 0; j < k->body[r]->nin; j++) {
				int phase = k->phase[r] -
					    node_is_fold(k->body[r]);

				if (k->from[r][j] == i && phase < first)
					first = phase;
			}
		if (first < k->nphases)
			k->phase[i] = first;
	}
}

/* Names of variables: the operator's, numbered where it occurs again. */
static void find_names(struct nest *k)
{
	for (int i = 0; i < k->nbody; i++) {
		const char *op = op_info(k->body[i]->op)->name;
		int same = 1;

		for (int j = 0; j < i; j++)
			same += k->body[j]->op == k->body[i]->op;
		if (k->body[i]->op == OP_iota)
			k->name[i] = "";	/* differs by its reader */
		else if (node_is_number(k->body[i]))
			k->name[i] = expr_number(k->a, k->body[i], k->vectors);
		else
			k->name[i] = same == 1 ? op
					       : arena_text(k->a, "%s%d", op,
							    same);
	}
}

/* ---- elements that several phases need ---- */

static bool is_costly(const struct node *n)
{
	switch (n->op) {
	case OP_exp:
	case OP_log:
	case OP_log1p:
	case OP_sin:
	case OP_cos:
	case OP_tanh:
	case OP_sigmoid:
	case OP_erf:
	case OP_pow:
		return true;
	default:
		return false;
	}
}

/* Who needs an element: the last phase, and the last of its readers. What has
 * a home is not computed again after its own phase. */
struct use {
	int phase, reader;
};

static struct use last_use(const struct nest *k, int i, const struct use *use)
{
	struct use last = {k->phase[i], i};

	for (int r = i + 1; r < k->nbody; r++)
		for (int j = 0; j < k->body[r]->nin; j++) {
			int phase = k->phase[r];

			if (k->from[r][j] != i)
				continue;
			if (node_is_fold(k->body[r]))
				phase--;
			else if (k->home[r] == NULL)
				phase = use[r].phase;
			if (phase > last.phase)
				last.phase = phase;
			last.reader = r;
		}
	return last;
}

/* An output whose place is free while element I is needed. */
static const struct access *spare_output(const struct nest *k, int i,
					 struct use last, const bool *taken)
{
	for (int o = 0; o < k->nbody; o++) {
		const struct access *x = &k->out[o];

		if (x->v != NULL && !taken[o] && !k->d.row[o] &&
		    x->loops == (1u << k->nloops) - 1 &&
		    x->v->type.dtype == k->body[i]->out[0]->type.dtype &&
		    (k->phase[o] > last.phase ||
		     (k->phase[o] == last.phase && o >= last.reader)))
			return x;
	}
	return NULL;
}

static void find_homes(struct nest *k)
{
	bool *taken = NEW_N(k->a, bool, k->nbody);
	struct use *use = NEW_N(k->a, struct use, k->nbody);

	for (int i = k->nbody - 1; i >= 0; i--) {
		use[i] = last_use(k, i, use);
		if (k->d.row[i] || use[i].phase == k->phase[i])
			continue;
		if (k->out[i].v != NULL) {
			k->home[i] = &k->out[i];
		} else if (is_costly(k->body[i])) {
			k->home[i] = spare_output(k, i, use[i], taken);
			if (k->home[i] != NULL)
				taken[k->home[i] - k->out] = true;
		}
	}
}

static void allocate(struct nest *k)
{
	k->phase = NEW_N(k->a, int, k->nbody);
	k->name = NEW_N(k->a, const char *, k->nbody);
	k->out = NEW_N(k->a, struct access, k->nbody);
	k->home = NEW_N(k->a, const struct access *, k->nbody);
	k->in = NEW_N(k->a, struct access *, k->nbody);
	k->from = NEW_N(k->a, int *, k->nbody);
	for (int i = 0; i < k->nbody; i++) {
		k->in[i] = NEW_N(k->a, struct access, k->body[i]->nin);
		k->from[i] = NEW_N(k->a, int, k->body[i]->nin);
	}
}

void nest_find(struct nest *k, struct emitter *e, const struct node *n)
{
	struct node **self = NEW(e->arena, struct node *);
	struct axis axes[MAX_RANK];
	int loop_of[MAX_RANK] = {0};

	*self = (struct node *)n;
	k->e = e;
	k->a = e->arena;
	k->n = n;
	k->body = n->op == OP_kernel ? n->body : self;
	k->nbody = n->op == OP_kernel ? n->nbody : 1;
	if (!domain_of(k->a, k->body, k->nbody, &k->d))
		bug("node %d: the nodes of a kernel have no common domain",
		    n->id);
	k->vectors = true;
	for (int i = 0; i < k->nbody; i++) {
		if (!node_is_number(k->body[i]) || k->nbody == 1)
			k->vectors = k->vectors &&
				     kernel_in_vectors(k->body[i]);
		k->fails = k->fails || expr_fails(k->body[i]);
	}
	allocate(k);
	find_params(k);
	find_axes(k, axes);
	find_loops(k, axes, loop_of);
	for (int i = 0; i < k->nloops; i++)
		k->loop[i].index = arena_text(k->a, "%c", "ijklpqrs"[i]);
	find_accesses(k, loop_of);
	choose_lane(k);
	nest_strides(k, loop_of);
	find_phases(k);
	delay_elements(k);
	choose_parallel(k);
	find_homes(k);
	find_names(k);
}

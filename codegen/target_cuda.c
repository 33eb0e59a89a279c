/*
 * target_cuda.c: CUDA C with cuBLAS and NCCL. A kernel is a loop over the
 * elements of its domain by all threads of a launch. A move is one collective
 * where it is exactly that and its pieces are contiguous and equal, else an
 * exchange of intersections.
 *
 * Runs elementwise operators and products of f32; another operator is an
 * error at its place in the source.
 */
#include <string.h>

#include "codegen/kernel.h"

static struct arg text_arg(const char *s)
{
	return (struct arg){.kind = ARG_TEXT, .text = name_of(s)};
}

static struct arg value_arg(const struct value *v)
{
	return (struct arg){
		.kind = ARG_VALUE, .v = v, .ctype = dtype_c(v->type.dtype)};
}

/* The local extent of an axis, as code of the host. */
static const char *axis_text(const struct emitter *e, const struct value *v,
			     int axis)
{
	const struct local *own = &e->p->local[v->id];

	if (own->extent[axis] != NULL)
		return arena_text(e->arena, "m->own[%d].n",
				  own->extent[axis]->id);
	return arena_text(e->arena, "%lld", (long long)own->max.d[axis]);
}

/* The product of axes [FROM, TO): a number, and what differs by rank. */
static const char *axes_text(const struct emitter *e, const struct value *v,
			     int from, int to)
{
	const struct local *own = &e->p->local[v->id];
	const char *s = NULL;
	int64_t n = 1;

	for (int i = from; i < to; i++) {
		if (own->extent[i] == NULL) {
			n *= own->max.d[i];
			continue;
		}
		s = s == NULL ? axis_text(e, v, i)
			      : arena_text(e->arena, "%s * %s", s,
					   axis_text(e, v, i));
	}
	if (s == NULL)
		return arena_text(e->arena, "%lld", (long long)n);
	return n == 1 ? s : arena_text(e->arena, "%lld * %s", (long long)n, s);
}

static bool refuse(const struct node *n, const char *why)
{
	diag_error(n->span, "the cuda target has no kernel for '%s'%s",
		   op_info(n->op)->name, why);
	return false;
}

/* ---- elementwise kernels ---- */

struct map {
	struct emitter *e;
	const struct node *n;
	struct node *const *body;
	int nbody;
	struct domain d;
	struct params p;
	struct text text;
	const char **name;            /* of nodes of the body */
	const char *extent[MAX_RANK]; /* of the domain */
	unsigned indexed;             /* axes whose index is needed */
};

static int maker_of(const struct map *k, const struct value *v)
{
	for (int i = 0; i < k->nbody; i++)
		if (k->body[i]->out[0] == v)
			return i;
	return -1;
}

static bool can_map(const struct map *k)
{
	for (int i = 0; i < k->nbody; i++) {
		const struct node *n = k->body[i];
		enum dtype t = n->out[0]->type.dtype;
		enum kernel_kind kind = op_info(n->op)->kernel;

		if ((kind != K_MAP && kind != K_VIEW) || expr_fails(n))
			return refuse(n, "");
		if (t == DT_F16 || t == DT_BF16)
			return refuse(n, " of 16-bit floats");
		if (n->op == OP_fill && dist_has(n->out[0]->dist, SBP_P))
			return refuse(n, " as a partial value");
	}
	return true;
}

/* The extents of the domain, from values that run along its axes. */
static void find_extents(struct map *k)
{
	for (int i = 0; i < k->nbody; i++) {
		const struct value *v = k->body[i]->out[0];

		if (node_is_number(k->body[i]) && k->nbody > 1)
			continue;
		for (int j = 0; j < v->type.shape.rank; j++) {
			int at = k->d.axis[i][j];

			if (v->type.shape.d[j] == k->d.shape.d[at])
				k->extent[at] = param_axis(k->e, &k->p, v, j);
		}
	}
}

static const char *count_text(const struct map *k)
{
	const char *s = NULL;

	for (int i = 0; i < k->d.shape.rank; i++) {
		if (strcmp(k->extent[i], "1") == 0)
			continue;
		s = s == NULL ? k->extent[i]
			      : arena_text(k->e->arena, "%s * %s", s,
					   k->extent[i]);
	}
	return s == NULL ? "1" : s;
}

/* The offset of an element that runs along AXES: the loop's own index where
 * these are all of the domain. */
static const char *offset_text(struct map *k, int rank,
			       const int8_t axes[MAX_RANK])
{
	const char *s = NULL;
	int run = 0;

	for (int j = 0; j < rank; j++)
		run += axes[j] >= 0 && strcmp(k->extent[axes[j]], "1") != 0;
	for (int i = 0; i < k->d.shape.rank; i++)
		run -= strcmp(k->extent[i], "1") != 0;
	if (run == 0)
		return "i";
	for (int j = 0; j < rank; j++) {
		if (axes[j] < 0)
			continue;
		k->indexed |= 1u << axes[j];
		if (s == NULL)
			s = arena_text(k->e->arena, "i%d", axes[j]);
		else
			s = arena_text(k->e->arena, "(%s) * %s + i%d", s,
				       k->extent[axes[j]], axes[j]);
	}
	return s == NULL ? "0" : s;
}

static const char *operand_text(struct map *k, int node, int i)
{
	const struct value *v = k->body[node]->in[i];
	int from = maker_of(k, v);
	int8_t axes[MAX_RANK];

	if (from >= 0)
		return k->name[from];
	domain_input(&k->d, k->body, node, i, axes);
	return arena_text(k->e->arena, "%s[%s]",
			  param_value(k->e, &k->p, v, false),
			  offset_text(k, v->type.shape.rank, axes));
}

static void add_node(struct map *k, int node)
{
	const struct node *n = k->body[node];
	struct arena *a = k->e->arena;
	const char *operand[MAX_RANK] = {0};
	enum dtype t = n->out[0]->type.dtype;

	if (node_is_number(n)) {
		k->name[node] = expr_number(a, n, false);
		return;
	}
	for (int i = 0; i < n->nin; i++)
		operand[i] = operand_text(k, node, i);
	k->name[node] = arena_text(a, "t%d", node);
	text_add(&k->text, "\t\tconst %s t%d = %s;\n", expr_type(t, false),
		 node, expr_map(a, n, false, operand));
}

static void add_stores(struct map *k)
{
	for (int i = 0; i < k->n->nout; i++) {
		const struct value *v = k->n->out[i];
		int from = k->n->op == OP_kernel ? maker_of(k, v) : 0;

		text_add(&k->text, "\t\t%s[%s] = %s;\n",
			 param_value(k->e, &k->p, v, true),
			 offset_text(k, v->type.shape.rank, k->d.axis[from]),
			 k->name[from]);
	}
}

/* i0, i1, ... of the axes that need them, from the loop's index. */
static void add_indices(const struct map *k, struct text *t)
{
	const char *below = NULL;

	for (int i = k->d.shape.rank - 1; i >= 0; i--) {
		if (k->indexed >> i & 1) {
			text_add(t, "\t\tconst int64_t i%d = i", i);
			if (below != NULL)
				text_add(t, " / (%s)", below);
			text_add(t, i > 0 ? " %% %s;\n" : ";\n", k->extent[i]);
		}
		below = below == NULL ? k->extent[i]
				      : arena_text(k->e->arena, "%s * %s",
						   k->extent[i], below);
	}
}

static const char *map_text(struct map *k)
{
	struct text t = {0};

	text_add(&t, "__global__ static void @");
	add_signature(&t, &k->p, false);
	text_add(&t, "\n{\n\tSBP_EACH(i, %s) {\n", count_text(k));
	add_indices(k, &t);
	text_add(&t, "%s\t}\n}\n", k->text.at);
	text_free(&k->text);
	return taken_text(k->e->arena, &t);
}

static const char *map_stem(const struct map *k)
{
	const char *s = NULL;

	for (int i = 0; i < k->nbody; i++) {
		const char *name = op_info(k->body[i]->op)->name;

		if (node_is_number(k->body[i]) && k->nbody > 1)
			continue;
		s = s == NULL ? name
			      : arena_text(k->e->arena, "%s_%s", s, name);
	}
	return s;
}

static bool map_call(struct emitter *e, const struct node *n,
		     struct node *const *body, int nbody, struct call *c)
{
	struct map k = {.e = e, .n = n, .body = body, .nbody = nbody};

	if (!can_map(&k))
		return false;
	if (!domain_of(e->arena, body, nbody, &k.d))
		bug("node %d: no domain", n->id);
	k.name = NEW_N(e->arena, const char *, nbody);
	for (int i = 0; i < n->nout; i++)
		param_value(e, &k.p, n->out[i], true);
	find_extents(&k);
	for (int i = 0; i < nbody; i++)
		add_node(&k, i);
	add_stores(&k);
	define_function(e, n, &k.p, map_stem(&k),
			e->p->local[n->out[0]->id].max, map_text(&k), c);
	return true;
}

/* ---- products ---- */

struct product {
	const struct value *a, *b; /* as they lie in memory */
	bool ta, tb;               /* transposed there */
};

static const struct value *untransposed(const struct node *n,
					const struct value *v, bool *t)
{
	for (int i = 0; n->op == OP_kernel && i < n->nbody - 1; i++)
		if (n->body[i]->out[0] == v) {
			*t = true;
			return n->body[i]->in[0];
		}
	return v;
}

/* Whether one product does: b has no batch, and a's rows follow one another;
 * or nothing has a batch. */
static bool is_single(const struct node *n, const struct product *p)
{
	int64_t batch = 1;

	for (int i = 0; i < p->b->type.shape.rank - 2; i++)
		batch *= p->b->type.shape.d[i];
	if (batch != 1)
		return false;
	batch = 1;
	for (int i = 0; i < n->out[0]->type.shape.rank - 2; i++)
		batch *= n->out[0]->type.shape.d[i];
	return !p->ta || batch == 1;
}

static bool same_batch(const struct product *p)
{
	Shape a = p->a->type.shape, b = p->b->type.shape;

	if (a.rank != b.rank)
		return false;
	for (int i = 0; i < a.rank - 2; i++)
		if (a.d[i] != b.d[i])
			return false;
	return true;
}

/* A row length, which cuBLAS wants to be at least 1. */
static const char *row_text(struct emitter *e, const char *n)
{
	if (strcmp(n, "0") == 0)
		return "1";
	if (strstr(n, "own") != NULL)
		return arena_text(e->arena, "(%s ? %s : 1)", n, n);
	return n;
}

static void matrix_args(struct emitter *e, struct call *c,
			const struct value *v, const char *row,
			const char *stride)
{
	call_arg(e, c, value_arg(v));
	call_arg(e, c, text_arg(row_text(e, row)));
	if (stride != NULL)
		call_arg(e, c, text_arg(stride));
}

static const char *stride_text(struct emitter *e, const struct value *v,
			       bool batched)
{
	int rank = v->type.shape.rank;

	return batched ? axes_text(e, v, rank - 2, rank) : NULL;
}

/* cuBLAS counts by columns, so y = a b is asked for as y' = b' a'. */
static bool gemm_call(struct emitter *e, const struct node *n,
		      const struct node *product, struct call *c)
{
	struct product p = {0};
	const struct value *y = n->out[0];
	int ra, rb, ry = y->type.shape.rank;
	const char *rows, *k;
	bool batched;

	p.a = untransposed(n, product->in[0], &p.ta);
	p.b = untransposed(n, product->in[1], &p.tb);
	ra = p.a->type.shape.rank;
	rb = p.b->type.shape.rank;
	batched = !is_single(product, &p);
	if (y->type.dtype != DT_F32)
		return refuse(product, " of other types than f32");
	if (batched && !same_batch(&p))
		return refuse(product, " with broadcast batches");
	rows = axes_text(e, y, batched ? ry - 2 : 0, ry - 1);
	k = axis_text(e, p.b, p.tb ? rb - 1 : rb - 2);
	c->function =
		name_of(batched ? "cublasSgemmStridedBatched" : "cublasSgemm");
	call_arg(e, c, text_arg("m->blas"));
	call_arg(e, c, text_arg(p.tb ? "CUBLAS_OP_T" : "CUBLAS_OP_N"));
	call_arg(e, c, text_arg(p.ta ? "CUBLAS_OP_T" : "CUBLAS_OP_N"));
	call_arg(e, c, text_arg(axis_text(e, y, ry - 1)));
	call_arg(e, c, text_arg(rows));
	call_arg(e, c, text_arg(k));
	call_arg(e, c, text_arg("&m->one"));
	matrix_args(e, c, p.b, axis_text(e, p.b, rb - 1),
		    stride_text(e, p.b, batched));
	matrix_args(e, c, p.a, axis_text(e, p.a, ra - 1),
		    stride_text(e, p.a, batched));
	call_arg(e, c, text_arg("&m->zero"));
	matrix_args(e, c, y, axis_text(e, y, ry - 1),
		    stride_text(e, y, batched));
	if (batched)
		call_arg(e, c, text_arg(axes_text(e, y, 0, ry - 2)));
	return true;
}

bool cuda_kernel(struct emitter *e, const struct node *n, struct call *c)
{
	struct node *const self[] = {(struct node *)n};
	struct node *const *body = n->op == OP_kernel ? n->body : self;
	int nbody = n->op == OP_kernel ? n->nbody : 1;
	const struct node *last = body[nbody - 1];

	if (last->op == OP_matmul)
		return gemm_call(e, n, last, c);
	return map_call(e, n, body, nbody, c);
}

/* ---- moves ---- */

/* The mesh axis along which one collective does the move, or -1. */
static int only_axis(Dist from, Dist to)
{
	int axis = -1;

	if (from.on != to.on)
		return -1;
	for (int k = 0; k < from.on->naxes; k++) {
		if (sbp_eq(from.t[k], to.t[k]))
			continue;
		if (axis >= 0)
			return -1;
		axis = k;
	}
	return axis;
}

/* Whether the pieces of V along mesh axis K are equal and follow one another
 * in the whole: nothing before the split axis, and nothing else splits it. */
static bool is_row_split(const struct emitter *e, const struct value *v, int k)
{
	Dist d = v->dist;
	int axis = d.t[k].axis;

	for (int i = 0; i < d.on->naxes; i++)
		if (i != k && d.t[i].kind == SBP_S && d.t[i].axis == axis)
			return false;
	for (int i = 0; i < axis; i++)
		if (e->p->local[v->id].max.d[i] != 1)
			return false;
	return v->type.shape.d[axis] % d.on->extent[k] == 0;
}

static const char *nccl_type(enum dtype t)
{
	switch (t) {
	case DT_U8:
		return "ncclUint8";
	case DT_I8:
		return "ncclInt8";
	case DT_I32:
		return "ncclInt32";
	case DT_I64:
		return "ncclInt64";
	case DT_F32:
		return "ncclFloat32";
	case DT_F64:
		return "ncclFloat64";
	default:
		return NULL;
	}
}

static const char *collective_of(const struct emitter *e,
				 const struct value *from,
				 const struct value *to)
{
	int k = only_axis(from->dist, to->dist);
	Sbp a, b;

	if (k < 0 || nccl_type(from->type.dtype) == NULL)
		return NULL;
	a = from->dist.t[k];
	b = to->dist.t[k];
	if (a.kind == SBP_P && b.kind == SBP_B)
		return "ncclAllReduce";
	if (a.kind == SBP_S && b.kind == SBP_B && is_row_split(e, from, k))
		return "ncclAllGather";
	if (a.kind == SBP_P && b.kind == SBP_S && is_row_split(e, to, k))
		return "ncclReduceScatter";
	return NULL;
}

static const char *reduction_of(Dist d)
{
	for (int k = 0; k < d.on->naxes; k++)
		if (d.t[k].kind == SBP_P)
			return d.t[k].red == RED_MAX   ? "ncclMax"
			       : d.t[k].red == RED_MIN ? "ncclMin"
						       : "ncclSum";
	return NULL;
}

/* NCCL counts the elements of what one rank sends, or of what it gets where
 * the target is scattered. */
static void collective_args(struct emitter *e, const struct value *from,
			    const struct value *to, int id, struct call *c)
{
	bool scatter = strcmp(c->function, "ncclReduceScatter") == 0;
	const struct value *counted = scatter ? to : from;

	call_arg(e, c, (struct arg){.kind = ARG_MOVE, .i = id});
	call_arg(e, c, value_arg(from));
	call_arg(e, c, value_arg(to));
	call_arg(e, c,
		 text_arg(axes_text(e, counted, 0, counted->type.shape.rank)));
	call_arg(e, c, text_arg(nccl_type(from->type.dtype)));
	if (strcmp(c->function, "ncclAllGather") != 0)
		call_arg(e, c, text_arg(reduction_of(from->dist)));
}

void cuda_move(struct emitter *e, const struct node *n, int id, struct call *c)
{
	const struct value *from = n->in[0], *to = n->out[0];
	const char *collective = collective_of(e, from, to);

	if (collective != NULL) {
		c->function = name_of(collective);
		collective_args(e, from, to, id, c);
		return;
	}
	c->function = name_of("sbp_cuda_exchange");
	c->status = true;
	call_arg(e, c, text_arg("m"));
	call_arg(e, c, (struct arg){.kind = ARG_MOVE, .i = id});
}

/* ---- statements ---- */

void cuda_call(struct emitter *e, const struct call *c, const char *args,
	       struct text *out)
{
	const char *f = c->function;

	(void)e;
	if (strncmp(f, "cublas", 6) == 0)
		text_add(out, "SBP_CUBLAS(%s(%s));", f, args);
	else if (strncmp(f, "nccl", 4) == 0)
		text_add(out, "SBP_COLLECTIVE(%s, %s);", f, args);
	else if (strncmp(f, "cuda", 4) == 0)
		text_add(out,
			 "SBP_CUDA(%s(%s, cudaMemcpyDeviceToDevice, "
			 "m->stream));",
			 f, args);
	else if (c->status)
		text_add(out, "SBP_TRY(%s(%s));", f, args);
	else
		text_add(out, "SBP_LAUNCH(%s, m, %s);", f, args);
}

const char *cuda_entry(struct emitter *e, const char *name, bool external,
		       struct text *after)
{
	int moves = move_count(e->p);

	(void)external;
	text_add(after,
		 "extern \"C\" sbp_status %s(sbp_model *host)\n{\n"
		 "\tsbp_cuda *m;\n\n"
		 "\tSBP_TRY(sbp_cuda_begin(host, %s, %d, &m));\n"
		 "\tSBP_TRY(run(m));\n"
		 "\treturn sbp_cuda_end(m);\n}\n",
		 name, moves > 0 ? e->moves : "NULL", moves);
	return "static sbp_status run";
}

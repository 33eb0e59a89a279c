/*
 * ir_test.c: the tables and the arithmetic of ir, against goldens and brute
 * force. Prints what differs; the last line counts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"
#include "tests/signatures.h"

static int passed, failed;
static struct arena *a;

static void check(bool ok, const char *what)
{
	if (ok) {
		passed++;
		return;
	}
	failed++;
	printf("FAILED: %s\n", what);
}

static void check_text(const char *what, const char *got, const char *wanted)
{
	bool ok = !strcmp(got, wanted);

	check(ok, what);
	if (!ok)
		printf("  got    %s\n  wanted %s\n", got, wanted);
}

/* Standard error goes to a text. */
static FILE *saved;
static char *caught;
static size_t ncaught;

static void catch_begin(void)
{
	saved = stderr;
	stderr = open_memstream(&caught, &ncaught);
	diag_reset();
}

static const char *catch_end(void)
{
	static char last[4096];

	fclose(stderr);
	stderr = saved;
	snprintf(last, sizeof last, "%s", caught);
	free(caught);
	diag_reset();
	return last;
}

/* ---- signatures ---- */

/* BODY inside a graph with two placements. */
static struct graph *read_body(const char *body)
{
	struct text t = {0};
	struct graph *g;

	text_add(&t, "graph t \"t.sbp\" {\n"
		 "placement p = cpu[0, 1] as [2]\n"
		 "placement grid = cpu[0, 1, 2, 3] as [2, 2]\n%s\n}\n", body);
	g = graph_read(a, source_text("t.ir", t.at, t.n));
	text_free(&t);
	return g;
}

static const char *signatures(const struct node *n)
{
	static char out[4096];
	struct sigs s = op_signatures(a, n);
	char *p = out, *end = out + sizeof out;
	int i, k;

	*out = 0;
	for (i = 0; i < s.n; i++) {
		if (i)
			p += snprintf(p, (size_t)(end - p), "; ");
		for (k = 0; k < n->nin; k++)
			p += snprintf(p, (size_t)(end - p), "%s%s",
				      k ? "," : "",
				      sbp_text(s.at[i].in[k]));
		for (k = 0; k < n->nout; k++)
			p += snprintf(p, (size_t)(end - p), "->%s",
				      sbp_text(s.at[i].out[k]));
	}
	return out;
}

static struct node *last_node(const char *text)
{
	struct text t = {0};
	struct graph *g;

	text_add(&t, "%s%%20: %s", leaves, text);
	g = read_body(t.at);
	text_free(&t);
	return g ? g->nodes.at[g->nodes.n - 1] : NULL;
}

static void test_signatures(bool print)
{
	bool had[OP_N] = {false};
	const struct node *n;
	size_t i;
	int op;

	for (i = 0; i < sizeof goldens / sizeof *goldens; i++) {
		n = last_node(goldens[i].node);
		if (!n) {
			check(false, goldens[i].node);
			continue;
		}
		had[n->op] = true;
		if (print)
			printf("\t{\"%s\",\n\t \"%s\"},\n", goldens[i].node,
			       signatures(n));
		else
			check_text(goldens[i].node, signatures(n),
				   goldens[i].golden);
	}
	for (op = 0; op < OP_N; op++)
		check(had[op] || op == OP_move || op == OP_kernel,
		      text_brief("signatures of %s",
				 op_info((enum op)op)->name));
}

/* ---- intervals, pieces ---- */

static void test_split(void)
{
	int64_t n, at;
	int p, i;
	Interval v;
	bool ok = true;

	for (n = 0; n < 40; n++)
		for (p = 1; p < 9; p++) {
			for (at = 0, i = 0; i < p; i++) {
				v = split(n, p, i);
				ok = ok && v.lo == at &&
				     v.n == n / p + (i < n % p);
				at += v.n;
			}
			ok = ok && at == n;
		}
	check(ok, "split covers each element once");
	check(split(33, 4, 0).n == 9 && split(33, 4, 3).lo == 25 &&
	      split(17, 4, 0).n == 5, "33 over 4: 9, 8, 8, 8");
}

static struct placement mesh(int naxes, const int *extent)
{
	static int ranks[4096];
	struct placement p = {.name = name_of("m"), .naxes = naxes,
			      .nranks = 1, .rank = ranks};
	int i;

	for (i = 0; i < naxes; i++) {
		p.extent[i] = extent[i];
		p.nranks *= extent[i];
	}
	for (i = 0; i < p.nranks; i++)
		ranks[i] = i;
	return p;
}

static Dist two(const struct placement *p, Sbp x, Sbp y)
{
	Dist d = dist_on(p, x);

	d.t[1] = y;
	return d;
}

/* Largest piece and evenness against all devices. */
static bool pieces_agree(Shape s, Dist d)
{
	int coord[MAX_MESH], r, i;
	int64_t most[MAX_RANK] = {0}, least[MAX_RANK], total = 0;
	Shape max = piece_max(s, d);
	Piece p;
	bool ok = true;

	for (i = 0; i < s.rank; i++)
		least[i] = INT64_MAX;
	for (r = 0; r < d.on->nranks; r++) {
		mesh_coords(d.on, r, coord);
		ok = ok && mesh_at(d.on, coord) == r;
		p = piece_of(s, d, coord);
		total += piece_count(p);
		for (i = 0; i < s.rank; i++) {
			if (p.d[i].n > most[i])
				most[i] = p.d[i].n;
			if (p.d[i].n < least[i])
				least[i] = p.d[i].n;
		}
	}
	for (i = 0; i < s.rank; i++)
		ok = ok && max.d[i] == most[i] &&
		     piece_even(s, d, i) == (most[i] == least[i]);
	if (d.t[0].kind == SBP_S && d.t[1].kind == SBP_S)
		ok = ok && total == shape_count(s);
	return ok;
}

static void test_pieces(void)
{
	static const int extents[][2] = {{2, 2}, {2, 3}, {3, 2}, {3, 1},
					 {1, 4}, {4, 2}};
	const Sbp terms[] = {sbp_b(), sbp_s(0), sbp_s(1)};
	struct placement p;
	size_t e, i, j;
	int64_t n;
	bool ok = true;
	int coord[MAX_MESH] = {1, 0};
	Dist d;

	for (e = 0; e < sizeof extents / sizeof *extents; e++) {
		p = mesh(2, extents[e]);
		for (n = 0; n < 14; n++)
			for (i = 0; i < 3; i++)
				for (j = 0; j < 3; j++)
					ok = ok && pieces_agree(
						(Shape){2, {n, 5}},
						two(&p, terms[i], terms[j]));
	}
	check(ok, "largest pieces and evenness");
	p = mesh(2, extents[0]);
	d = two(&p, sbp_s(0), sbp_s(0));
	check(piece_of((Shape){1, {8}}, d, coord).d[0].lo == 4,
	      "axis 0 is outermost");
	d.order[0] = 1;
	d.order[1] = 0;
	check(piece_of((Shape){1, {8}}, d, coord).d[0].lo == 2,
	      "unless the order says otherwise");
	check(!dist_eq(d, two(&p, sbp_s(0), sbp_s(0))), "order matters");
	d.t[1] = sbp_s(1);
	check(dist_eq(d, two(&p, sbp_s(0), sbp_s(1))),
	      "order does not matter for different axes");
}

/* Whether each device holds the same flat run on both sides: the axes that
 * are split come first. */
static bool same_runs(Shape x, Shape y, Dist d)
{
	int coord[MAX_MESH], r;
	int64_t tx, ty;
	Piece p, q;

	tx = shape_count(x) / x.d[0];
	ty = shape_count(y) / y.d[0];
	for (r = 0; r < d.on->nranks; r++) {
		mesh_coords(d.on, r, coord);
		p = piece_of(x, d, coord);
		q = piece_of(y, d, coord);
		if (p.d[0].n * tx != q.d[0].n * ty ||
		    (p.d[0].n && p.d[0].lo * tx != q.d[0].lo * ty))
			return false;
	}
	return true;
}

static void test_reshape(void)
{
	static const int extents[][2] = {{2, 2}, {2, 3}, {3, 1}, {1, 4},
					 {4, 2}, {5, 1}};
	static const int64_t shapes[][3] = {
		{12, 6, 2}, {24, 12, 2}, {24, 8, 3}, {6, 6, 1}, {7, 7, 1},
		{30, 10, 3}, {16, 4, 4}, {48, 24, 2}, {60, 20, 3}
	};
	const Sbp terms[] = {sbp_b(), sbp_s(0)};
	struct placement p;
	size_t e, k, i, j;
	struct node *n;
	Dist d;
	Shape x, y;
	bool ok = true;

	for (k = 0; k < sizeof shapes / sizeof *shapes; k++) {
		x = (Shape){1, {shapes[k][0]}};
		y = (Shape){2, {shapes[k][1], shapes[k][2]}};
		struct graph *g = read_body(text_brief(
			"%%0: f32%s = input()\n%%1: f32%s = reshape(%%0) "
			"{shape = %s}", shape_text(x), shape_text(y),
			shape_text(y)));
		n = g->nodes.at[1];
		for (e = 0; e < sizeof extents / sizeof *extents; e++)
			for (i = 0; i < 2; i++)
				for (j = 0; j < 2; j++) {
					p = mesh(2, extents[e]);
					d = two(&p, terms[i], terms[j]);
					ok = ok && op_legal(n, &d, &d) ==
						same_runs(x, y, d);
				}
	}
	check(ok, "reshape is legal exactly where pieces agree");
}

static void test_why_not(void)
{
	struct node *n = last_node("f32[4, 6] = relu(%0)");
	static const int extent[] = {2, 2};
	struct placement p = mesh(2, extent);
	Dist d = two(&p, sbp_b(), sbp_p(RED_SUM));

	check_text("relu of P", op_why_not(n, &d, &d),
		   "relu takes no P as operand 1, on mesh axis 1; "
		   "nearest: B -> B");
	d = two(&p, sbp_s(0), sbp_s(1));
	check(!op_why_not(n, &d, &d), "relu of (S(0), S(1))");
	d = two(&p, sbp_s(2), sbp_b());
	check_text("no such axis", op_why_not(n, &d, &d),
		   "f32[4, 6] has no axis 2");
	check_text("scalar", dist_why_not(d, (Type){DT_F32, {0, {0}}}),
		   "S(2) of a scalar: it takes B and P only");
	d = two(&p, sbp_b(), sbp_p(RED_MAX));
	check_text("bool", dist_why_not(d, (Type){DT_BOOL, {1, {4}}}),
		   "P(max) of a bool tensor has no meaning");
	check_text("terms", dist_text(d), "m(B, P(max))");
}

/* ---- types ---- */

static void test_promotion(void)
{
	/* Rows and columns: bool u8 i8 i32 i64 f16 bf16 f32 f64. */
	static const char *const golden[DT_N] = {
		"bool u8 i8 i32 i64 f16 bf16 f32 f64",
		"u8 u8 i32 i32 i64 f16 bf16 f32 f64",
		"i8 i32 i8 i32 i64 f16 bf16 f32 f64",
		"i32 i32 i32 i32 i64 f16 bf16 f32 f64",
		"i64 i64 i64 i64 i64 f16 bf16 f32 f64",
		"f16 f16 f16 f16 f16 f16 f32 f32 f64",
		"bf16 bf16 bf16 bf16 bf16 f32 bf16 f32 f64",
		"f32 f32 f32 f32 f32 f32 f32 f32 f64",
		"f64 f64 f64 f64 f64 f64 f64 f64 f64",
	};
	const char *row;
	int i, j;

	for (i = 0; i < DT_N; i++) {
		for (row = "", j = 0; j < DT_N; j++)
			row = text_brief("%s%s%s", row, j ? " " : "",
				dtype_name(dtype_promote((enum dtype)i,
							 (enum dtype)j)));
		check_text("promotion", row, golden[i]);
	}
}

static void test_shapes(void)
{
	Shape s;

	check(shape_broadcast((Shape){2, {4, 1}}, (Shape){3, {2, 1, 5}}, &s) &&
	      shape_eq(s, (Shape){3, {2, 4, 5}}), "[4, 1] with [2, 1, 5]");
	check(shape_broadcast((Shape){1, {1}}, (Shape){1, {0}}, &s) &&
	      s.d[0] == 0, "[1] with [0]");
	check(!shape_broadcast((Shape){1, {2}}, (Shape){1, {3}}, &s),
	      "[2] with [3]");
	check(shape_count((Shape){0, {0}}) == 1, "a scalar has 1 element");
	check_text("type", type_text((Type){DT_F32, {2, {2, 3}}}),
		   "f32[2, 3]");
}

/* What binary operators do to the dtypes of their inputs. */
static const char *promoted(enum op op, const char *x, const char *y,
			    bool wx, bool wy)
{
	struct graph *g = read_body(text_brief(
		"%%0: %s[2] = input()\n%%1: %s[] = fill() {shape = [], "
		"value = 3.0, dtype = %s}", x, y, y));
	struct value *in[] = {g->values.at[0], g->values.at[1]};
	bool weak[] = {wx, wy};
	struct node *n;

	op_promote(g, op, (Span){0, 0}, 2, in, weak);
	n = node_new(g, op, (Span){0, 0}, 2, in);
	if (!node_done(g, n))
		return "error";
	return text_brief("%s %s", dtype_name(in[0]->type.dtype),
			  dtype_name(n->out[0]->type.dtype));
}

static void test_promote(void)
{
	check_text("i32 + i64", promoted(OP_add, "i32", "i64", 0, 0),
		   "i64 i64");
	check_text("i32 + 3", promoted(OP_add, "i32", "i64", 0, 1),
		   "i32 i32");
	check_text("f16 * 3.0", promoted(OP_mul, "f16", "f32", 0, 1),
		   "f16 f16");
	check_text("i64 * 3.0", promoted(OP_mul, "i64", "f32", 0, 1),
		   "f32 f32");
	check_text("bool + 3", promoted(OP_add, "bool", "i64", 0, 1),
		   "i64 i64");
	check_text("i32 / i32", promoted(OP_div, "i32", "i32", 0, 0),
		   "f32 f32");
	check_text("f64 / 3", promoted(OP_div, "f64", "i64", 0, 1),
		   "f64 f64");
	check_text("i64 < f32", promoted(OP_lt, "i64", "f32", 0, 0),
		   "f32 bool");
	check_text("i64 and bool", promoted(OP_logical_and, "i64", "bool", 0,
					    0), "bool bool");
}

/* ---- names ---- */

static void test_names(void)
{
	static const char *const words[] = {"relu", "rsqrt", "matmul", "sum",
					    "linear", "layer_norm"};
	Name list[6];
	int i;

	for (i = 0; i < 6; i++)
		list[i] = name_of(words[i]);
	check(name_of("relu") == list[0] && name_n("relux", 4) == list[0],
	      "names are interned");
	check(name_nearest(name_of("rleu"), list, 6) == list[0], "rleu");
	check(name_nearest(name_of("matml"), list, 6) == list[2], "matml");
	check(name_nearest(name_of("layernorm"), list, 6) == list[5],
	      "layernorm");
	check(!name_nearest(name_of("conv2d"), list, 6), "conv2d");
	check(!name_nearest(name_of("x"), list, 6), "x");
	check(name_match("h.*.fc.weight", "h.12.mlp.fc.weight") &&
	      name_match("a?c*", "abc") && name_match("*", "") &&
	      !name_match("h.*", "g.1") && !name_match("a?", "a"),
	      "patterns");
}

static void test_texts(void)
{
	static const struct {
		double d;
		const char *as_double, *as_float;
	} t[] = {
		{1, "1", "1"}, {0.5, "0.5", "0.5"}, {1e-5, "1e-05", "1e-05"},
		{0.1f, "0.10000000149011612", "0.1"}, {-0.0, "-0", "-0"},
		{1.0 / 3, "0.3333333333333333", "0.33333334"},
	};
	struct text s = {0};
	size_t i;

	for (i = 0; i < sizeof t / sizeof *t; i++) {
		s.n = 0;
		text_add_double(&s, t[i].d);
		check_text("double", s.at, t[i].as_double);
		s.n = 0;
		text_add_float(&s, (float)t[i].d);
		check_text("float", s.at, t[i].as_float);
	}
	text_free(&s);
}

/* ---- messages ---- */

static void test_matmul_message(void)
{
	static const char text[] = "input x\ninput w\n\n\n"
				   "\ty = matmul(x, w)\n";
	const struct source *s = source_text("mlp.sbp", text, strlen(text));
	struct graph *g = read_body("%0 x: f32[128, 64] = input()\n"
				    "%1 w: f32[256, 64] = input()");
	struct node *n;

	g->values.at[0]->span = (Span){s->base + 6, s->base + 7};
	g->values.at[1]->span = (Span){s->base + 14, s->base + 15};
	n = node_new(g, OP_matmul, (Span){s->base + 23, s->base + 35}, 2,
		     g->values.at);
	catch_begin();
	check(!node_done(g, n) && diag_errors() == 1, "inner extents");
	check_text("matmul", catch_end(),
		   "mlp.sbp:5:6: error: matmul: inner extents differ: 64 and "
		   "256\n"
		   "    5 | \ty = matmul(x, w)\n"
		   "      | \t    ^~~~~~~~~~~~\n"
		   "mlp.sbp:1:7: note: left operand 'x' is f32[128, 64], so "
		   "k = 64\n"
		   "mlp.sbp:2:7: note: right operand 'w' is f32[256, 64], so "
		   "k = 256\n"
		   "      = hint: did you mean matmul(x, transpose(w))?\n");
}

/* The first line that TEXT gives, after its place. */
static void bad(const char *text, const char *wanted)
{
	char *first, *end;

	catch_begin();
	check(!last_node(text), text);
	first = strstr(catch_end(), "error: ");
	if (!first) {
		check(false, wanted);
		return;
	}
	end = strchr(first, '\n');
	*end = 0;
	check_text(text, first + 7, wanted);
}

static void test_errors(void)
{
	bad("f32[4, 6] = add(%0, %1)",
	    "add: f32[4, 6] and f32[6, 5] do not broadcast");
	bad("f32[4, 6] = add(%0, %4)",
	    "add: operands of one dtype expected, not f32 and i64");
	bad("f32[4, 6] = exp(%4)", "exp: it takes floats, not i64[4, 6]");
	bad("f32[4] = sum(%0) {axis = [2]}",
	    "sum: axis 2 of f32[4, 6], which has 2");
	bad("f32[4] = sum(%0) {axis = [1, -1]}", "sum: axis 1 twice");
	bad("f32[4] = sum(%0) {axes = [1]}",
	    "sum: it has no argument 'axes'");
	bad("f32[5, 5] = reshape(%0) {shape = [5, 5]}",
	    "reshape: 24 elements do not fill [5, 5]");
	bad("f32[5, 5] = reshape(%0) {shape = [-1, 5]}",
	    "reshape: 24 elements leave no extent for the -1 of [-1, 5]");
	bad("f32[6, 4] = permute(%0) {dims = [1, 1]}",
	    "permute: axis 1 of f32[4, 6] is named twice");
	bad("f32[6, 4] = expand(%0) {shape = [6, 4]}",
	    "expand: f32[4, 6] does not expand to [6, 4]");
	bad("f32[6, 4] = concat(%0, %1) {axis = 0}",
	    "concat: f32[6, 5] does not go with f32[4, 6] along axis 0");
	bad("f32[6, 4] = gather(%0) {axis = 0}",
	    "gather: 1 tensor given, expected 2");
	bad("f32[4, 6] = cast(%0)", "cast: argument 'dtype' is missing");
	bad("f32[5, 6] = relu(%0)", "relu gives f32[4, 6], not f32[5, 6]");
	bad("f32[4, 6] = rule(%0)", "an operator expected");
	bad("f32[4, 6] = relu(%77)", "%77 is not defined yet");
	bad("f32[] = fill() {shape = [], dtype = f32}",
	    "fill: argument 'value' is missing");
	bad("f32[0] = slice(%0) {axis = 0, start = 0, stop = 1, step = 0}",
	    "slice: step 0, expected at least 1");
	bad("f32[4, 6] p(P) = relu(%0) wants [p(P)]",
	    "relu takes no P as operand 1, on mesh axis 0; nearest: "
	    "B -> B");
}

static void test_empty_reduction(void)
{
	struct graph *g = read_body("%0: f32[3, 0] = input()");
	struct node *n = node_new(g, OP_max, (Span){0, 0}, 1, g->values.at);

	catch_begin();
	check(!node_done(g, n), "max of nothing");
	catch_end();
	n = node_new(g, OP_max, (Span){0, 0}, 1, g->values.at);
	node_int(g, n, "axis", 0);
	check(node_done(g, n) && n->out[0]->type.shape.d[0] == 0,
	      "max over 3 rows of none");
	n = node_new(g, OP_sum, (Span){0, 0}, 1, g->values.at);
	check(node_done(g, n), "sum of nothing");
}

static void test_diag(void)
{
	const struct source *s = source_text("d.sbp", "a = \xc3\xa9 + b\nc",
					     12);
	struct trail outer = {{s->base, s->base + 1}, name_of("f"), NULL};

	catch_begin();
	diag_error((Span){s->base + 9, s->base + 12}, "first");
	diag_trail(&outer);
	diag_error((Span){s->base + 9, s->base + 12}, "first");
	diag_note((Span){s->base, s->base}, "muted");
	diag_warn((Span){0, 0}, "nowhere");
	diag_hint("try");
	check(diag_errors() == 2, "both errors count");
	check_text("messages", catch_end(),
		   "d.sbp:1:10: error: first\n"
		   "    1 | a = \xc3\xa9 + b\n"
		   "      |         ^\n"
		   "d.sbp:1:1: note: in this call of 'f'\n"
		   "sbpc: warning: nowhere\n"
		   "      = hint: try\n");
}

/* ---- text of a graph ---- */

static const char sample[] =
	"graph m \"m.sbp\" {\n"
	"  placement p#0(x) = cpu[0, 1] as [2]\n"
	"  placement grid(dp, _) = cuda[3, 1, 2, 0] as [2, 2]\n"
	"  placement p#2 = cpu[2] as [1]\n"
	"  on grid\n"
	"  data train = idx(\"a.gz\", \"b \\\"c\\\".gz\")\n"
	"  %0 x: f32[4, 6] grid(S(0), B) = input() on grid from train : "
	"image\n"
	"  %1 \"odd name\": f32[6, 5] keep = param() init "
	"uniform(-0.1, 0.1, 0.0, 0.0)\n"
	"  %2: f32[4, 6] p#2(B) = constant() init none\n"
	"  %3 s: i64[3] = state() init data [1, -2, 9007199254740993]\n"
	"  %4: f32[3] p#0(P) = constant() init data local([1, 0.1, "
	"-0], [inf, 0x7fc00001, 1e-05])\n"
	"  %5: bf16[2] = constant() init data [0x3f80, 0x7fc0]\n"
	"  %6 h: f32[4, 5] = matmul(%0, %1) on grid\n"
	"  %7: f32[4] grid(_, _) = max(%6) {axis = [1], keepdim = false} "
	"on grid wants [grid(S(0), S(0) order 1, 0, 2, 3)]\n"
	"  %8: f32[4] = slice(%7) {axis = 0, start = 0, stop = 4, step = 1}\n"
	"  %9: i64[] = fill() {shape = [], dtype = i64, int = "
	"9007199254740993, value = 9007199254740992.0}\n"
	"  %10: f32[2] = fill() {shape = [2], value = -inf, dtype = f32}\n"
	"  %11: i64[3] = add(%3, %3)\n"
	"  %12: f32[4] grid(P(max), B) = move(%7) {why = \"a\\\\b\\x09\"}\n"
	"  %13: f32[4] = kernel(%7, %8) on grid do\n"
	"    %14: f32[4] = neg(%7) on grid\n"
	"    %13: f32[4] = add(%14, %8) on grid\n"
	"  end\n"
	"  %15: f32[4] = kernel(%7) do\n"
	"    %14: f32[4] = neg(%7) on grid\n"
	"    %16: f32[] = fill() {shape = [], value = 1.5, dtype = f32}\n"
	"    %15: f32[4] = add(%14, %16)\n"
	"  end\n"
	"  %16: f32[] = fill() {shape = [], value = 1.5, dtype = f32}\n"
	"  output y = %13\n"
	"  output t = %16\n"
	"  output \"z z\" = %6\n"
	"  update %3 = %11\n"
	"}\n";

static const char *printed(const struct graph *g)
{
	static struct text t;

	t.n = 0;
	graph_print(g, &t);
	return t.at;
}

/* What is printed, without the comments. */
static const char *stripped(const struct graph *g)
{
	static char out[8192];
	const char *s = printed(g), *p;
	size_t n = 0;

	while (*s && n < sizeof out - 1) {
		p = strstr(s, "  # ");
		if (p == s)
			s += strcspn(s, "\n");
		else
			out[n++] = *s++;
	}
	out[n] = 0;
	return out;
}

static void test_round_trip(void)
{
	struct graph *g = graph_read(a, source_text("m.ir", sample,
						    strlen(sample)));
	struct graph *h;
	const char *first;

	check(g != NULL, "the sample is read");
	if (!g)
		return;
	graph_verify(g);
	first = arena_text(a, "%s", stripped(g));
	check_text("print of read", first, sample);
	h = graph_read(a, source_text("again.ir", first, strlen(first)));
	check(h != NULL, "what is printed is read");
	if (h)
		check_text("print of read of print", stripped(h), first);
	graph_sweep(g);
	graph_verify(g);
	check(g->nodes.at[g->nodes.n - 2]->op == OP_kernel,
	      "what nothing reads is swept");
	check(attr_int(h->nodes.at[9], "int") == 9007199254740993,
	      "integers are exact");
}

/* Reads TEXT with a few bytes replaced by others of it. */
static void read_damaged(const char *text, size_t n, uint32_t *seed,
			 int bytes)
{
	struct arena *mine = a;
	char *copy = malloc(n + 1);
	struct graph *g;

	a = arena_new();
	memcpy(copy, text, n + 1);
	for (; bytes; bytes--) {
		*seed = *seed * 1664525 + 1013904223;
		copy[(*seed >> 8) % n] = text[(*seed >> 4) % n];
	}
	g = graph_read(a, source_text("d.ir", copy, n));
	if (g)
		printed(g);
	arena_free(a);
	a = mine;
	free(copy);
}

/* Random damage must give an error or a graph, and nothing else. */
static void test_damage(void)
{
	struct text t = {0};
	uint32_t seed = 1;
	int round;
	size_t i;

	catch_begin();
	for (round = 0; round < 2000; round++)
		read_damaged(sample, strlen(sample), &seed, 1 + round % 3);
	for (i = 0; i < sizeof goldens / sizeof *goldens; i++) {
		t.n = 0;
		text_add(&t, "graph t \"t\" {\n%s%%20: %s\n}\n", leaves,
			 goldens[i].node);
		for (round = 0; round < 60; round++)
			read_damaged(t.at, t.n, &seed, 1 + round % 2);
	}
	text_free(&t);
	catch_end();
	check(true, "damaged texts");
}

int main(int argc, char **argv)
{
	a = arena_new();
	op_self_check();
	check(true, "self-check");
	test_signatures(argc > 1 && !strcmp(argv[1], "--print-signatures"));
	test_split();
	test_pieces();
	test_reshape();
	test_why_not();
	test_promotion();
	test_shapes();
	test_promote();
	test_names();
	test_texts();
	test_matmul_message();
	test_errors();
	test_empty_reduction();
	test_diag();
	test_round_trip();
	test_damage();
	arena_free(a);
	printf("ir_test: %d passed, %d failed\n", passed, failed);
	return failed != 0;
}

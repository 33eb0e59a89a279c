/*
 * init.c: what params, states and consts begin with: an initialiser, a
 * number, a literal, a .npy file, or one piece for each rank.
 */
#include <math.h>
#include <string.h>

#include "frontend/lower.h"

/* ---- elements ---- */

/* D rounded to a float of EBITS exponent and MBITS mantissa bits, half to
 * even. */
static uint16_t small_float(double d, int ebits, int mbits)
{
	int bias = (1 << (ebits - 1)) - 1, e;
	unsigned sign = signbit(d) ? 1u << (ebits + mbits) : 0;
	unsigned inf = ((1u << ebits) - 1) << mbits;
	double q;

	if (isnan(d))
		return (uint16_t)(sign | inf | 1u << (mbits - 1));
	if (isinf(d))
		return (uint16_t)(sign | inf);
	frexp(d, &e);
	e = e - 1 < 1 - bias ? 1 - bias : e - 1;
	q = rint(ldexp(fabs(d), mbits - e)); /* mantissa with its 1 */
	if (q >= ldexp(1, mbits + 1)) {
		q /= 2;
		e++;
	}
	if (e > bias)
		return (uint16_t)(sign | inf);
	if (q < ldexp(1, mbits))
		return (uint16_t)(sign | (unsigned)q);
	return (uint16_t)(sign | (unsigned)(e + bias) << mbits |
			  ((unsigned)q & ((1u << mbits) - 1)));
}

static void store_float(void *to, enum dtype t, double d)
{
	float f = (float)d;
	uint16_t h = t == DT_F16 ? small_float(d, 5, 10) : small_float(d, 8, 7);

	if (t == DT_F64)
		memcpy(to, &d, sizeof d);
	else if (t == DT_F32)
		memcpy(to, &f, sizeof f);
	else
		memcpy(to, &h, sizeof h);
}

/* Little endian, as the machines that this compiles for. */
static bool store(struct low *l, void *to, enum dtype t, Val v, Span at)
{
	bool fits;

	if (dtype_is_float(t) && (v.kind == V_INT || v.kind == V_FLOAT)) {
		store_float(to, t, val_double(v));
		return true;
	}
	fits = t == DT_BOOL ? v.kind == V_BOOL : v.kind == V_INT;
	if (!fits || dtype_is_float(t)) {
		fail(l, at, "%s is no %s", val_what(v), dtype_name(t));
		return false;
	}
	if (!int_fits(t, v.i)) {
		fail(l, at, "%lld does not fit %s", (long long)v.i,
		     dtype_name(t));
		return false;
	}
	memcpy(to, &v.i, (size_t)dtype_size(t));
	return true;
}

/* ---- literals ---- */

struct literal {
	Type t;
	char *to;
	Span at;
};

static bool fill_literal(struct low *l, struct literal *c, Val v, int axis)
{
	bool list = val_is_list(v);

	if (v.kind == V_BAD)
		return false;
	if (axis == c->t.shape.rank) {
		if (list) {
			fail(l, c->at, "the literal is nested deeper than %s",
			     type_text(c->t));
			return false;
		}
		if (!store(l, c->to, c->t.dtype, v, c->at))
			return false;
		c->to += dtype_size(c->t.dtype);
		return true;
	}
	if (!list || val_count(v) != c->t.shape.d[axis]) {
		fail(l, c->at, "axis %d of %s wants a list of %lld, found %s%s",
		     axis, type_text(c->t), (long long)c->t.shape.d[axis],
		     val_what(v),
		     list ? text_brief(" of %lld", (long long)val_count(v))
			  : "");
		return false;
	}
	for (int64_t i = 0; i < val_count(v); i++)
		if (!fill_literal(l, c, val_nth(v, i), axis + 1))
			return false;
	return true;
}

static const void *literal_data(struct low *l, Val v, Type t, Span at)
{
	struct literal c = {t, NULL, at};
	int64_t n = shape_count(t.shape);
	char *to;

	if (!count_steps(l, n, at))
		return NULL;
	to = arena_alloc(l->a, (size_t)type_bytes(t) + 1);
	c.to = to;
	return fill_literal(l, &c, v, 0) ? to : NULL;
}

static bool is_call(const struct expr *e, const char *name)
{
	return e->kind == E_CALL && !strcmp(e->name, name);
}

static const void *npy_data(struct low *l, const struct expr *e, Type t)
{
	const char *name = e->nkid == 1 ? eval_text(l, e->kid[0]) : NULL;
	const char *path, *why;
	const void *data;

	if (e->nkid != 1 || e->kid[0]->kind != E_TEXT) {
		fail(l, e->span, "npy takes the name of a file");
		return NULL;
	}
	if (!name)
		return NULL;
	path = beside(l, name);
	data = npy_read(l->a, path, t, &why);
	if (!data)
		fail(l, e->kid[0]->span, "cannot read '%s': %s", path, why);
	else if (l->files)
		PUSH(l->a, l->files->at, path);
	return data;
}

/* A literal or file of exactly type T. */
static const void *data_of(struct low *l, const struct expr *e, Type t)
{
	if (is_call(e, "npy"))
		return npy_data(l, e, t);
	return literal_data(l, eval(l, e), t, e->span);
}

/* ---- local(...) ---- */

/* The device that holds the same copy and comes first. */
static int first_copy(Dist d, int index)
{
	int coord[MAX_MESH];

	mesh_coords(d.on, index, coord);
	for (int i = 0; i < d.on->naxes; i++)
		if (d.t[i].kind == SBP_B)
			coord[i] = 0;
	return mesh_at(d.on, coord);
}

static Type local_type(Type t, Dist d, int index)
{
	int coord[MAX_MESH];
	Piece p;

	mesh_coords(d.on, index, coord);
	p = piece_of(t.shape, d, coord);
	for (int i = 0; i < t.shape.rank; i++)
		t.shape.d[i] = p.d[i].n;
	return t;
}

static bool local_pieces(struct low *l, const struct expr *e, Type t, Dist d,
			 const void **piece)
{
	for (int i = 0; i < d.on->nranks; i++) {
		Type own = local_type(t, d, i);
		int first = first_copy(d, i);

		piece[i] = data_of(l, e->kid[i], own);
		if (!piece[i])
			return false;
		if (memcmp(piece[i], piece[first], (size_t)type_bytes(own))) {
			fail(l, e->kid[i]->span,
			     "copies of a B differ: this "
			     "piece and that of rank %d",
			     d.on->rank[first]);
			diag_note(e->kid[first]->span, "the other copy");
			return false;
		}
	}
	return true;
}

static bool eval_local(struct low *l, const struct expr *e, Type t, Dist d,
		       struct init *init)
{
	if (!dist_known(d)) {
		fail(l, e->span,
		     "local(...) needs a distribution without "
		     "'_'");
		return false;
	}
	if (e->nkid != d.on->nranks) {
		fail(l, e->span,
		     "local(...) has one piece for each of %d "
		     "ranks, found %d",
		     d.on->nranks, e->nkid);
		return false;
	}
	init->kind = INIT_DATA;
	init->local = NEW_N(l->a, const void *, d.on->nranks);
	return local_pieces(l, e, t, d, init->local);
}

/* ---- initialisers ---- */

enum initialiser {
	I_ZEROS,
	I_ONES,
	I_CONSTANT,
	I_UNIFORM,
	I_NORMAL,
	I_TRUNC_NORMAL,
	I_KAIMING_UNIFORM,
	I_KAIMING_NORMAL,
	I_XAVIER_UNIFORM,
	I_XAVIER_NORMAL,
	I_N
};

static const struct spec { /* ORDER initialiser */
	const char *name, *param[4];
	double initial[4]; /* nan: required */
} specs[] = {
	{"zeros", {NULL}, {0}},
	{"ones", {NULL}, {0}},
	{"constant", {"value"}, {NAN}},
	{"uniform", {"low", "high"}, {0, 1}},
	{"normal", {"mean", "std"}, {0, 1}},
	{"trunc_normal", {"mean", "std", "a", "b"}, {0, 1, -2, 2}},
	{"kaiming_uniform", {"a", "mode", "nonlinearity"}, {0}},
	{"kaiming_normal", {"a", "mode", "nonlinearity"}, {0}},
	{"xavier_uniform", {"gain"}, {1}},
	{"xavier_normal", {"gain"}, {1}},
};

static const struct spec *find_spec(const struct expr *e)
{
	for (int i = 0; i < I_N; i++)
		if (is_call(e, specs[i].name))
			return &specs[i];
	return NULL;
}

/* The bound arguments of an initialiser. */
struct settings {
	double x[4];
	const char *mode, *nonlinearity;
};

static bool set_text(struct low *l, const struct param *p, const char **to)
{
	if (!p->given)
		return true;
	if (p->v.kind == V_TEXT)
		*to = p->v.text;
	else
		fail(l, p->at, "argument '%s' is a text, found %s", p->name,
		     val_what(p->v));
	return p->v.kind == V_TEXT;
}

static bool set_number(struct low *l, const struct param *p, double *to)
{
	return !p->given ||
	       want_double(l, p->v, p->at, text_brief("argument '%s'", p->name),
			   to);
}

static bool settings_of(struct low *l, const struct expr *e,
			const struct spec *s, struct settings *out)
{
	struct param p[4] = {0};
	struct args args;
	int n = 0;
	bool ok;

	*out = (struct settings){.mode = "fan_in",
				 .nonlinearity = "leaky_relu"};
	for (; n < 4 && s->param[n]; n++) {
		p[n].name = name_of(s->param[n]);
		p[n].optional = !isnan(s->initial[n]);
		out->x[n] = s->initial[n];
	}
	if (!eval_args(l, e->kid, e->nkid, &args))
		return false;
	for (int i = 0; i < args.n && s == &specs[I_UNIFORM]; i++)
		if (args.at[i].key == name_of("a")) /* PyTorch's names */
			args.at[i].key = name_of("low");
		else if (args.at[i].key == name_of("b"))
			args.at[i].key = name_of("high");
	if (!bind_args(l, e, &args, p, n))
		return false;
	if (n != 3) {
		for (ok = true, n--; n >= 0 && ok; n--)
			ok = set_number(l, &p[n], &out->x[n]);
		return ok;
	}
	return set_number(l, &p[0], &out->x[0]) &&
	       set_text(l, &p[1], &out->mode) &&
	       set_text(l, &p[2], &out->nonlinearity);
}

static bool gain(struct low *l, const struct settings *s, Span at, double *out)
{
	const char *name = s->nonlinearity;

	if (!strcmp(name, "leaky_relu"))
		*out = sqrt(2 / (1 + s->x[0] * s->x[0]));
	else if (!strcmp(name, "relu"))
		*out = sqrt(2);
	else if (!strcmp(name, "tanh"))
		*out = 5.0 / 3;
	else if (!strcmp(name, "linear") || !strcmp(name, "sigmoid"))
		*out = 1;
	else
		fail(l, at,
		     "unknown nonlinearity '%s', expected leaky_relu, "
		     "relu, tanh, sigmoid or linear",
		     name);
	return *out > 0;
}

/* PyTorch's: axis 0 are the outputs, axis 1 the inputs, the others the
 * receptive field. */
static bool fans(struct low *l, Type t, Span at, double *in, double *out)
{
	double field = 1;

	if (t.shape.rank < 2) {
		fail(l, at, "the initialiser needs at least 2 axes, found %s",
		     type_text(t));
		return false;
	}
	for (int i = 2; i < t.shape.rank; i++)
		field *= (double)t.shape.d[i];
	*in = (double)t.shape.d[1] * field;
	*out = (double)t.shape.d[0] * field;
	return true;
}

static void spread(struct init *init, bool uniform, double std)
{
	init->kind = uniform ? INIT_UNIFORM : INIT_NORMAL;
	init->a = uniform ? -sqrt(3) * std : 0;
	init->b = uniform ? sqrt(3) * std : std;
}

static bool kaiming(struct low *l, const struct settings *s, Type t, Span at,
		    bool uniform, struct init *init)
{
	double in, out, fan, g = 0;

	if (!fans(l, t, at, &in, &out) || !gain(l, s, at, &g))
		return false;
	if (strcmp(s->mode, "fan_in") && strcmp(s->mode, "fan_out")) {
		fail(l, at, "unknown mode '%s', expected fan_in or fan_out",
		     s->mode);
		return false;
	}
	fan = !strcmp(s->mode, "fan_in") ? in : out;
	spread(init, uniform, fan > 0 ? g / sqrt(fan) : 0);
	return true;
}

static bool xavier(struct low *l, double g, Type t, Span at, bool uniform,
		   struct init *init)
{
	double in, out;

	if (!fans(l, t, at, &in, &out))
		return false;
	spread(init, uniform, in + out > 0 ? g * sqrt(2 / (in + out)) : 0);
	return true;
}

static bool check_range(struct low *l, const struct init *init, Span at)
{
	bool ok = true;

	if (init->kind == INIT_UNIFORM)
		ok = init->a <= init->b;
	else if (init->kind == INIT_NORMAL)
		ok = init->b >= 0;
	else if (init->kind == INIT_TRUNC_NORMAL)
		ok = init->b >= 0 && init->c < init->d;
	if (!ok)
		fail(l, at, "the bounds of the initialiser are not in order");
	return ok;
}

static bool eval_initialiser(struct low *l, const struct expr *e,
			     const struct spec *spec, Type t, struct init *init)
{
	enum initialiser k = (enum initialiser)(spec - specs);
	struct settings s;

	if (!settings_of(l, e, spec, &s))
		return false;
	if (k > I_CONSTANT && !dtype_is_float(t.dtype)) {
		fail(l, e->span, "%s is for floats, found %s", spec->name,
		     type_text(t));
		return false;
	}
	*init = (struct init){.kind = INIT_CONSTANT, .a = s.x[0]};
	init->b = s.x[1];
	init->c = s.x[2];
	init->d = s.x[3];
	if (k == I_ONES)
		init->a = 1;
	else if (k == I_UNIFORM)
		init->kind = INIT_UNIFORM;
	else if (k == I_NORMAL)
		init->kind = INIT_NORMAL;
	else if (k == I_TRUNC_NORMAL)
		init->kind = INIT_TRUNC_NORMAL;
	else if (k == I_KAIMING_UNIFORM || k == I_KAIMING_NORMAL)
		return kaiming(l, &s, t, e->span, k == I_KAIMING_UNIFORM, init);
	else if (k > I_KAIMING_NORMAL)
		return xavier(l, s.x[0], t, e->span, k == I_XAVIER_UNIFORM,
			      init);
	return check_range(l, init, e->span);
}

/* ---- all of it ---- */

static bool constant(struct low *l, const struct expr *e, Val v, Type t,
		     struct init *init)
{
	char element[8];

	if (!store(l, element, t.dtype, v, e->span))
		return false;
	init->kind = INIT_CONSTANT;
	init->a = val_double(v);
	if (v.kind != V_INT || dtype_is_float(t.dtype) ||
	    (v.i <= 1LL << 53 && v.i >= -(1LL << 53)))
		return true;
	fail(l, e->span, "a constant beyond 2**53 stands in a literal");
	return false;
}

static bool literal(struct low *l, const struct expr *e, Type t,
		    struct init *init)
{
	Val v = eval(l, e);

	if (v.kind == V_BAD)
		return false;
	if (v.kind == V_TENSOR) {
		fail(l, e->span,
		     "expected a value known at compile time, "
		     "found %s",
		     val_what(v));
		return false;
	}
	if (!val_is_list(v))
		return constant(l, e, v, t, init);
	init->kind = INIT_DATA;
	init->data = literal_data(l, v, t, e->span);
	return init->data != NULL;
}

const struct init *eval_init(struct low *l, const struct expr *e, Type t,
			     Dist dist)
{
	struct init *init = NEW(l->a, struct init);
	const struct spec *spec = find_spec(e);
	bool ok;

	if (spec) {
		ok = eval_initialiser(l, e, spec, t, init);
	} else if (is_call(e, "local")) {
		ok = eval_local(l, e, t, dist, init);
	} else if (is_call(e, "npy")) {
		init->kind = INIT_DATA;
		init->data = npy_data(l, e, t);
		ok = init->data != NULL;
	} else {
		ok = literal(l, e, t, init);
	}
	return ok ? init : NULL;
}

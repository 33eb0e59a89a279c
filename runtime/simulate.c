/*
 * simulate.c: whose turn it is. A rank that must wait hands the turn on to one
 * that need not; when all wait, that is a deadlock.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/sbp_random.h"
#include "runtime/simulate.h"

enum { STACK_BYTES = 2 << 20 };

/* ---- the life of a simulation ---- */

static bool actors_init(struct simulation *s)
{
	for (int r = 0; r < s->p->world; r++)
		pthread_cond_init(&s->actor[r].woken, NULL);
	for (int r = 0; r < s->p->world; r++) {
		struct actor *a = &s->actor[r];
		int class_ = tensor_class(s->p, r);

		a->s = s;
		a->rank = r;
		if (!order_init(a) ||
		    !shadow_init(&a->shadow,
				 CONTROL_BYTES + s->p->arena_bytes[class_]))
			return false;
	}
	return true;
}

/* So many that most waits find theirs, and that a large world has room. */
static unsigned history_of(int world)
{
	int64_t each = (int64_t)CHANNELS * world * world * 4;
	int64_t n = ((int64_t)256 << 20) / each;

	return n < 2 ? 2 : n > 256 ? 256 : (unsigned)n;
}

struct simulation *simulation_new(const sbp_program *p, const sbp_trace *trace,
				  uint64_t seed)
{
	struct simulation *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->p = p;
	s->trace = trace;
	s->in_turns = seed == 0;
	s->random = seed;
	s->history = history_of(p->world);
	pthread_mutex_init(&s->lock, NULL);
	s->group = sbp_group_new(p->world);
	s->actor = calloc((size_t)p->world, sizeof *s->actor);
	s->seen = calloc((size_t)p->world, sizeof *s->seen);
	s->kept = malloc(KEPT_BYTES);
	if (!s->group || !s->actor || !s->seen || !s->kept || !actors_init(s)) {
		simulation_free(s);
		return NULL;
	}
	group_simulate(s->group, s);
	return s;
}

void simulation_free(struct simulation *s)
{
	for (int r = 0; s && s->actor && r < s->p->world; r++) {
		pthread_cond_destroy(&s->actor[r].woken);
		order_free(&s->actor[r]);
		shadow_free(&s->actor[r].shadow);
	}
	if (!s)
		return;
	sbp_group_free(s->group);
	pthread_mutex_destroy(&s->lock);
	free(s->actor);
	free(s->seen);
	free(s->kept);
	free(s);
}

/* splitmix64 */
uint64_t simulation_draw(struct simulation *s)
{
	return sbp_mix(s->random += UINT64_C(0x9e3779b97f4a7c15));
}

/* In floats of all widths these are numbers that no sum survives. */
void simulate_litter(struct simulation *s, int rank, unsigned char *at,
		     int64_t bytes)
{
	uint64_t x = s->random + (uint64_t)rank * 2654435761u;

	for (int64_t i = 0; i < bytes; i++) {
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
		at[i] = (unsigned char)(x >> 56 | 0x40);
	}
}

/* ---- turns ---- */

static bool can_run(const struct actor *a)
{
	return a->live && (!a->watch || a->s->failed || comm_arrived(a->watch));
}

/* The next one after rank FROM that can run; NULL: all that live wait. */
static struct actor *next_in_turn(struct simulation *s, int from)
{
	for (int i = 1; i <= s->p->world; i++) {
		struct actor *a = &s->actor[(from + i) % s->p->world];

		if (can_run(a))
			return a;
	}
	return NULL;
}

static struct actor *next_at_random(struct simulation *s)
{
	struct actor *found = NULL;
	uint64_t n = 0;

	for (int r = 0; r < s->p->world; r++)
		if (can_run(&s->actor[r]) && simulation_draw(s) % ++n == 0)
			found = &s->actor[r];
	return found;
}

static struct actor *next_actor(struct simulation *s, int from)
{
	return s->in_turns ? next_in_turn(s, from) : next_at_random(s);
}

static void await_turn(struct actor *a)
{
	struct simulation *s = a->s;

	pthread_mutex_lock(&s->lock);
	while (s->turn != a)
		pthread_cond_wait(&a->woken, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

static void give_turn(struct simulation *s, struct actor *to)
{
	pthread_mutex_lock(&s->lock);
	s->turn = to;
	if (to)
		pthread_cond_signal(&to->woken);
	pthread_mutex_unlock(&s->lock);
}

static struct actor *first_living(struct simulation *s)
{
	for (int r = 0; r < s->p->world; r++)
		if (s->actor[r].live)
			return &s->actor[r];
	return NULL;
}

/* Hands the turn on; returns when A, which still lives, has it again. */
static void hand_on(struct actor *a)
{
	struct simulation *s = a->s;
	struct actor *next = next_actor(s, a->rank);

	if (!next) {
		next = first_living(s);
		s->failed = s->stuck = next != NULL;
	}
	if (next == a)
		return;
	give_turn(s, next);
	if (a->live)
		await_turn(a);
}

/* ---- threads ---- */

static void *act(void *context)
{
	struct actor *a = context;

	await_turn(a);
	a->s->body(a, a->s->context);
	if (a->status != SBP_OK)
		a->s->failed = true;
	a->live = false;
	a->watch = NULL;
	hand_on(a);
	return NULL;
}

static sbp_status start(struct simulation *s, sbp_message *e)
{
	pthread_attr_t attr;
	int error = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (int r = 0; r < s->p->world && !error; r++) {
		struct actor *a = &s->actor[r];

		error = pthread_create(&a->thread, &attr, act, a);
		a->started = a->live = !error;
	}
	pthread_attr_destroy(&attr);
	if (!error)
		return SBP_OK;
	/* Those that run already find that all is over. */
	s->failed = s->complained = true;
	return message_set(e, SBP_FAILED, "cannot start %d threads: %s",
			   s->p->world, strerror(error));
}

sbp_status simulation_run(struct simulation *s,
			  void (*body)(struct actor *a, void *context),
			  void *context, sbp_message *e)
{
	sbp_status status;

	s->body = body;
	s->context = context;
	status = start(s, e);
	give_turn(s, next_actor(s, s->p->world - 1));
	for (int r = 0; r < s->p->world; r++)
		if (s->actor[r].started)
			pthread_join(s->actor[r].thread, NULL);
	return status;
}

/* ---- what people read ---- */

void act_text(const struct simulation *s, struct act act, char *to, size_t size)
{
	const sbp_move *move = act.of;
	const sbp_access *call = act.of;
	const sbp_tensor *t = act.of;

	switch (act.kind) {
	case ACT_MOVE:
		snprintf(to, size, "%s of '%s' (%s:%d)", move->how->name,
			 move->value, s->p->file, move->line);
		return;
	case ACT_CALL:
		snprintf(to, size, "%s, '%s' (%s:%d)", call->op, call->value,
			 s->p->file, call->line);
		return;
	case ACT_TENSOR:
		snprintf(to, size, "'%s' (%s:%d) between steps", t->name,
			 s->p->file, t->line);
		return;
	case ACT_OUTSIDE:
		snprintf(to, size, "what is outside of steps");
	}
}

void actor_blame(struct actor *a, const char *format, ...)
{
	va_list args;

	if (a->wrong)
		return;
	a->wrong = true;
	va_start(args, format);
	vsnprintf(a->error.text, sizeof a->error.text, format, args);
	va_end(args);
}

/* "rank 1 waits for rank 0's data in ..." */
static void waiting_text(const struct actor *a, char *to, size_t size)
{
	static const char *const what[CHANNELS] = {
		"to give its data", "to have read", "to come", "to have read",
		"to send its data"};
	char doing[160];

	act_text(a->s, a->act, doing, sizeof doing);
	if (!a->live)
		snprintf(to, size, "; rank %d has ended", a->rank);
	else if (a->peer < 0)
		snprintf(to, size, "; rank %d waits for all to open the model",
			 a->rank);
	else
		snprintf(to, size, "; rank %d waits for rank %d %s in %s",
			 a->rank, a->peer, what[a->awaited], doing);
}

/* All that wait, as far as there is room. */
static sbp_status tell_deadlock(struct simulation *s, sbp_message *e)
{
	char list[400] = "", one[300];
	size_t n = 0;
	int left = 0;

	for (int r = 0; r < s->p->world; r++) {
		size_t size;

		waiting_text(&s->actor[r], one, sizeof one);
		size = strlen(one);
		if (left || n + size >= sizeof list) {
			left++;
			continue;
		}
		memcpy(list + n, one, size + 1);
		n += size;
	}
	if (left)
		return message_set(e, SBP_FAILED, "deadlock: %s; and %d others",
				   list + 2, left);
	return message_set(e, SBP_FAILED, "deadlock: %s", list + 2);
}

/* Why A waits in vain. */
static sbp_status tell_why(struct comm *c, struct actor *a, sbp_message *e)
{
	struct simulation *s = a->s;

	if (s->stuck && !s->told) {
		s->told = true;
		return tell_deadlock(s, e);
	}
	if (a->peer >= 0)
		SBP_TRY(comm_look(c, e));
	c->follows = true;
	return message_set(e, SBP_FAILED, "another rank has failed");
}

/* ---- hooks ---- */

static sbp_status wait_for(struct comm *c, int peer, int channel,
			   const struct watch *w, sbp_message *e)
{
	struct actor *a = actor_of(c);
	sbp_status status = SBP_OK;

	SBP_TRY(simulate_check(c, e));
	a->watch = w;
	a->peer = peer;
	a->awaited = channel;
	while (status == SBP_OK && !comm_arrived(w)) {
		if (a->s->failed)
			status = tell_why(c, a, e);
		else
			hand_on(a);
	}
	if (status == SBP_OK && channel >= 0)
		order_join(a, peer, channel, w->n);
	a->watch = NULL;
	return status == SBP_OK ? simulate_check(c, e) : status;
}

/* What is no flag is the number of a message that has been received, or of
 * ranks that have joined. */
sbp_status simulate_watch(struct comm *c, int peer, const struct watch *w,
			  sbp_message *e)
{
	int channel = peer >= 0 ? channel_of(c->control[peer], w->at) : -1;

	return wait_for(c, peer, channel, w, e);
}

/* After the post: others may see it before this rank goes on. */
static void maybe_hand_on(struct actor *a)
{
	if (!a->s->in_turns && simulation_draw(a->s) & 1)
		hand_on(a);
}

void simulate_post(struct comm *c, enum lane lane, enum flag flag, uint64_t n)
{
	struct actor *a = actor_of(c);

	order_post(a, lane * FLAGS + flag, n);
	if (flag == FLAG_READY)
		seal_source(a, lane, n);
	else
		unseal_sources(a, lane, n);
	maybe_hand_on(a);
}

void simulate_send(struct comm *c, uint64_t n)
{
	struct actor *a = actor_of(c);

	order_post(a, MAIL_CHANNEL, n);
	a->sent = n;
	maybe_hand_on(a);
}

sbp_status simulate_receive(struct comm *c, int peer, uint64_t n,
			    sbp_message *e)
{
	struct watch w = {&c->simulation->actor[peer].sent, n};

	return wait_for(c, peer, MAIL_CHANNEL, &w, e);
}

void simulate_failed(struct comm *c)
{
	c->simulation->failed = true;
}

sbp_status simulate_check(struct comm *c, sbp_message *e)
{
	const struct actor *a = actor_of(c);

	return a->wrong ? message_set(e, SBP_FAILED, "%s", a->error.text)
			: SBP_OK;
}

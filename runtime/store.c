/*
 * store.c: where the ranks meet. Rank 0 listens at MASTER_ADDR:MASTER_PORT;
 * the store's keys are the ranks, its values what each tells the others. A
 * rank puts its record and gets them all once the last has come. Who does not
 * speak the protocol, or is of another job, is hung up on; a rank of this job
 * with another program is refused, and with it the job.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "runtime/private.h"

enum { VERSION = 1, MAX_GUESTS = 8192, GRACE = 5 };
static const char magic[8] = "SBPMEET";

struct hello {
	char magic[8];
	uint32_t version, size;
	uint64_t plan_hash;
	char job[128], token[128];
	int32_t world, rank;
	struct store_record record;
};

enum answer { WELCOME, TABLE, REFUSED };
struct reply {
	char magic[8];
	uint32_t answer, size;		/* bytes that follow */
};

static void nap_ms(double ms)
{
	struct timespec t = {(time_t)(ms / 1000),
			     (long)(ms * 1e6) % 1000000000};

	nanosleep(&t, NULL);
}

/* ---- rank 0: listening ---- */

/* What is local stays on the loopback interface. */
static void any_interface(struct address *a)
{
	struct sockaddr_in *v4 = (void *)&a->at;
	struct sockaddr_in6 *v6 = (void *)&a->at;

	if (address_is_local(a))
		return;
	if (a->at.ss_family == AF_INET)
		v4->sin_addr.s_addr = htonl(INADDR_ANY);
	else
		v6->sin6_addr = in6addr_any;
}

/* A launcher may hold the port, bound but not listening, so that nobody else
 * is given it: SO_REUSEADDR shares it. */
static sbp_status listen_at(const struct env *env, int *out, sbp_message *e)
{
	struct address a;
	int one = 1, fd;

	SBP_TRY(address_resolve(env, &a, e));
	any_interface(&a);
	fd = socket(a.at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a.at, a.size) != 0 ||
	    listen(fd, 1024) != 0) {
		message_set(e, SBP_USAGE, "rank 0 cannot listen at %s:%d "
			    "(MASTER_ADDR, MASTER_PORT): %s", env->address,
			    env->port, strerror(errno));
		if (fd >= 0)
			close(fd);
		return SBP_USAGE;
	}
	*out = fd;
	return SBP_OK;
}

/* ---- rank 0: guests ---- */

struct guest {
	int fd;
	size_t got;
	int rank;			/* -1: has not said hello yet */
	struct hello hello;
};

struct host {
	const struct env *env;
	uint64_t plan_hash;
	int fd;
	struct guest **guest;
	int n, room, joined;
	struct pollfd *polled;
	struct store_record *all;	/* by rank */
	bool *here;
	/* Why the job is over, for those who come late; how many know. */
	const sbp_message *over;
	int told;
};

static bool send_all(int fd, const void *from, size_t n)
{
	const char *at = from;

	while (n > 0) {
		ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		at += sent;
		n -= (size_t)sent;
	}
	return true;
}

static void send_reply(int fd, enum answer answer, const void *body, size_t n)
{
	struct reply r = {.answer = answer, .size = (uint32_t)n};

	memcpy(r.magic, magic, sizeof r.magic);
	if (send_all(fd, &r, sizeof r) && n)
		send_all(fd, body, n);
}

static void guest_leave(struct host *h, int i)
{
	close(h->guest[i]->fd);
	free(h->guest[i]);
	h->guest[i] = h->guest[--h->n];
}

static void refuse(struct host *h, int i)
{
	send_reply(h->guest[i]->fd, REFUSED, h->over->text,
		   strlen(h->over->text));
	h->told++;
	guest_leave(h, i);
}

static bool same_job(const struct host *h, const struct hello *o)
{
	return strncmp(o->job, h->env->job, sizeof o->job) == 0 &&
	       strncmp(o->token, h->env->token, sizeof o->token) == 0;
}

static bool is_hello(const struct hello *o)
{
	return memcmp(o->magic, magic, sizeof magic) == 0 &&
	       o->version == VERSION && o->size == sizeof *o;
}

static sbp_status check_hello(const struct host *h, const struct hello *o,
			      sbp_message *e)
{
	if (o->plan_hash != h->plan_hash)
		return message_set(e, SBP_USAGE,
				   "rank %d runs another build of the program: "
				   "its plan is %016llx, that of rank 0 "
				   "%016llx", o->rank,
				   (unsigned long long)o->plan_hash,
				   (unsigned long long)h->plan_hash);
	if (o->world != h->env->world)
		return message_set(e, SBP_USAGE,
				   "rank %d is one of %d ranks, rank 0 one of "
				   "%d", o->rank, o->world, h->env->world);
	if (o->rank < 1 || o->rank >= h->env->world || h->here[o->rank])
		return message_set(e, SBP_USAGE,
				   "two processes say that they are rank %d",
				   o->rank);
	return SBP_OK;
}

/* Guest I has said all of its hello. */
static sbp_status guest_join(struct host *h, int i, sbp_message *e)
{
	struct guest *g = h->guest[i];

	if (!is_hello(&g->hello) || !same_job(h, &g->hello)) {
		guest_leave(h, i);
		return SBP_OK;
	}
	if (h->over) {
		refuse(h, i);
		return SBP_OK;
	}
	g->rank = g->hello.rank;
	SBP_TRY(check_hello(h, &g->hello, e));
	h->all[g->rank] = g->hello.record;
	h->all[g->rank].rank = g->rank;
	h->here[g->rank] = true;
	h->joined++;
	send_reply(g->fd, WELCOME, NULL, 0);
	return SBP_OK;
}

static sbp_status guest_read(struct host *h, int i, sbp_message *e)
{
	struct guest *g = h->guest[i];
	size_t room = sizeof g->hello - g->got;
	char rest;
	ssize_t n = recv(g->fd, room ? (char *)&g->hello + g->got : &rest,
			 room ? room : 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return SBP_OK;
	if (g->rank >= 0)
		return message_set(e, SBP_FAILED,
				   "rank %d left before all had joined",
				   g->rank);
	if (n <= 0) {
		guest_leave(h, i);
		return SBP_OK;
	}
	g->got += (size_t)n;
	return g->got == sizeof g->hello ? guest_join(h, i, e) : SBP_OK;
}

static bool host_room(struct host *h)
{
	int room = h->room ? 2 * h->room : 64;
	void *guest, *polled;

	if (h->n < h->room)
		return true;
	guest = realloc(h->guest, (size_t)room * sizeof *h->guest);
	if (guest)
		h->guest = guest;
	polled = realloc(h->polled, (size_t)(room + 1) * sizeof *h->polled);
	if (polled)
		h->polled = polled;
	if (!guest || !polled)
		return false;
	h->room = room;
	return true;
}

static void host_accept(struct host *h)
{
	int one = 1, fd = accept4(h->fd, NULL, NULL, SOCK_CLOEXEC);
	struct timeval limit = {10, 0};
	struct guest *g;

	if (fd < 0)
		return;
	g = h->n < MAX_GUESTS && host_room(h) ? calloc(1, sizeof *g) : NULL;
	if (!g) {
		close(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	g->fd = fd;
	g->rank = -1;
	h->guest[h->n++] = g;
}

static sbp_status who_is_missing(const struct host *h, sbp_message *e)
{
	char list[256] = "";
	size_t n = 0;

	for (int r = 0; r < h->env->world && n + 16 < sizeof list; r++)
		if (!h->here[r])
			n += (size_t)snprintf(list + n, sizeof list - n,
					      "%s%d", n ? ", " : "", r);
	return message_set(e, SBP_FAILED,
			   "after %g s (SBP_TIMEOUT) these of %d ranks have "
			   "not come to %s:%d: %s", h->env->timeout,
			   h->env->world, h->env->address, h->env->port, list);
}

/* Waits for the next event and handles it. */
static sbp_status host_poll(struct host *h, double end, sbp_message *e)
{
	double left = (end - comm_seconds()) * 1000;
	int n = h->n;

	if (left <= 0)
		return who_is_missing(h, e);
	if (!host_room(h))
		return message_set(e, SBP_FAILED, "out of memory");
	for (int i = 0; i < n; i++)
		h->polled[i] = (struct pollfd){h->guest[i]->fd, POLLIN, 0};
	h->polled[n] = (struct pollfd){h->fd, POLLIN, 0};
	if (poll(h->polled, (nfds_t)n + 1, left < 1e6 ? (int)left + 1
						      : 1000000) <= 0)
		return SBP_OK;
	/* From the end: a guest that leaves is replaced by the last. */
	for (int i = n - 1; i >= 0; i--)
		if (h->polled[i].revents)
			SBP_TRY(guest_read(h, i, e));
	if (h->polled[n].revents)
		host_accept(h);
	return SBP_OK;
}

static void host_close(struct host *h)
{
	while (h->n > 0)
		guest_leave(h, h->n - 1);
	if (h->fd >= 0)
		close(h->fd);
	free(h->guest);
	free(h->polled);
	free(h->here);
}

/* The job is over: everybody hears why, also those who come within a second. */
static void host_refuse(struct host *h, const sbp_message *why, double end)
{
	double now = comm_seconds();
	sbp_message e;

	h->over = why;
	for (int i = h->n - 1; i >= 0; i--)
		if (h->guest[i]->rank >= 0)
			refuse(h, i);
	end = end < now + 1 ? end : now + 1;
	while (h->told < h->env->world - 1 &&
	       host_poll(h, end, &e) == SBP_OK)
		;
}

static sbp_status host_run(struct host *h, sbp_message *e)
{
	double end = comm_seconds() + h->env->timeout;
	sbp_status status = SBP_OK;

	while (status == SBP_OK && h->joined < h->env->world)
		status = host_poll(h, end, e);
	if (status != SBP_OK) {
		host_refuse(h, e, end);
		return status;
	}
	for (int i = 0; i < h->n; i++)
		if (h->guest[i]->rank >= 0)
			send_reply(h->guest[i]->fd, TABLE, h->all,
				   (size_t)h->env->world * sizeof *h->all);
	return SBP_OK;
}

static sbp_status meet_as_host(const struct env *env, uint64_t plan_hash,
			       const struct store_record *mine,
			       struct store_record *all, sbp_message *e)
{
	struct host h = {.env = env, .plan_hash = plan_hash, .fd = -1,
			 .joined = 1, .all = all};
	sbp_status status;

	h.here = calloc((size_t)env->world, sizeof *h.here);
	if (!h.here)
		return message_set(e, SBP_FAILED, "out of memory");
	h.here[0] = true;
	all[0] = *mine;
	status = listen_at(env, &h.fd, e);
	if (status == SBP_OK)
		status = host_run(&h, e);
	host_close(&h);
	return status;
}

/* ---- the other ranks ---- */

struct visit {
	const struct env *env;
	int fd;
	double end;
};

static void limit_recv(int fd, double seconds)
{
	struct timeval t = {(time_t)seconds, 0};

	t.tv_usec = (suseconds_t)((seconds - (double)t.tv_sec) * 1e6);
	if (t.tv_sec == 0 && t.tv_usec < 1000)
		t.tv_usec = 1000;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
}

static bool recv_all(int fd, void *to, size_t n)
{
	char *at = to;

	while (n > 0) {
		ssize_t got = recv(fd, at, n, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			if (got == 0)
				errno = ECONNRESET;
			return false;
		}
		at += got;
		n -= (size_t)got;
	}
	return true;
}

static sbp_status unreachable(const struct visit *v, int error,
			      sbp_message *e)
{
	return message_set(e, SBP_FAILED,
			   "rank 0 is not to be had at %s:%d (MASTER_ADDR, "
			   "MASTER_PORT) within %g s (SBP_TIMEOUT): %s",
			   v->env->address, v->env->port, v->env->timeout,
			   strerror(error));
}

/* Connects, trying again soon and then less often. */
static sbp_status visit_connect(struct visit *v, const struct address *a,
				sbp_message *e)
{
	double wait = 0.2;
	int one = 1, error;

	for (;;) {
		v->fd = socket(a->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (v->fd < 0)
			return message_set(e, SBP_FAILED, "socket: %s",
					   strerror(errno));
		if (connect(v->fd, (const struct sockaddr *)&a->at,
			    a->size) == 0)
			break;
		error = errno;
		close(v->fd);
		v->fd = -1;
		if (comm_seconds() > v->end)
			return unreachable(v, error, e);
		nap_ms(wait);
		wait = wait < 50 ? wait * 1.5 : 50;
	}
	setsockopt(v->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return SBP_OK;
}

static bool get_reply(struct visit *v, struct reply *r)
{
	double left = v->end + GRACE - comm_seconds();

	limit_recv(v->fd, left > 0 ? left : 0);
	return recv_all(v->fd, r, sizeof *r) &&
	       memcmp(r->magic, magic, sizeof magic) == 0;
}

static sbp_status refused(struct visit *v, size_t size, sbp_message *e)
{
	size_t n = size < sizeof e->text ? size : sizeof e->text - 1;

	memset(e, 0, sizeof *e);
	if (!recv_all(v->fd, e->text, n))
		strcpy(e->text, "rank 0 refused this rank");
	return SBP_USAGE;
}

/* Hello, welcome, table. *again: what answers is not our rank 0 (yet). */
static sbp_status visit_once(struct visit *v, const struct hello *hello,
			     struct store_record *all, bool *again,
			     sbp_message *e)
{
	size_t size = (size_t)v->env->world * sizeof *all;
	struct reply r;

	*again = true;
	if (!send_all(v->fd, hello, sizeof *hello) || !get_reply(v, &r))
		return unreachable(v, errno, e);
	*again = false;
	if (r.answer == WELCOME) {
		if (!get_reply(v, &r))
			return message_set(e, SBP_FAILED,
					   "rank 0 left before all had "
					   "joined");
	}
	if (r.answer == REFUSED)
		return refused(v, r.size, e);
	if (r.answer != TABLE || r.size != size ||
	    !recv_all(v->fd, all, size))
		return message_set(e, SBP_FAILED,
				   "rank 0 sent no table of the ranks");
	return SBP_OK;
}

static void make_hello(struct hello *o, const struct env *env,
		       uint64_t plan_hash, const struct store_record *mine)
{
	memset(o, 0, sizeof *o);
	memcpy(o->magic, magic, sizeof o->magic);
	o->version = VERSION;
	o->size = sizeof *o;
	o->plan_hash = plan_hash;
	strcpy(o->job, env->job);
	strcpy(o->token, env->token);
	o->world = env->world;
	o->rank = env->rank;
	o->record = *mine;
}

static sbp_status meet_as_guest(const struct env *env, uint64_t plan_hash,
				const struct store_record *mine,
				struct store_record *all, sbp_message *e)
{
	struct visit v = {env, -1, comm_seconds() + env->timeout};
	struct address a;
	struct hello hello;
	bool again = true;
	sbp_status status = SBP_OK;

	SBP_TRY(address_resolve(env, &a, e));
	make_hello(&hello, env, plan_hash, mine);
	while (again) {
		SBP_TRY(visit_connect(&v, &a, e));
		status = visit_once(&v, &hello, all, &again, e);
		close(v.fd);
		again = again && comm_seconds() < v.end;
		if (again)
			nap_ms(50);
	}
	return status;
}

sbp_status store_meet(const struct env *env, uint64_t plan_hash,
		      const struct store_record *mine,
		      struct store_record *all, sbp_message *e)
{
	return env->rank == 0 ? meet_as_host(env, plan_hash, mine, all, e)
			      : meet_as_guest(env, plan_hash, mine, all, e);
}

/*
 * address.c: MASTER_ADDR and MASTER_PORT as a socket address.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/private.h"

bool address_is_local(const struct address *a)
{
	const struct sockaddr_in *v4 = (const void *)&a->at;
	const struct sockaddr_in6 *v6 = (const void *)&a->at;

	if (a->at.ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

/* A name server may take long, and cannot be interrupted: it is asked by a
 * thread that is left behind when its second is over. */
struct question {
	pthread_mutex_t lock;
	pthread_cond_t answered;
	char name[256], port[8];
	bool done, left;
	int error;
	struct addrinfo *list;
};

static void question_free(struct question *q)
{
	if (q->list)
		freeaddrinfo(q->list);
	free(q);
}

static void *ask(void *context)
{
	struct question *q = context;
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *list = NULL;
	int error = getaddrinfo(q->name, q->port, &hints, &list);
	bool left;

	pthread_mutex_lock(&q->lock);
	q->error = error;
	q->list = list;
	q->done = true;
	left = q->left;
	pthread_cond_signal(&q->answered);
	pthread_mutex_unlock(&q->lock);
	if (left)
		question_free(q);
	return NULL;
}

/* Waits for the answer; false, and Q is the thread's to free, if it is late. */
static bool await_answer(struct question *q)
{
	struct timespec end;
	bool done;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_nsec += 800000000;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	pthread_mutex_lock(&q->lock);
	while (!q->done &&
	       pthread_cond_timedwait(&q->answered, &q->lock, &end) == 0)
		;
	done = q->done;
	q->left = !done;
	pthread_mutex_unlock(&q->lock);
	return done;
}

static sbp_status lookup(const struct env *env, struct address *a,
			 sbp_message *e)
{
	struct question *q = calloc(1, sizeof *q);
	const char *why = "no answer within a second";
	pthread_attr_t detached;
	pthread_t thread;
	bool found = false;

	if (!q)
		return message_set(e, SBP_FAILED, "out of memory");
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->answered, NULL);
	strcpy(q->name, env->address);
	snprintf(q->port, sizeof q->port, "%d", env->port);
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &detached, ask, q) != 0) {
		question_free(q);
		return message_set(e, SBP_FAILED, "cannot start a thread");
	}
	if (await_answer(q)) {
		found = q->error == 0 && q->list;
		if (found) {
			memcpy(&a->at, q->list->ai_addr, q->list->ai_addrlen);
			a->size = q->list->ai_addrlen;
		}
		why = gai_strerror(q->error);
		question_free(q);
	}
	if (found)
		return SBP_OK;
	return message_set(e, SBP_USAGE,
			   "MASTER_ADDR '%s' does not resolve: %s",
			   env->address, why);
}

/* Numbers and localhost need no name server. */
sbp_status address_resolve(const struct env *env, struct address *a,
			   sbp_message *e)
{
	struct sockaddr_in *v4 = (void *)&a->at;
	struct sockaddr_in6 *v6 = (void *)&a->at;
	const char *name = env->address;

	memset(a, 0, sizeof *a);
	if (strcmp(name, "localhost") == 0)
		name = "127.0.0.1";
	if (inet_pton(AF_INET, name, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)env->port);
		a->size = sizeof *v4;
		return SBP_OK;
	}
	if (inet_pton(AF_INET6, name, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)env->port);
		a->size = sizeof *v6;
		return SBP_OK;
	}
	return lookup(env, a, e);
}

/*
 * predict.c: the seconds of a move. Each rank receives what it lacks along
 * the links of the mesh; the slowest rank counts. Bytes of a device that
 * differs on several axes pass the slowest of their links.
 */
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"

/* Ranks of one host: what a move costs to start, and bytes a second. */
static const struct mesh_link host = {1e-6, 10e9};
static const struct mesh_link memory = {0.3e-6, 20e9};

static const struct topology *topology;

void predict_along(const struct topology *t)
{
	topology = t;
}

bool predict_has_topology(void)
{
	return topology != NULL;
}

/* All receipts pass one kind of link. */
static double seconds_by(struct mesh_link l, const int64_t *recv,
			 const int64_t *local, int n)
{
	int64_t most = greatest(recv, n);

	return (most ? l.latency : memory.latency) + (double)most / l.rate +
	       (double)greatest(local, n) / memory.rate;
}

/* The mesh axes of ON, the slowest link first. */
static void order_axes(const struct placement *on, struct mesh_link *l,
		       int *axis)
{
	for (int k = 0; k < on->naxes; k++) {
		int i = k;

		l[k] = topology_link(topology, on, k);
		for (; i > 0 && l[axis[i - 1]].rate > l[k].rate; i--)
			axis[i] = axis[i - 1];
		axis[i] = k;
	}
}

/* What N sites wait for: sums over links, and the longest start. */
struct wait {
	double start, bytes;
};

static double slowest(const struct wait *w, const int64_t *own, int n,
		      double rate)
{
	double most = 0;

	for (int i = 0; i < n; i++) {
		double start = w[i].bytes > 0 ? w[i].start : memory.latency;
		double all = start + w[i].bytes + (double)own[i] / rate;

		if (all > most)
			most = all;
	}
	return most;
}

/* Adds what comes from FAR devices that are no NEAR ones, by link L. */
static void add_waits(struct wait *w, struct mesh_link l, const int64_t *far,
		      const int64_t *near, int n)
{
	for (int i = 0; i < n; i++) {
		if (far[i] > near[i] && l.latency > w[i].start)
			w[i].start = l.latency;
		w[i].bytes += (double)(far[i] - near[i]) / l.rate;
	}
}

/* What is on nearer devices does not pass the links of slower axes. A device's
 * own bytes are copied no slower than any come from others. */
static double seconds_along(Type t, Dist from, Dist to, const struct sites *s,
			    const int64_t *recv, const int64_t *local)
{
	struct wait *w = calloc((size_t)s->n + 1, sizeof *w);
	int64_t *far = calloc(2 * (size_t)s->n + 1, sizeof *far);
	int64_t *near = far + s->n;
	struct mesh_link l[MAX_MESH];
	int axis[MAX_MESH], last = from.on->naxes - 1;
	unsigned mask = 0;
	double seconds;

	if (!w || !far)
		bug("out of memory");
	order_axes(from.on, l, axis);
	for (int i = 0; i < s->n; i++)
		far[i] = recv[i] + local[i];
	for (int j = 0; j < last; j++) {
		mask |= 1u << axis[j];
		move_bytes_near(t, from, to, s, mask, near);
		add_waits(w, l[axis[j]], far, near, s->n);
		memcpy(far, near, sizeof *far * (size_t)s->n);
	}
	add_waits(w, l[axis[last]], far, local, s->n);
	seconds = slowest(w, local, s->n,
			  l[axis[last]].rate > memory.rate ? l[axis[last]].rate
							   : memory.rate);
	free(w);
	free(far);
	return seconds;
}

double move_seconds_of(Type t, Dist from, Dist to, const struct sites *s,
		       const int64_t *recv, const int64_t *local)
{
	if (topology && dist_same_place(from, to))
		return seconds_along(t, from, to, s, recv, local);
	return seconds_by(topology ? topology_between(topology) : host, recv,
			  local, s->n);
}

double move_seconds(Type t, Dist from, Dist to, const struct sites *s)
{
	int64_t *recv = calloc(2 * (size_t)s->n + 1, sizeof *recv);
	int64_t *local = recv + s->n;
	double seconds;

	if (!recv)
		bug("out of memory");
	move_bytes(t, from, to, s, recv, local);
	seconds = move_seconds_of(t, from, to, s, recv, local);
	free(recv);
	return seconds;
}

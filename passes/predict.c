/*
 * predict.c: the seconds of a move. Each rank receives what it lacks along
 * the links of the mesh; the slowest rank counts. Bytes of a device that
 * differs on several axes pass the slowest of their links.
 */
#include <stdlib.h>

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

static int64_t greatest(const int64_t *v, int n)
{
	int64_t most = 0;

	for (int i = 0; i < n; i++)
		if (v[i] > most)
			most = v[i];
	return most;
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

/* What is on nearer devices does not pass the links of slower axes. A device's
 * own bytes are copied no slower than any come from others. */
static double seconds_along(Type t, Dist from, Dist to, const struct sites *s,
			    int64_t *far, int64_t *near)
{
	struct wait *w = calloc((size_t)s->n + 1, sizeof *w);
	struct mesh_link l[MAX_MESH];
	int axis[MAX_MESH];
	unsigned mask = 0;
	double seconds, copy;

	if (!w)
		bug("out of memory");
	order_axes(from.on, l, axis);
	move_bytes_near(t, from, to, s, 0, far);
	for (int j = 0; j < from.on->naxes; j++) {
		struct mesh_link by = l[axis[j]];

		mask |= 1u << axis[j];
		move_bytes_near(t, from, to, s, mask, near);
		for (int i = 0; i < s->n; i++) {
			if (far[i] > near[i] && by.latency > w[i].start)
				w[i].start = by.latency;
			w[i].bytes += (double)(far[i] - near[i]) / by.rate;
			far[i] = near[i];
		}
	}
	copy = l[axis[from.on->naxes - 1]].rate;
	seconds = slowest(w, near, s->n,
			  copy > memory.rate ? copy : memory.rate);
	free(w);
	return seconds;
}

double move_seconds(Type t, Dist from, Dist to, const struct sites *s)
{
	int64_t *v = calloc(2 * (size_t)s->n + 2, sizeof *v);
	int64_t *w = v + s->n + 1;
	double seconds;

	if (!v)
		bug("out of memory");
	if (topology && dist_same_place(from, to)) {
		seconds = seconds_along(t, from, to, s, v, w);
	} else {
		move_bytes(t, from, to, s, v, w);
		seconds =
			seconds_by(topology ? topology_between(topology) : host,
				   v, w, s->n);
	}
	free(v);
	return seconds;
}

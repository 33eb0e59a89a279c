/*
 * file.c: reading parts of regular files, and files that replace another only
 * when they are complete.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/private.h"

static sbp_status system_failure(const char *path, const char *what,
				 sbp_message *e)
{
	return message_set(e, SBP_USAGE, "%s: %s: %s", path, what,
			   strerror(errno));
}

sbp_status file_open(sbp_file *f, const char *path, sbp_message *e)
{
	struct stat s;

	*f = (sbp_file){.fd = -1};
	/* O_NONBLOCK: a FIFO must not wait for a writer. */
	f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (f->fd < 0 || fstat(f->fd, &s)) {
		system_failure(path, "cannot open", e);
		file_close(f);
		return SBP_USAGE;
	}
	if (!S_ISREG(s.st_mode)) {
		file_close(f);
		return message_set(e, SBP_USAGE, "%s: not a regular file",
				   path);
	}
	f->size = (uint64_t)s.st_size;
	f->path = strdup(path);
	if (f->path)
		return SBP_OK;
	file_close(f);
	return message_set(e, SBP_FAILED, "%s: out of memory", path);
}

void file_close(sbp_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	*f = (sbp_file){.fd = -1};
}

sbp_status file_read(const sbp_file *f, uint64_t offset, void *to, size_t n,
		     sbp_message *e)
{
	while (n > 0) {
		ssize_t got = pread(f->fd, to, n, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return system_failure(f->path, "cannot read", e);
		if (got == 0)
			return message_set(e, SBP_USAGE,
					   "%s: byte %llu: the file ends here, "
					   "%zu bytes early",
					   f->path, (unsigned long long)offset,
					   n);
		to = (char *)to + got;
		offset += (uint64_t)got;
		n -= (size_t)got;
	}
	return SBP_OK;
}

/* ---- boxes: runs of bytes that are contiguous in the file ---- */

struct runs {
	int outer;		/* axes that are walked one index at a time */
	int64_t index[SBP_MAX_RANK];
	size_t bytes;		/* of a run */
	bool none;
};

static struct runs runs_of(const int64_t *shape, const sbp_box *box, int width)
{
	struct runs r = {.outer = box->rank, .bytes = (size_t)width};
	bool whole = true;

	r.none = !box_count(box);
	/* The run takes in an axis if all axes after it are whole. */
	for (int i = box->rank - 1; i >= 0 && whole; i--) {
		r.bytes *= (size_t)box->n[i];
		r.outer = i;
		whole = box->n[i] == shape[i];
	}
	return r;
}

static uint64_t run_offset(const struct runs *r, const int64_t *shape,
			   const sbp_box *box, int width)
{
	uint64_t at = 0;

	for (int i = 0; i < box->rank; i++) {
		uint64_t index = (uint64_t)box->lo[i];

		if (i < r->outer)
			index += (uint64_t)r->index[i];
		at = at * (uint64_t)shape[i] + index;
	}
	return at * (uint64_t)width;
}

static bool run_next(struct runs *r, const sbp_box *box)
{
	for (int i = r->outer - 1; i >= 0; i--) {
		if (++r->index[i] < box->n[i])
			return true;
		r->index[i] = 0;
	}
	return false;
}

sbp_status file_read_box(const sbp_file *f, uint64_t offset, int width,
			 const int64_t *shape, const sbp_box *box, void *to,
			 sbp_message *e)
{
	struct runs r = runs_of(shape, box, width);

	if (r.none)
		return SBP_OK;
	do {
		uint64_t at = offset + run_offset(&r, shape, box, width);

		SBP_TRY(file_read(f, at, to, r.bytes, e));
		to = (char *)to + r.bytes;
	} while (run_next(&r, box));
	return SBP_OK;
}

/* ---- writing ---- */

/* Renaming over a device would replace it. */
static bool may_replace(const char *path)
{
	struct stat s;

	return stat(path, &s) || S_ISREG(s.st_mode);
}

/* The names only; a file is opened by the caller. */
static sbp_status writer_name(sbp_writer *w, const char *path, sbp_message *e)
{
	*w = (sbp_writer){.fd = -1};
	if (!may_replace(path))
		return message_set(e, SBP_USAGE, "%s: not a regular file",
				   path);
	w->path = strdup(path);
	if (w->path &&
	    asprintf(&w->temporary, "%s.%d.tmp", path, (int)getpid()) >= 0)
		return SBP_OK;
	w->temporary = NULL;
	writer_abort(w);
	return message_set(e, SBP_FAILED, "%s: out of memory", path);
}

/* The folder that PATH is in; the caller frees it. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
}

/* Looked up like the temporary file itself, so a name that is too long is
 * found too. */
static bool may_create(const char *path, const char *temporary)
{
	struct stat s;
	char *folder;
	bool may;

	if (lstat(temporary, &s) && errno != ENOENT)
		return false;
	folder = folder_of(path);
	may = folder && !access(folder, W_OK | X_OK);
	free(folder);
	return may;
}

static const char *name_in_folder(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool file_same(const char *a, const char *b)
{
	struct stat s, t;
	char *x, *y;
	bool same;

	if (!strcmp(a, b))
		return true;
	if (strcmp(name_in_folder(a), name_in_folder(b)))
		return false;
	x = folder_of(a);
	y = folder_of(b);
	same = x && y && !stat(x, &s) && !stat(y, &t) && s.st_dev == t.st_dev &&
	       s.st_ino == t.st_ino;
	free(x);
	free(y);
	return same;
}

sbp_status writer_check(const char *path, sbp_message *e)
{
	sbp_writer w;
	sbp_status status = writer_name(&w, path, e);

	if (status != SBP_OK)
		return status;
	if (!may_create(path, w.temporary))
		status = system_failure(path, "cannot write", e);
	free(w.temporary);
	w.temporary = NULL; /* there is none to remove */
	writer_abort(&w);
	return status;
}

sbp_status writer_open(sbp_writer *w, const char *path, sbp_message *e)
{
	SBP_TRY(writer_name(w, path, e));
	w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
		     0666);
	if (w->fd >= 0)
		return SBP_OK;
	system_failure(path, "cannot write", e);
	writer_abort(w);
	return SBP_USAGE;
}

sbp_status writer_put(sbp_writer *w, uint64_t offset, const void *from,
		      size_t n, sbp_message *e)
{
	while (n > 0) {
		ssize_t put = pwrite(w->fd, from, n, (off_t)offset);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return system_failure(w->path, "cannot write", e);
		from = (const char *)from + put;
		offset += (uint64_t)put;
		n -= (size_t)put;
	}
	return SBP_OK;
}

sbp_status writer_put_box(sbp_writer *w, uint64_t offset, int width,
			  const int64_t *shape, const sbp_box *box,
			  const void *from, sbp_message *e)
{
	struct runs r = runs_of(shape, box, width);

	if (r.none)
		return SBP_OK;
	do {
		uint64_t at = offset + run_offset(&r, shape, box, width);

		SBP_TRY(writer_put(w, at, from, r.bytes, e));
		from = (const char *)from + r.bytes;
	} while (run_next(&r, box));
	return SBP_OK;
}

sbp_status writer_commit(sbp_writer *w, sbp_message *e)
{
	bool good = !fsync(w->fd);

	good = !close(w->fd) && good;
	w->fd = -1;
	if (good && !rename(w->temporary, w->path)) {
		free(w->temporary);
		w->temporary = NULL;
		writer_abort(w);
		return SBP_OK;
	}
	system_failure(w->path, "cannot write", e);
	writer_abort(w);
	return SBP_USAGE;
}

void writer_abort(sbp_writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	if (w->temporary)
		unlink(w->temporary);
	free(w->temporary);
	free(w->path);
	*w = (sbp_writer){.fd = -1};
}

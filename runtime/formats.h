/*
 * formats.h: files that a program reads and writes, and initial values.
 * Private to the runtime. Every function that can fail returns a status and
 * says why in *e, naming file, byte offset and field.
 */
#ifndef SBP_FORMATS_H
#define SBP_FORMATS_H

#include <stdbool.h>

#include "runtime/sbp.h"

/* What went wrong, for the user: "x.npy: byte 8: header_len: ..." */
typedef struct sbp_message {
	char text[640];
} sbp_message;

/* A rectangular part of a tensor. */
typedef struct sbp_box {
	int rank;
	int64_t lo[SBP_MAX_RANK], n[SBP_MAX_RANK];
} sbp_box;

/* ---- convert.c: element types ---- */

int dtype_bytes(sbp_dtype t);
const char *dtype_text(sbp_dtype t);		/* "f32" */
bool dtype_floats(sbp_dtype t);
/* N elements; float to float rounds to nearest even, integers wrap, float to
 * integer truncates and saturates (nan gives 0), u8 as a float is the plain
 * number. TO and FROM may be equal only for equal types. */
void convert(void *to, sbp_dtype to_type, const void *from,
	     sbp_dtype from_type, int64_t n);
/* N elements of WIDTH bytes to the other byte order. */
void swap_bytes(void *to, int width, int64_t n);
float f16_to_f32(uint16_t h);
uint16_t f32_to_f16(float f);
float bf16_to_f32(uint16_t h);
uint16_t f32_to_bf16(float f);
int64_t box_count(const sbp_box *box);
/* "f32[2, 3]" */
void type_describe(char *to, size_t size, sbp_dtype t, int rank,
		   const int64_t *shape);

/* ---- file.c: whole files, in parts, and replaced at once ---- */

typedef struct sbp_file {
	int fd;				/* -1: closed */
	char *path;
	uint64_t size;
} sbp_file;
/* Regular files only. */
sbp_status file_open(sbp_file *f, const char *path, sbp_message *e);
sbp_status file_read(const sbp_file *f, uint64_t offset, void *to, size_t n,
		     sbp_message *e);
/* The elements of BOX, in C order, of an array of SHAPE that starts at
 * OFFSET. */
sbp_status file_read_box(const sbp_file *f, uint64_t offset, int width,
			 const int64_t *shape, const sbp_box *box, void *to,
			 sbp_message *e);
void file_close(sbp_file *f);
/* Whether two paths are one name in one folder. */
bool file_same(const char *a, const char *b);

/* A file that appears under PATH only when it is complete. */
typedef struct sbp_writer {
	int fd;
	char *path, *temporary;
} sbp_writer;
sbp_status writer_open(sbp_writer *w, const char *path, sbp_message *e);
/* Whether it would open; creates and changes nothing. */
sbp_status writer_check(const char *path, sbp_message *e);
sbp_status writer_put(sbp_writer *w, uint64_t offset, const void *from,
		      size_t n, sbp_message *e);
/* A box, contiguous in FROM, of an array that starts at OFFSET. */
sbp_status writer_put_box(sbp_writer *w, uint64_t offset, int width,
			  const int64_t *shape, const sbp_box *box,
			  const void *from, sbp_message *e);
sbp_status writer_commit(sbp_writer *w, sbp_message *e);
void writer_abort(sbp_writer *w);	/* nothing is left */

/* ---- npy.c ---- */

typedef struct sbp_npy {
	sbp_file file;
	sbp_dtype dtype;		/* bf16 is |V2 or <V2 */
	int rank;
	int64_t shape[SBP_MAX_RANK];
	bool fortran, swap;		/* column-major; other byte order */
	uint64_t data;			/* offset of the first element */
} sbp_npy;
sbp_status npy_open(sbp_npy *f, const char *path, sbp_message *e);
/* The elements of BOX in the file's dtype, C order, contiguous. */
sbp_status npy_read(const sbp_npy *f, const sbp_box *box, void *to,
		    sbp_message *e);
void npy_close(sbp_npy *f);
/* Writes a file for writer_put_box: the header; *data is where the elements
 * start. */
sbp_status npy_create(sbp_writer *w, const char *path, sbp_dtype t, int rank,
		      const int64_t *shape, uint64_t *data, sbp_message *e);
/* All at once. */
sbp_status npy_write(const char *path, sbp_dtype t, int rank,
		     const int64_t *shape, const void *from, sbp_message *e);

/* ---- idx.c: MNIST's files, plain or gzipped ---- */

typedef struct sbp_idx {
	sbp_file file;
	sbp_dtype dtype;		/* u8 i8 i32 f32 f64 */
	int rank;
	int64_t shape[SBP_MAX_RANK];
	uint64_t data;
	unsigned char *unpacked;	/* elements of a .gz; else NULL */
} sbp_idx;
sbp_status idx_open(sbp_idx *f, const char *path, sbp_message *e);
sbp_status idx_read(const sbp_idx *f, const sbp_box *box, void *to,
		    sbp_message *e);
void idx_close(sbp_idx *f);

/* ---- safetensors.c ---- */

typedef struct sbp_entry {
	char *name;
	bool known;		/* dtype is one of ours */
	sbp_dtype dtype;
	char dtype_name[16];	/* as in the file: "F8_E4M3" */
	int rank;
	int64_t shape[SBP_MAX_RANK];
	uint64_t at, bytes;	/* offset in the file */
} sbp_entry;
typedef struct sbp_tensors {
	sbp_file file;
	int n;
	sbp_entry *entry;	/* in the order of their offsets */
} sbp_tensors;
sbp_status tensors_open(sbp_tensors *f, const char *path, sbp_message *e);
const sbp_entry *tensors_find(const sbp_tensors *f, const char *name);
/* The elements of BOX as AS: a float type may become another. */
sbp_status tensors_read(const sbp_tensors *f, const sbp_entry *t,
			const sbp_box *box, sbp_dtype as, void *to,
			sbp_message *e);
void tensors_close(sbp_tensors *f);
/* Begins a file of N tensors (name, dtype, rank and shape are read); fills
 * their `at` and `bytes` for writer_put_box. */
sbp_status tensors_create(sbp_writer *w, const char *path, int n,
			  sbp_entry *entry, sbp_message *e);

/* ---- data.c: the sources of `data` declarations ---- */

struct data_set;
sbp_status data_open(struct data_set **out, const sbp_source *source,
		     sbp_message *e);
void data_close(struct data_set *d);
int64_t data_samples(const struct data_set *d);
/* Whether FIELD can feed an input of this type, whose axis 0 is the batch. */
sbp_status data_check(const struct data_set *d, const char *field,
		      sbp_dtype t, int rank, const int64_t *shape,
		      sbp_message *e);
/* The elements of BOX of the batch that begins with sample FIRST. u8 read as
 * a float is divided by 255. Samples go round: the one after the last is the
 * first. */
sbp_status data_read(const struct data_set *d, const char *field,
		     int64_t first, const sbp_box *box, sbp_dtype as,
		     void *to, sbp_message *e);

/* ---- random.c: initial values; sbp_random.h has the generator ---- */

/* The elements of BOX of a param, state or const named NAME; not for
 * SBP_INIT_NONE nor local data. */
void init_fill(const sbp_init *init, const char *name, uint64_t seed,
	       sbp_dtype t, const int64_t *shape, const sbp_box *box,
	       void *to);

#endif

/*
 * archive.c: a static library of a model: its object and the runtime's, with
 * the index of symbols that linkers want. The format is System V's (ar(5)).
 */
#include <ar.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/build.h"

struct member {
	const char *name;	/* "model.o/" */
	struct text bytes;
};

static bool failed(char **error, const char *path, const char *why)
{
	if (asprintf(error, "'%s': %s", path, why) < 0)
		bug("out of memory");
	return false;
}

static bool read_file(const char *path, struct text *t, char **error)
{
	FILE *f = fopen(path, "rb");
	char part[65536];
	size_t n;

	if (!f)
		return failed(error, path, strerror(errno));
	while ((n = fread(part, 1, sizeof part, f)) > 0)
		text_add_n(t, part, n);
	fclose(f);
	return true;
}

/* The last member of the library ARCHIVE, which is the only one beside the
 * index. */
static bool last_member(const struct text *archive, struct text *out)
{
	size_t at = SARMAG, size = 0, from = 0;

	if (archive->n < SARMAG || memcmp(archive->at, ARMAG, SARMAG))
		return false;
	while (at + sizeof(struct ar_hdr) <= archive->n) {
		const struct ar_hdr *h = (const void *)(archive->at + at);

		size = strtoul(h->ar_size, NULL, 10);
		from = at + sizeof *h;
		if (size > archive->n - from)
			return false;
		at = from + size + size % 2;
	}
	text_add_n(out, archive->at + from, size);
	return from > 0;
}

/* ---- symbols ---- */

static const Elf64_Shdr *symbol_table(const struct text *o)
{
	const Elf64_Ehdr *e = (const void *)o->at;
	const Elf64_Shdr *s;

	if (o->n < sizeof *e || memcmp(e->e_ident, ELFMAG, SELFMAG) ||
	    e->e_shoff + e->e_shnum * sizeof *s > o->n)
		return NULL;
	s = (const void *)(o->at + e->e_shoff);
	for (int i = 0; i < e->e_shnum; i++)
		if (s[i].sh_type == SHT_SYMTAB)
			return &s[i];
	return NULL;
}

/* Adds the names of global definitions, each ended by 0; returns how many. */
static int add_symbols(const struct text *o, struct text *names)
{
	const Elf64_Shdr *table = symbol_table(o);
	const Elf64_Ehdr *e = (const void *)o->at;
	const Elf64_Shdr *sections;
	const Elf64_Sym *s;
	const char *strings;
	int n = 0;

	if (!table)
		return 0;
	sections = (const void *)(o->at + e->e_shoff);
	strings = o->at + sections[table->sh_link].sh_offset;
	s = (const void *)(o->at + table->sh_offset);
	for (size_t i = 0; i < table->sh_size / sizeof *s; i++) {
		const char *name = strings + s[i].st_name;

		if (ELF64_ST_BIND(s[i].st_info) == STB_LOCAL ||
		    s[i].st_shndx == SHN_UNDEF)
			continue;
		text_add_n(names, name, strlen(name) + 1);
		n++;
	}
	return n;
}

/* ---- writing ---- */

static void add_header(struct text *t, const char *name, size_t size)
{
	text_add(t, "%-16s%-12d%-6d%-6d%-8s%-10zu`\n", name, 0, 0, 0, "644",
		 size);
}

static void add_be32(struct text *t, size_t n)
{
	char bytes[4] = {(char)(n >> 24), (char)(n >> 16), (char)(n >> 8),
			 (char)n};

	text_add_n(t, bytes, 4);
}

static void pad(struct text *t)
{
	if (t->n % 2)
		text_add_n(t, "\n", 1);
}

static void build(struct member *m, int n, struct text *t)
{
	struct text names = {0};
	int count[2] = {0}, all = 0;
	size_t at, size;

	for (int i = 0; i < n; i++)
		all += count[i] = add_symbols(&m[i].bytes, &names);
	size = 4 + 4 * (size_t)all + names.n;
	at = SARMAG + sizeof(struct ar_hdr) + size + size % 2;
	text_add_n(t, ARMAG, SARMAG);
	add_header(t, "/", size);
	add_be32(t, (size_t)all);
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < count[i]; k++)
			add_be32(t, at);
		at += sizeof(struct ar_hdr) + m[i].bytes.n + m[i].bytes.n % 2;
	}
	text_add_n(t, names.at, names.n);
	pad(t);
	for (int i = 0; i < n; i++) {
		add_header(t, m[i].name, m[i].bytes.n);
		text_add_n(t, m[i].bytes.at, m[i].bytes.n);
		pad(t);
	}
	text_free(&names);
}

bool archive_write(const char *path, const char *object, const char *runtime,
		   char **error)
{
	struct member m[2] = {{.name = "model.o/"}, {.name = "sbp.o/"}};
	struct text library = {0}, t = {0};
	FILE *f;
	bool good;

	if (!read_file(object, &m[0].bytes, error) ||
	    !read_file(runtime, &library, error))
		return false;
	if (!last_member(&library, &m[1].bytes))
		return failed(error, runtime, "not the runtime's library");
	build(m, 2, &t);
	f = fopen(path, "wb");
	good = f && fwrite(t.at, 1, t.n, f) == t.n;
	if (f && fclose(f))
		good = false;
	for (int i = 0; i < 2; i++)
		text_free(&m[i].bytes);
	text_free(&library);
	text_free(&t);
	return good || failed(error, path, strerror(errno));
}

/* SPDX-License-Identifier: MIT */
/*
 * elf: modules that are mapped into this process, and their symbols.
 *
 * Reads mapped images and the loader's own list of them: no loader lock, no
 * file, no allocation.  The list may only be walked while the process has one
 * thread.
 */
#ifndef MMGATE_ELF_H
#define MMGATE_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_image {
	uintptr_t bias;
	uintptr_t text, text_end; /* its executable segment; 0: none */
	const char *soname;       /* NULL: it has none */
	const char *path;         /* as the loader found it; NULL: not known */
	/* For elf_symbol(). */
	const Elf64_Sym *symbols;
	const char *names;
	const uint32_t *gnu_hash;
	const uint32_t *hash;
};

/* Reads the image whose ELF header lies at `header`.  False: it is none, or
 * has no dynamic section. */
bool elf_read(const void *header, struct elf_image *image);

/* Address of a defined symbol, and its size unless `size` is NULL; NULL when
 * the image has none of that name. */
void *elf_symbol(const struct elf_image *image, const char *name, size_t *size);

/* The loaded module with this soname, by the list that the loader keeps for
 * debuggers; `headers` are the program's own (AT_PHDR, AT_PHNUM). */
bool elf_find(const Elf64_Phdr *headers, unsigned long count,
	      const char *soname, struct elf_image *image);

/* Code that is mapped from a file. */
struct elf_code {
	uintptr_t start;
	uint64_t length;
	uint64_t offset;         /* of `start` in the file */
	const char *path;        /* as the loader found it; NULL: the program */
	const uint8_t *build_id; /* NULL: it has none */
	uint32_t build_id_bytes;
};

/* Calls `each` for all code that the loader has mapped.  `headers` as above. */
void elf_each_code(const Elf64_Phdr *headers, unsigned long count,
		   void (*each)(const struct elf_code *code));

/* Does the program itself need any library? */
bool elf_program_needs(const Elf64_Phdr *headers, unsigned long count);

/* The executable segment of the program itself; false: none is known. */
bool elf_program_text(const Elf64_Phdr *headers, unsigned long count,
		      uintptr_t *from, uintptr_t *to);

#endif

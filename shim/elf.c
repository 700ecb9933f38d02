/* SPDX-License-Identifier: MIT */
#include "elf.h"

#include <link.h>

#include "text.h"

#include "poison.h"

/* ld.so relocates d_ptr of what it loads; the vDSO's is left as linked. */
static const void *pointer(uintptr_t bias, Elf64_Addr value)
{
	return (const void *)(value < bias ? bias + value : value);
}

static void read_dynamic(struct elf_image *image, const Elf64_Dyn *dyn)
{
	Elf64_Xword soname = 0;

	for (; dyn->d_tag != DT_NULL; dyn++) {
		const void *value = pointer(image->bias, dyn->d_un.d_ptr);

		if (dyn->d_tag == DT_SYMTAB)
			image->symbols = value;
		else if (dyn->d_tag == DT_STRTAB)
			image->names = value;
		else if (dyn->d_tag == DT_GNU_HASH)
			image->gnu_hash = value;
		else if (dyn->d_tag == DT_HASH)
			image->hash = value;
		else if (dyn->d_tag == DT_SONAME)
			soname = dyn->d_un.d_val;
	}
	if (soname != 0 && image->names != NULL)
		image->soname = image->names + soname;
}

bool elf_read(const void *header, struct elf_image *image)
{
	const Elf64_Ehdr *elf = header;
	const Elf64_Phdr *segment =
		(const void *)((const char *)header + elf->e_phoff);
	const Elf64_Dyn *dynamic = NULL;
	bool loaded = false;

	*image = (struct elf_image){0};
	if (!text_is((const char *)elf->e_ident, SELFMAG, ELFMAG))
		return false;
	for (int i = 0; i < elf->e_phnum; i++, segment++) {
		if (segment->p_type == PT_LOAD && !loaded) {
			image->bias = (uintptr_t)header + segment->p_offset -
				      segment->p_vaddr;
			loaded = true;
		}
		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X) {
			image->text = image->bias + segment->p_vaddr;
			image->text_end = image->text + segment->p_memsz;
		}
		if (segment->p_type == PT_DYNAMIC)
			dynamic =
				(const void *)(image->bias + segment->p_vaddr);
	}
	if (!loaded || dynamic == NULL)
		return false;
	read_dynamic(image, dynamic);
	return image->symbols != NULL && image->names != NULL;
}

static const Elf64_Sym *match(const struct elf_image *image, uint32_t i,
			      const char *name)
{
	const Elf64_Sym *symbol = &image->symbols[i];

	if (symbol->st_shndx == SHN_UNDEF ||
	    !text_equal(image->names + symbol->st_name, name))
		return NULL;
	return symbol;
}

static const Elf64_Sym *find_gnu(const struct elf_image *image,
				 const char *name)
{
	const uint32_t *table = image->gnu_hash;
	uint32_t buckets = table[0], first = table[1], words = table[2];
	const uint32_t *bucket = table + 4 + 2 * (size_t)words;
	const uint32_t *chain = bucket + buckets;
	const Elf64_Sym *found = NULL;
	uint32_t hash = 5381;

	for (const char *s = name; *s != '\0'; s++)
		hash = hash * 33 + (unsigned char)*s;
	for (uint32_t i = bucket[hash % buckets]; i >= first; i++) {
		if ((chain[i - first] | 1) == (hash | 1))
			found = match(image, i, name);
		if (found != NULL || chain[i - first] & 1)
			break;
	}
	return found;
}

static const Elf64_Sym *find_sysv(const struct elf_image *image,
				  const char *name)
{
	uint32_t buckets = image->hash[0], hash = 0;
	const uint32_t *bucket = image->hash + 2, *chain = bucket + buckets;
	const Elf64_Sym *found = NULL;

	for (const char *s = name; *s != '\0'; s++) {
		hash = (hash << 4) + (unsigned char)*s;
		hash ^= hash >> 24 & 0xf0;
		hash &= 0x0fffffff;
	}
	for (uint32_t i = bucket[hash % buckets]; i != 0 && found == NULL;
	     i = chain[i])
		found = match(image, i, name);
	return found;
}

void *elf_symbol(const struct elf_image *image, const char *name, size_t *size)
{
	const Elf64_Sym *symbol = NULL;

	if (image->gnu_hash != NULL)
		symbol = find_gnu(image, name);
	else if (image->hash != NULL)
		symbol = find_sysv(image, name);
	if (symbol == NULL)
		return NULL;
	if (size != NULL)
		*size = symbol->st_size;
	return (void *)(image->bias + symbol->st_value);
}

/* Bias of the program, by where its headers are and say they are. */
static bool program_bias(const Elf64_Phdr *headers, unsigned long count,
			 uintptr_t *bias)
{
	for (unsigned long i = 0; i < count; i++)
		if (headers[i].p_type == PT_PHDR) {
			*bias = (uintptr_t)headers - headers[i].p_vaddr;
			return true;
		}
	return false;
}

static const Elf64_Dyn *program_dynamic(const Elf64_Phdr *headers,
					unsigned long count)
{
	uintptr_t bias;

	if (headers == NULL || !program_bias(headers, count, &bias))
		return NULL;
	for (unsigned long i = 0; i < count; i++)
		if (headers[i].p_type == PT_DYNAMIC)
			return (const void *)(bias + headers[i].p_vaddr);
	return NULL;
}

static const struct link_map *first_module(const Elf64_Phdr *headers,
					   unsigned long count)
{
	const Elf64_Dyn *dyn = program_dynamic(headers, count);

	for (; dyn != NULL && dyn->d_tag != DT_NULL; dyn++)
		if (dyn->d_tag == DT_DEBUG && dyn->d_un.d_ptr != 0)
			return ((const struct r_debug *)dyn->d_un.d_ptr)->r_map;
	return NULL;
}

/* Its ELF header.  The dynamic section is mapped for sure, the header at the
 * bias only where its addresses begin at 0; then its tables are near. */
static const Elf64_Ehdr *header_of(const struct link_map *module,
				   struct elf_image *image)
{
	enum { NEAR = 1 << 16 };
	uintptr_t table;

	*image = (struct elf_image){.bias = module->l_addr};
	if (module->l_addr == 0 || module->l_addr & 4095 ||
	    module->l_ld == NULL)
		return NULL;
	read_dynamic(image, module->l_ld);
	table = (uintptr_t)(image->gnu_hash != NULL ? image->gnu_hash
						    : image->hash);
	return table > module->l_addr && table < module->l_addr + NEAR
		       ? (const void *)module->l_addr
		       : NULL;
}

static bool is_module(const struct link_map *module, const char *soname)
{
	struct elf_image image;

	return header_of(module, &image) != NULL && image.soname != NULL &&
	       text_equal(image.soname, soname);
}

bool elf_find(const Elf64_Phdr *headers, unsigned long count,
	      const char *soname, struct elf_image *image)
{
	const struct link_map *module = first_module(headers, count);

	/* The first is the program itself. */
	for (; module != NULL; module = module->l_next)
		if (module->l_prev != NULL && is_module(module, soname))
			break;
	if (module == NULL || !elf_read((const void *)module->l_addr, image))
		return false;
	image->path = module->l_name;
	return true;
}

bool elf_program_needs(const Elf64_Phdr *headers, unsigned long count)
{
	const Elf64_Dyn *dyn = program_dynamic(headers, count);

	for (; dyn != NULL && dyn->d_tag != DT_NULL; dyn++)
		if (dyn->d_tag == DT_NEEDED)
			return true;
	return false;
}

bool elf_program_text(const Elf64_Phdr *headers, unsigned long count,
		      uintptr_t *from, uintptr_t *to)
{
	uintptr_t bias;

	if (headers == NULL || !program_bias(headers, count, &bias))
		return false;
	for (unsigned long i = 0; i < count; i++)
		if (headers[i].p_type == PT_LOAD && headers[i].p_flags & PF_X) {
			*from = bias + headers[i].p_vaddr;
			*to = *from + headers[i].p_memsz;
			return true;
		}
	return false;
}

/* --- code --- */

/* The build-id among the notes in [at, end). */
static void take_notes(struct elf_code *code, const char *at, const char *end)
{
	const Elf64_Nhdr *note = (const void *)at;
	const uint8_t *name, *value;

	while (end - (const char *)note > (ptrdiff_t)sizeof(*note)) {
		name = (const void *)(note + 1);
		value = name + ((note->n_namesz + 3) & ~3u);
		if ((const char *)value + note->n_descsz > end)
			return;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    text_is((const char *)name, 3, "GNU")) {
			code->build_id = value;
			code->build_id_bytes = note->n_descsz;
			return;
		}
		note = (const void *)(value + ((note->n_descsz + 3) & ~3u));
	}
}

/* Some files have notes that are not loaded. */
static bool is_loaded(const Elf64_Phdr *headers, unsigned long count,
		      const Elf64_Phdr *part)
{
	for (unsigned long i = 0; i < count; i++)
		if (headers[i].p_type == PT_LOAD &&
		    part->p_vaddr >= headers[i].p_vaddr &&
		    part->p_vaddr + part->p_memsz <=
			    headers[i].p_vaddr + headers[i].p_filesz)
			return true;
	return false;
}

static void each_segment(uintptr_t bias, const Elf64_Phdr *headers,
			 unsigned long count, struct elf_code *code,
			 void (*each)(const struct elf_code *code))
{
	for (unsigned long i = 0; i < count; i++) {
		const char *at = (const char *)(bias + headers[i].p_vaddr);

		if (headers[i].p_type == PT_NOTE && code->build_id == NULL &&
		    is_loaded(headers, count, &headers[i]))
			take_notes(code, at, at + headers[i].p_memsz);
	}
	for (unsigned long i = 0; i < count; i++) {
		if (headers[i].p_type != PT_LOAD ||
		    !(headers[i].p_flags & PF_X))
			continue;
		code->start = bias + headers[i].p_vaddr;
		code->length = headers[i].p_memsz;
		code->offset = headers[i].p_offset;
		each(code);
	}
}

static void each_of(const struct link_map *module,
		    void (*each)(const struct elf_code *code))
{
	struct elf_code code = {.path = module->l_name};
	struct elf_image image;
	const Elf64_Ehdr *elf = header_of(module, &image);

	/* What the kernel maps has no path. */
	if (*code.path == '\0' && image.soname != NULL)
		code.path = image.soname;
	if (elf != NULL && text_is((const char *)elf->e_ident, SELFMAG, ELFMAG))
		each_segment(module->l_addr,
			     (const void *)((const char *)elf + elf->e_phoff),
			     elf->e_phnum, &code, each);
}

void elf_each_code(const Elf64_Phdr *headers, unsigned long count,
		   void (*each)(const struct elf_code *code))
{
	const struct link_map *module = first_module(headers, count);
	struct elf_code program = {.path = NULL};
	uintptr_t bias;

	if (headers != NULL && program_bias(headers, count, &bias))
		each_segment(bias, headers, count, &program, each);
	for (; module != NULL; module = module->l_next)
		if (module->l_prev != NULL)
			each_of(module, each);
}

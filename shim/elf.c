/* SPDX-License-Identifier: MIT */
#include "elf.h"

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

#include "poison.h"

/* What symbol look-up needs of a module's dynamic section. */
struct dynamic {
	uintptr_t bias;
	const Elf64_Sym *symbols;
	const char *names;
	const uint32_t *gnu_hash;
	const uint32_t *hash;
};

static const Elf64_Dyn *find_dynamic(const Elf64_Ehdr *header, uintptr_t *bias)
{
	const Elf64_Phdr *segment =
		(const void *)((const char *)header + header->e_phoff);
	const Elf64_Phdr *dynamic = NULL;
	bool loaded = false;

	for (int i = 0; i < header->e_phnum; i++) {
		if (segment[i].p_type == PT_LOAD && !loaded) {
			*bias = (uintptr_t)header + segment[i].p_offset -
				segment[i].p_vaddr;
			loaded = true;
		}
		if (segment[i].p_type == PT_DYNAMIC)
			dynamic = &segment[i];
	}
	if (!loaded || dynamic == NULL)
		return NULL;
	return (const Elf64_Dyn *)(*bias + dynamic->p_vaddr);
}

/* ld.so relocates d_ptr of what it loads; the vDSO's is left as linked. */
static const void *pointer(const struct dynamic *d, Elf64_Addr value)
{
	return (const void *)(value < d->bias ? d->bias + value : value);
}

static struct dynamic read_dynamic(const Elf64_Ehdr *header)
{
	struct dynamic d = {0};
	const Elf64_Dyn *dyn = find_dynamic(header, &d.bias);

	for (; dyn != NULL && dyn->d_tag != DT_NULL; dyn++) {
		const void *value = pointer(&d, dyn->d_un.d_ptr);

		if (dyn->d_tag == DT_SYMTAB)
			d.symbols = value;
		else if (dyn->d_tag == DT_STRTAB)
			d.names = value;
		else if (dyn->d_tag == DT_GNU_HASH)
			d.gnu_hash = value;
		else if (dyn->d_tag == DT_HASH)
			d.hash = value;
	}
	return d;
}

static void *match(const struct dynamic *d, uint32_t i, const char *name)
{
	const Elf64_Sym *symbol = &d->symbols[i];

	if (symbol->st_shndx == SHN_UNDEF ||
	    !text_equal(d->names + symbol->st_name, name))
		return NULL;
	return (void *)(d->bias + symbol->st_value);
}

static void *find_gnu(const struct dynamic *d, const char *name)
{
	uint32_t buckets = d->gnu_hash[0], first = d->gnu_hash[1];
	uint32_t words = d->gnu_hash[2], hash = 5381;
	const uint32_t *bucket = d->gnu_hash + 4 + 2 * (size_t)words;
	const uint32_t *chain = bucket + buckets;
	void *found = NULL;

	for (const char *s = name; *s != '\0'; s++)
		hash = hash * 33 + (unsigned char)*s;
	for (uint32_t i = bucket[hash % buckets]; i >= first; i++) {
		if ((chain[i - first] | 1) == (hash | 1))
			found = match(d, i, name);
		if (found != NULL || chain[i - first] & 1)
			break;
	}
	return found;
}

static void *find_sysv(const struct dynamic *d, const char *name)
{
	uint32_t buckets = d->hash[0], hash = 0;
	const uint32_t *bucket = d->hash + 2, *chain = bucket + buckets;
	void *found = NULL;

	for (const char *s = name; *s != '\0'; s++) {
		hash = (hash << 4) + (unsigned char)*s;
		hash ^= hash >> 24 & 0xf0;
		hash &= 0x0fffffff;
	}
	for (uint32_t i = bucket[hash % buckets]; i != 0 && found == NULL;
	     i = chain[i])
		found = match(d, i, name);
	return found;
}

void *elf_symbol(const void *image, const char *name)
{
	struct dynamic d = read_dynamic(image);

	if (d.symbols == NULL || d.names == NULL)
		return NULL;
	if (d.gnu_hash != NULL)
		return find_gnu(&d, name);
	return d.hash != NULL ? find_sysv(&d, name) : NULL;
}

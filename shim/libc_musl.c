/* SPDX-License-Identifier: MIT */
/*
 * libc_musl: constructors get no arguments, libc is ready before them, and one
 * image is libc and the loader.
 */
#include "libc.h"

#include <stddef.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "poison.h"

extern char **__environ; /* in no header */

/* What the library asks for. */
static Elf64_auxv_t vector[] = {
	{.a_type = AT_BASE},         {.a_type = AT_EXECFN},
	{.a_type = AT_PAGESZ},       {.a_type = AT_PHDR},
	{.a_type = AT_PHNUM},        {.a_type = AT_SECURE},
	{.a_type = AT_SYSINFO_EHDR}, {.a_type = AT_RANDOM},
	{.a_type = AT_NULL},
};

/* glibc's loader looks for musl's library by name, and does not find it. */
bool libc_is_this(void)
{
	return true;
}

char **libc_environment(char **argument)
{
	(void)argument;
	return __environ;
}

/* Not behind the environment: an earlier constructor may have moved that. */
const Elf64_auxv_t *libc_auxv(char **environment)
{
	(void)environment;
	for (Elf64_auxv_t *v = vector; v->a_type != AT_NULL; v++)
		v->a_un.a_val = getauxval(v->a_type);
	return vector;
}

/* Behind the arguments, the environment and the vector.  argv is not passed,
 * and the environment may be another by now. */
uintptr_t libc_first_stack(char **argv, const Elf64_auxv_t *auxv)
{
	(void)argv;
	for (; auxv->a_type != AT_NULL; auxv++)
		if (auxv->a_type == AT_RANDOM)
			return auxv->a_un.a_val & ~(uintptr_t)7;
	return 0;
}

/* A guard's protection at first, and no flag that says it. */
bool libc_maps_stacks(uint32_t protection, uint32_t flags)
{
	return protection == PROT_NONE &&
	       flags == (MAP_PRIVATE | MAP_ANONYMOUS);
}

/* Of its control block only the first word is sure: its own address. */
bool libc_has_thread(void)
{
#ifdef __x86_64__
	uint64_t self;

	__asm__ volatile("mov %%fs:0, %0" : "=r"(self));
	return self != 0;
#else
	return true;
#endif
}

bool libc_find(const Elf64_Phdr *headers, unsigned long count,
	       const void *loader, struct elf_image *image)
{
	(void)headers;
	(void)count;
	return loader != NULL && elf_read(loader, image) &&
	       elf_symbol(image, "mmap", NULL) != NULL;
}

bool libc_at_fork(const struct elf_image *libc, void (*handler)(void))
{
	int (*add)(void (*before)(void), void (*parent)(void),
		   void (*child)(void)) =
		elf_symbol(libc, "pthread_atfork", NULL);

	return add != NULL && add(NULL, NULL, handler) == 0;
}

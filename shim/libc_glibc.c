/* SPDX-License-Identifier: MIT */
#include "libc.h"

#include <stddef.h>
#include <sys/mman.h>

#include "poison.h"

/* A name that musl does not have; nothing calls it. */
extern const char *gnu_get_libc_version(void) __attribute__((weak));

bool libc_is_this(void)
{
	return gnu_get_libc_version != NULL;
}

/* The constructor runs before libc's own: there is nothing to ask yet. */
char **libc_environment(char **argument)
{
	return argument;
}

const Elf64_auxv_t *libc_auxv(char **environment)
{
	while (*environment != NULL)
		environment++;
	/* A loader that took variables away left more than one NULL. */
	while (*environment == NULL)
		environment++;
	return (const void *)environment;
}

/* argc lies before them. */
uintptr_t libc_first_stack(char **argv, const Elf64_auxv_t *auxv)
{
	(void)auxv;
	return (uintptr_t)argv - sizeof(long);
}

bool libc_maps_stacks(uint32_t protection, uint32_t flags)
{
	(void)protection;
	return flags & MAP_STACK;
}

/* The control block has its own address twice. */
bool libc_has_thread(void)
{
#ifdef __x86_64__
	uint64_t self, again;

	__asm__ volatile("mov %%fs:0, %0\n\t"
			 "mov %%fs:16, %1"
			 : "=r"(self), "=r"(again));
	return self == again && self != 0;
#else
	return true;
#endif
}

bool libc_find(const Elf64_Phdr *headers, unsigned long count,
	       const void *loader, struct elf_image *image)
{
	(void)loader;
	return elf_find(headers, count, "libc.so.6", image);
}

bool libc_at_fork(const struct elf_image *libc, void (*handler)(void))
{
	int (*add)(void (*before)(void), void (*parent)(void),
		   void (*child)(void), void *library) =
		elf_symbol(libc, "__register_atfork", NULL);

	return add != NULL && add(NULL, NULL, handler, NULL) == 0;
}

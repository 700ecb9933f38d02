/* SPDX-License-Identifier: MIT */
/*
 * early: maps before anybody else runs: in a resolver that the loader calls
 * while it relocates, before all constructors, in one, and in a destructor.
 */
#include <stdio.h>
#include <sys/mman.h>

enum { BYTES = 4096 };

static int good;

static int map_once(void)
{
	void *at = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);

	return at != MAP_FAILED && munmap(at, BYTES) == 0;
}

static int one(void)
{
	return 1;
}

static int minus_a_lot(void)
{
	return -100;
}

/* Memory that it writes may not be relocated yet, so it answers by what it
 * resolves to. */
__attribute__((used)) static int (*resolve(void))(void)
{
	return map_once() ? one : minus_a_lot;
}

int resolved(void) __attribute__((ifunc("resolve")));

static void before_constructors(void)
{
	good += map_once();
}

__attribute__((section(".preinit_array"),
	       used)) static void (*const preinit)(void) = before_constructors;

__attribute__((constructor)) static void construct(void)
{
	good += map_once();
}

__attribute__((destructor)) static void destruct(void)
{
	/* The library's own destructor may have run. */
	puts(map_once() ? "last: mapped" : "last: failed");
}

int main(void)
{
	printf("early: %d of 3\n", good + resolved());
	return 0;
}

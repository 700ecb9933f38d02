/* SPDX-License-Identifier: MIT */
/*
 * places: makes calls in places whose names are known.
 *
 * usage: places WHAT COUNT [LIBRARY]
 *   named      malloc and free of 1 MiB in grab(), called by three functions
 *   direct     mmap in direct() and munmap in undirect()
 *   thread     pthread_create in launch(), and mprotect in the thread's body()
 *   coroutine  the same as direct, on a 16 KiB stack made by makecontext
 *   signal     the same, in a handler on an alternate stack
 *   small      the same, in a thread on a stack of the program's
 *   library    dlopen in open_it(), and munmap in give_back() of LIBRARY
 *   jit        munmap called by code in an anonymous page; with a NAME in place
 *              of LIBRARY it is in a map for perf under that name
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define PLACE static __attribute__((noinline))
/* The call is not the last thing that its function does, and no other function
 * is the same. */
#define STAY_(line) __asm__ volatile("# " #line ::: "memory")
#define STAY__(line) STAY_(line)
#define STAY() STAY__(__LINE__)

enum { SIZE = 1 << 20, STACK = 16 << 10 };

static int count;
static const char *library;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* --- named --- */

static void *volatile held;

PLACE void grab(void)
{
	held = malloc(SIZE);
	if (held == NULL)
		fail("malloc");
	free(held);
	STAY();
}

PLACE void first(void)
{
	grab();
	STAY();
}

PLACE void second(void)
{
	grab();
	STAY();
}

PLACE void third(void)
{
	grab();
	STAY();
}

static void named(void)
{
#ifdef M_MMAP_THRESHOLD
	/* Every block by a mapping of its own. */
	mallopt(M_MMAP_THRESHOLD, SIZE / 2);
#endif
	for (int i = 0; i < count; i++) {
		first();
		second();
		third();
	}
}

/* --- direct --- */

PLACE void *direct(void)
{
	void *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		fail("mmap");
	return at;
}

PLACE void undirect(void *at)
{
	if (munmap(at, SIZE) != 0)
		fail("munmap");
	STAY();
}

static void both(void)
{
	for (int i = 0; i < count; i++)
		undirect(direct());
}

/* --- thread --- */

static void *page;

PLACE void *body(void *unused)
{
	if (mprotect(page, 4096, PROT_READ) != 0)
		fail("mprotect");
	STAY();
	return unused;
}

PLACE void launch(pthread_attr_t *attributes, void *(*entry)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, attributes, entry, NULL) != 0 ||
	    pthread_join(thread, NULL) != 0)
		fail("pthread_create");
}

static void thread(void)
{
	page = direct();
	for (int i = 0; i < count; i++)
		launch(NULL, body);
}

/* --- other stacks --- */

static _Alignas(4096) char stack[STACK];
static ucontext_t outside, inside;

PLACE void on_coroutine(void)
{
	both();
	STAY();
}

static void coroutine(void)
{
	if (getcontext(&inside) != 0)
		fail("getcontext");
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = STACK;
	inside.uc_link = &outside;
	makecontext(&inside, on_coroutine, 0);
	if (swapcontext(&outside, &inside) != 0)
		fail("swapcontext");
}

PLACE void on_signal(int number)
{
	(void)number;
	both();
	STAY();
}

static void on_alternate_stack(void)
{
	static char alternate[STACK];
	const stack_t to = {.ss_sp = alternate, .ss_size = STACK};
	const struct sigaction action = {.sa_handler = on_signal,
					 .sa_flags = SA_ONSTACK};

	if (sigaltstack(&to, NULL) != 0 ||
	    sigaction(SIGUSR1, &action, NULL) != 0 || raise(SIGUSR1) != 0)
		fail("raise");
}

PLACE void *on_small(void *unused)
{
	both();
	STAY();
	return unused;
}

static void small(void)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	if (pthread_attr_setstack(&attributes, stack, STACK) != 0)
		fail("pthread_attr_setstack");
	launch(&attributes, on_small);
}

/* --- code from elsewhere --- */

PLACE void *open_it(void)
{
	void *handle = dlopen(library, RTLD_NOW);

	if (handle == NULL)
		fail(dlerror());
	return handle;
}

static void from_library(void)
{
	for (int i = 0; i < count; i++) {
		void *handle = open_it();
		void (*give_back)(void *, size_t);

		*(void **)&give_back = dlsym(handle, "give_back");
		if (give_back == NULL)
			fail("give_back");
		give_back(direct(), SIZE);
		dlclose(handle);
	}
}

/* As makers of code do; before that a line for code that was there, and one
 * that is none. */
static void map_for_perf(const void *at, size_t size, const char *name)
{
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	unlink(path); /* of another process that had this number */
	map = fopen(path, "wx");
	if (map == NULL)
		fail(path);
	fprintf(map, "%lx %zx gone\nno line\n%lx %zx %s\n", (long)at, size,
		(long)at, size, name);
	fclose(map);
}

static void jit(void)
{
#if defined(__x86_64__)
	/* push %rbp; mov %rsp, %rbp; call *%rdx; pop %rbp; ret */
	static const char code[] = "\x55\x48\x89\xe5\xff\xd2\x5d\xc3";
	int (*call)(void *, size_t, int (*)(void *, size_t));
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS, 0, 0);

	if (at == MAP_FAILED)
		fail("mmap");
	memcpy(at, code, sizeof(code));
	*(void **)&call = at;
	if (library != NULL)
		map_for_perf(at, sizeof(code), library);
	printf("%p\n", (void *)((char *)at + 6));
	for (int i = 0; i < count; i++)
		if (call(direct(), SIZE, munmap) != 0)
			fail("munmap");
#endif
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = {
		{"named", named},          {"direct", both},
		{"thread", thread},        {"coroutine", coroutine},
		{"small", small},          {"signal", on_alternate_stack},
		{"library", from_library}, {"jit", jit},
	};

	count = argc > 2 ? atoi(argv[2]) : 1;
	library = argc > 3 ? argv[3] : NULL;
	for (size_t i = 0; argc > 1 && i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(all[i].name, argv[1]) == 0) {
			all[i].run();
			puts("done");
			return 0;
		}
	fprintf(stderr, "usage: places WHAT COUNT [LIBRARY]\n");
	return 2;
}

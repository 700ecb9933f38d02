/* SPDX-License-Identifier: MIT */
/*
 * stacks: makes calls on small stacks, each painted before and with a page
 * below it that must not be touched, and prints how deep the stack was used
 * from the caller's frame on, in bytes:
 *
 *   empty      no call: what the measurement itself takes
 *   first      the process's and the thread's first call
 *   plain      the calls that an allocator makes, and failing ones
 *   contended  the same, while other threads do so all the time
 *   child      the first call of a forked child
 *   coroutine  the calls of 200 coroutines with stacks of 16 KiB, in turn
 *   handler    in signal handlers, on an alternate stack that is as small as
 *              the system allows; the C library's constant, if it is larger
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum {
	PAGE = 4096,
	BYTES = 16 * 1024,
	PAINT = 0xa5,
	COROUTINES = 200,
	HAMMERS = 3,
	LOOPS = 500,
};

static atomic_int failures, hammering;
static ucontext_t outside, inside;
static unsigned char *frame; /* of the function that makes the calls */

static void expect(int good)
{
	if (!good)
		atomic_fetch_add(&failures, 1);
}

static void call_once(void)
{
	char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	expect(at != MAP_FAILED);
	expect(mprotect(at, PAGE, PROT_READ) == 0);
	expect(madvise(at, BYTES, MADV_DONTNEED) == 0);
	expect(mprotect(at + 1, PAGE, PROT_READ) == -1);
	at = mremap(at + PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
	expect(at != MAP_FAILED);
	expect(munmap(at, 2 * PAGE) == 0);
}

/* A stack with its top at the end of a mapping and a guard below. */
static unsigned char *new_stack(size_t bytes)
{
	size_t whole = (bytes + PAGE - 1) / PAGE * PAGE + PAGE;
	unsigned char *at = mmap(NULL, whole, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	expect(at != MAP_FAILED && mprotect(at, PAGE, PROT_NONE) == 0);
	memset(at + PAGE, PAINT, whole - PAGE);
	return at + whole - bytes;
}

static size_t depth(const unsigned char *stack)
{
	const unsigned char *lowest = stack;

	while (*lowest == PAINT)
		lowest++;
	return (size_t)(frame - lowest);
}

static __attribute__((noinline)) void nothing(void)
{
	frame = __builtin_frame_address(0);
}

static __attribute__((noinline)) void one(void)
{
	frame = __builtin_frame_address(0);
	call_once();
}

static __attribute__((noinline)) void many(void)
{
	frame = __builtin_frame_address(0);
	for (int i = 0; i < LOOPS; i++)
		call_once();
}

/* Makes a context of a stack and lets it run; noinline, as getcontext() is one
 * of the functions that return twice. */
static __attribute__((noinline)) void
prepare(ucontext_t *context, unsigned char *stack, void (*f)(void))
{
	getcontext(context);
	context->uc_stack.ss_sp = stack;
	context->uc_stack.ss_size = BYTES;
	context->uc_link = &outside;
	makecontext(context, f, 0);
}

static size_t measure_on(unsigned char *stack, void (*f)(void))
{
	prepare(&inside, stack, f);
	swapcontext(&outside, &inside);
	return depth(stack);
}

static size_t measure(void (*f)(void))
{
	return measure_on(new_stack(BYTES), f);
}

static void *hammer(void *unused)
{
	while (atomic_load(&hammering))
		call_once();
	return unused;
}

static size_t measure_contended(void)
{
	pthread_t threads[HAMMERS];
	size_t deepest;

	hammering = 1;
	for (int i = 0; i < HAMMERS; i++)
		expect(pthread_create(&threads[i], NULL, hammer, NULL) == 0);
	deepest = measure(many);
	hammering = 0;
	for (int i = 0; i < HAMMERS; i++)
		pthread_join(threads[i], NULL);
	return deepest;
}

static _Noreturn void child(int to)
{
	/* new_stack() makes calls too, and this is about the first one. */
	static unsigned char stack[BYTES];
	size_t deepest;

	memset(stack, PAINT, sizeof(stack));
	deepest = measure_on(stack, one);
	_exit(write(to, &deepest, sizeof(deepest)) < 0 || failures != 0);
}

static size_t measure_child(void)
{
	size_t deepest = 0;
	int ends[2], status = -1;
	pid_t pid;

	expect(pipe(ends) == 0);
	pid = fork();
	if (pid == 0)
		child(ends[1]);
	expect(read(ends[0], &deepest, sizeof(deepest)) == sizeof(deepest));
	expect(waitpid(pid, &status, 0) == pid && status == 0);
	close(ends[0]);
	close(ends[1]);
	return deepest;
}

/* --- coroutines --- */

static ucontext_t routines[COROUTINES];
static int turn;

static void coroutine(void)
{
	for (int i = 0; i < 3; i++) {
		frame = __builtin_frame_address(0);
		call_once();
		if (i < 2)
			swapcontext(&routines[turn], &outside);
	}
}

static size_t run_coroutines(void)
{
	static unsigned char *stacks[COROUTINES];
	size_t deepest = 0;

	for (int i = 0; i < COROUTINES; i++) {
		stacks[i] = new_stack(BYTES);
		prepare(&routines[i], stacks[i], coroutine);
	}
	for (int i = 0; i < 3 * COROUTINES; i++) {
		turn = i % COROUTINES;
		swapcontext(&outside, &routines[turn]);
		if (depth(stacks[turn]) > deepest)
			deepest = depth(stacks[turn]);
	}
	return deepest;
}

/* --- handlers --- */

static void on_signal(int number)
{
	(void)number;
	one();
}

static size_t measure_handler(void)
{
	struct sigaction action = {.sa_handler = on_signal,
				   .sa_flags = SA_ONSTACK};
	size_t bytes = (size_t)sysconf(_SC_MINSIGSTKSZ);
	stack_t small = {0}, none = {.ss_flags = SS_DISABLE};

	if (bytes < 2048) /* MINSIGSTKSZ, before it was a function */
		bytes = 2048;
	small.ss_sp = new_stack(bytes);
	small.ss_size = bytes;
	expect(sigaltstack(&small, NULL) == 0);
	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 100; i++)
		raise(SIGUSR1);
	sigaltstack(&none, NULL);
	return depth(small.ss_sp);
}

static void say(const char *what, size_t bytes)
{
	printf("%s: %zu\n", what, bytes);
	fflush(stdout);
}

int main(void)
{
	/* Nothing is mapped before: stdout gets its buffer now. */
	static char buffer[256];

	setvbuf(stdout, buffer, _IOLBF, sizeof(buffer));
	say("empty", measure(nothing));
	say("first", measure(one));
	say("plain", measure(many));
	say("contended", measure_contended());
	say("child", measure_child());
	say("coroutine", run_coroutines());
	say("handler", measure_handler());
	if (failures)
		printf("failures: %d\n", failures);
	return failures != 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * call_cost: what the library adds to one call.
 *
 * Times blocks of a madvise() of no bytes in three ways, in turn, so that the
 * machine's moods hit all alike: the bare system call, the same between two
 * reads of the time-stamp counter (what anything that measures must pay), and
 * the function that the library wraps.  Prints the medians over all rounds in
 * nanoseconds: "bare stamped wrapped", and the median of wrapped - bare with
 * its quartiles.
 *
 * usage: call_cost ROUNDS [CALLS_BEFORE]
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

enum { BLOCK = 2000, MOST_ROUNDS = 10000 };

static void *page;
static volatile uint64_t sink;

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline long bare(void)
{
	long result;

#if defined(__x86_64__)
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(SYS_madvise), "D"(page), "S"(0L), "d"(0L)
			 : "rcx", "r11", "memory");
#else
	register long x8 __asm__("x8") = SYS_madvise;
	register long x0 __asm__("x0") = (long)page;
	register long x1 __asm__("x1") = 0;
	register long x2 __asm__("x2") = 0;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2)
			 : "memory");
	result = x0;
#endif
	return result;
}

static inline uint64_t stamp(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return (uint64_t)now_ns();
#endif
}

static double time_bare(void)
{
	double start = now_ns();

	for (int i = 0; i < BLOCK; i++)
		bare();
	return (now_ns() - start) / BLOCK;
}

static double time_stamped(void)
{
	double start = now_ns();

	for (int i = 0; i < BLOCK; i++) {
		uint64_t before = stamp();

		bare();
		sink = stamp() - before;
	}
	return (now_ns() - start) / BLOCK;
}

static double time_wrapped(void)
{
	double start = now_ns();

	for (int i = 0; i < BLOCK; i++)
		madvise(page, 0, 0);
	return (now_ns() - start) / BLOCK;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(double *values, int count, double q)
{
	qsort(values, (size_t)count, sizeof(*values), compare);
	return values[(int)(q * (count - 1))];
}

int main(int argc, char **argv)
{
	static double plain[MOST_ROUNDS], stamped[MOST_ROUNDS];
	static double wrapped[MOST_ROUNDS], added[MOST_ROUNDS];
	int rounds = argc > 1 ? atoi(argv[1]) : 0;
	long before = argc > 2 ? atol(argv[2]) : 0;

	if (rounds < 1 || rounds > MOST_ROUNDS) {
		fprintf(stderr, "usage: call_cost ROUNDS [CALLS_BEFORE]\n");
		return 2;
	}
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED || bare() != 0 || madvise(page, 0, 0) != 0)
		return 1;
	while (before-- > 0)
		madvise(page, 0, 0);
	for (int i = 0; i < rounds; i++) {
		plain[i] = time_bare();
		stamped[i] = time_stamped();
		wrapped[i] = time_wrapped();
		added[i] = wrapped[i] - plain[i];
	}
	printf("bare %.1f stamped %.1f wrapped %.1f added %.1f %.1f %.1f\n",
	       quantile(plain, rounds, 0.5), quantile(stamped, rounds, 0.5),
	       quantile(wrapped, rounds, 0.5), quantile(added, rounds, 0.5),
	       quantile(added, rounds, 0.25), quantile(added, rounds, 0.75));
	return 0;
}

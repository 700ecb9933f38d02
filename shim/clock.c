/* SPDX-License-Identifier: MIT */
#include "clock.h"

#include <stddef.h>

#include "elf.h"
#include "sys.h"
#include "text.h"

#include "poison.h"

enum { CLOCK_REAL = 0, CLOCK_MONO = 1 };

bool clock_is_tsc;

static long (*vdso_clock)(int clock, struct sys_timespec *now);
static struct record_pair first;

static uint64_t in_ns(const struct sys_timespec *t)
{
	return (uint64_t)t->seconds * 1000000000 + (uint64_t)t->ns;
}

uint64_t clock_monotonic(void)
{
	struct sys_timespec now = {0, 0};

	if (vdso_clock == NULL || vdso_clock(CLOCK_MONO, &now) != 0)
		sys_clock_gettime(CLOCK_MONO, &now);
	return in_ns(&now);
}

uint64_t clock_realtime(void)
{
	struct sys_timespec now = {0, 0};

	sys_clock_gettime(CLOCK_REAL, &now);
	return in_ns(&now);
}

struct record_pair clock_pair(void)
{
	struct record_pair best = {0};
	uint64_t narrowest = UINT64_MAX;

	/* An interrupt between the two readings would tilt every later time:
	 * of three tries, the one that took least. */
	for (int i = 0; i < 3; i++) {
		uint64_t before = clock_ticks(), ns = clock_monotonic();
		uint64_t after = clock_ticks();

		if (after - before < narrowest) {
			narrowest = after - before;
			best.ticks = before + (after - before) / 2;
			best.ns = clock_is_tsc ? ns : best.ticks;
		}
	}
	best.check = best.ticks ^ best.ns ^ RECORD_MAGIC;
	return best;
}

#if defined(__x86_64__)

/* Does the kernel itself keep time by the TSC?  Then it is constant and equal
 * on all CPUs. */
static bool kernel_uses_tsc(void)
{
	char name[8];
	long fd = sys_openat(-100,
			     "/sys/devices/system/clocksource/clocksource0/"
			     "current_clocksource",
			     02000000 /* O_CLOEXEC */, 0);
	long n;

	if (sys_failed(fd))
		return false;
	n = sys_read((int)fd, name, sizeof(name));
	sys_close((int)fd);
	return n == 4 && text_is(name, 4, "tsc\n");
}

/* prctl(PR_SET_TSC, PR_TSC_SIGSEGV) makes rdtsc deadly. */
static bool may_read_tsc(void)
{
	enum { PR_GET_TSC = 25, PR_TSC_ENABLE = 1 };
	int mode = 0;

	return sys_prctl(PR_GET_TSC, (unsigned long)&mode) == 0 &&
	       mode == PR_TSC_ENABLE;
}

#endif

static void *vdso_function(const void *vdso)
{
	struct elf_image image;

	if (vdso == NULL || !elf_read(vdso, &image))
		return NULL;
#if defined(__x86_64__)
	return elf_symbol(&image, "__vdso_clock_gettime", NULL);
#else
	return elf_symbol(&image, "__kernel_clock_gettime", NULL);
#endif
}

void clock_init(const void *vdso, bool precise)
{
	vdso_clock = (long (*)(int, struct sys_timespec *))vdso_function(vdso);
#if defined(__x86_64__)
	clock_is_tsc = precise && may_read_tsc() && kernel_uses_tsc();
#else
	(void)precise;
#endif
	first = clock_pair();
}

uint64_t clock_from_ns(uint64_t ns)
{
	struct record_pair now = clock_pair();
	uint64_t span = now.ns - first.ns;

	if (!clock_is_tsc || span == 0)
		return ns;
	return (uint64_t)((unsigned __int128)ns * (now.ticks - first.ticks) /
			  span);
}

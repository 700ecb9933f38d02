/* SPDX-License-Identifier: MIT */
/*
 * holder [-p|-a]: a thread's madvise stays in the kernel, as a page fault
 * monitor is slow to let it go, while 3 others map and unmap, 200 times each;
 * it is let go when they are done.
 *
 *   -p  it is let go by a line on stdin; "held" says that the others start
 *   -a  the others make madvise calls, of the same advice
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BYTES = 4096, LOOPS = 200, OTHERS = 3 };

static _Atomic int returned;
static int advise;
static pthread_barrier_t held;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void *map(void)
{
	void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		fail("mmap");
	return at;
}

/* A page whose removal waits until the returned descriptor is read. */
static int watch(void *page)
{
	struct uffdio_api api = {.api = UFFD_API,
				 .features = UFFD_FEATURE_EVENT_REMOVE};
	struct uffdio_register range = {.range = {(uintptr_t)page, BYTES},
					.mode = UFFDIO_REGISTER_MODE_MISSING};
	/* It can be waited on when reading it does not wait. */
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0 ||
	    ioctl(fd, UFFDIO_REGISTER, &range) != 0)
		exit(77);
	return fd;
}

static void *hold(void *page)
{
	if (madvise(page, BYTES, MADV_DONTNEED) != 0)
		fail("madvise");
	atomic_store(&returned, 1);
	return NULL;
}

static void *work(void *page)
{
	pthread_barrier_wait(&held);
	for (int i = 0; i < LOOPS; i++)
		if (advise ? madvise(page, BYTES, MADV_DONTNEED) != 0
			   : munmap(map(), BYTES) != 0)
			fail(advise ? "madvise" : "munmap");
	return NULL;
}

/* The event is there to be read once the call is in the kernel. */
static void read_event(int fd, int peek)
{
	fd_set set;
	struct uffd_msg event;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	if (peek ? select(fd + 1, &set, NULL, NULL, NULL) != 1
		 : read(fd, &event, sizeof(event)) != sizeof(event))
		fail("the event");
}

static void start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	if (pthread_create(thread, NULL, run, arg) != 0)
		fail("pthread_create");
}

static void say(const char *line)
{
	puts(line);
	fflush(stdout);
}

static void join_all(const pthread_t *others)
{
	for (int i = 0; i < OTHERS; i++)
		pthread_join(others[i], NULL);
	puts("others are done");
}

int main(int argc, char **argv)
{
	int until_told = argc == 2 && strcmp(argv[1], "-p") == 0;
	void *page = map();
	int fd = watch(page);
	pthread_t holder, others[OTHERS];

	advise = argc == 2 && strcmp(argv[1], "-a") == 0;
	pthread_barrier_init(&held, NULL, OTHERS + 1);
	for (int i = 0; i < OTHERS; i++)
		start(&others[i], work, advise ? map() : NULL);
	start(&holder, hold, page);
	read_event(fd, 1);
	if (until_told)
		say("held");
	pthread_barrier_wait(&held);
	if (until_told)
		getchar();
	else
		join_all(others);
	printf("held: %d\n", !atomic_load(&returned));
	read_event(fd, 0);
	pthread_join(holder, NULL);
	if (until_told)
		join_all(others);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * cases LOAD: what programs did whose authors wrote about it, each as small as
 * shows it.  Checks its data and prints "done"; with a sum where it has one.
 *
 *   scan, scan-mutex   a scanner: map, look at parts, map over some, unmap; and
 *                      large results of malloc; the same with a mutex of its
 *                      own around its maps
 *   instance, instances  reserve, make usable, write, unmap: one thread, eight
 *   queries            sixteen threads map a block each, write to it, unmap it
 *   blocks, pool       the same in four; from a pool of each thread's own
 *   flip, flip-apart   access on and off, in one mapping or one a thread
 *   flip-fixed         the same by mapping over it
 *   slices             thousands of mappings side by side, unmapped by four
 *   burst              thousands of small gifts back to the kernel in a row,
 *                      beside four threads that allocate
 *   handed, unmapped   blocks that another thread unmaps, or their own
 *   starters           threads that write to much memory as soon as they start
 *   fill               eight threads map files and have them filled
 *   webapp             eight threads malloc and free large buffers
 *   trim               malloc_trim beside threads that allocate
 *   files              one thread maps files, another writes to memory
 *   forks              children come and go beside threads that protect
 *   lengths            one thread protects much memory, untouched and used
 *   apart, prefilled   first touches: of one's own memory; filled before
 *   collapse           huge pages are asked for beside threads that allocate
 *   pauses             sleeps around cheap unmaps
 *   others             calls that mmgate does not wrap, beside such that it
 * does
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	MOST = 32,
	PAGE = 4096,
	KIB = 1024,
	MIB = 1 << 20,
	/* Newer than some libcs. */
	ADVISE_POPULATE_WRITE = 23,
	ADVISE_COLLAPSE = 25,
};

struct load {
	const char *name;
	unsigned threads, loops;
	void (*before)(void);             /* once */
	void (*loop)(unsigned, unsigned); /* of a thread: which, and which */
	void (*meanwhile)(void); /* in the main thread; then they end */
	bool (*fits)(void);      /* can the kernel do it? */
};

static const struct load *load;
static pthread_barrier_t all_there;
static atomic_bool stop;
static atomic_uint sum;
static char *area;
static int file = -1;
static pthread_mutex_t own_mutex = PTHREAD_MUTEX_INITIALIZER;
static bool takes_mutex;

static void check(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "cases: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void touch(char *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += PAGE)
		at[i] = 1;
}

/* Not for it to become a jump, which leaves no frame. */
static void pause_us(long us)
{
	nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static void *got(void *at)
{
	check(at != MAP_FAILED, "mmap");
	return at;
}

/* Macros, so that a call is of the function that it is for. */
#define GET(bytes, prot, flags, fd)                                            \
	got(mmap(NULL, (bytes), (prot), MAP_PRIVATE | (flags), (fd), 0))
#define GET_MEMORY(bytes) GET(bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS, -1)
#define DROP(at, bytes) check(munmap((at), (bytes)) == 0, "munmap")
#define PROTECT(at, bytes, prot)                                               \
	check(mprotect((at), (bytes), (prot)) == 0, "mprotect")

/* --- a scanner --- */

enum { SCAN_BYTES = 512 * KIB, AGED = 64 * KIB };

static void own_lock(bool take)
{
	if (takes_mutex && take)
		pthread_mutex_lock(&own_mutex);
	else if (takes_mutex)
		pthread_mutex_unlock(&own_mutex);
}

static char *map_file(void)
{
	char *at;

	own_lock(true);
	at = GET_MEMORY(SCAN_BYTES);
	own_lock(false);
	return at;
}

static void age(char *at)
{
	char *fresh;

	own_lock(true);
	fresh = mmap(at, AGED, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	own_lock(false);
	check(fresh == at, "mmap over pages");
}

static void unmap_file(char *at)
{
	own_lock(true);
	DROP(at, SCAN_BYTES);
	own_lock(false);
}

static void keep_result(unsigned n)
{
	size_t bytes = (1 + n % 4) * (size_t)MIB;
	char *result = malloc(bytes);

	check(result != NULL, "malloc");
	result[0] = result[bytes - 1] = (char)n;
	atomic_fetch_add(&sum, (unsigned char)result[bytes - 1]);
	free(result);
	atomic_fetch_add(&sum, 1); /* nor is that a jump */
}

static void scan(unsigned thread, unsigned n)
{
	char *at = map_file();

	for (size_t i = 0; i < SCAN_BYTES; i += PAGE)
		at[i] = (char)(i / PAGE + thread);
	age(at);
	for (size_t i = 0; i < SCAN_BYTES; i += PAGE)
		atomic_fetch_add(&sum, (unsigned char)at[i]);
	unmap_file(at);
	keep_result(n);
}

static void fix_threshold(void)
{
	check(mallopt(M_MMAP_THRESHOLD, 128 * KIB) == 1, "mallopt");
}

static void with_mutex(void)
{
	fix_threshold();
	takes_mutex = true;
}

/* --- reserve, make usable, unmap --- */

static void reserve(unsigned thread, unsigned n)
{
	char *at = GET(MIB, PROT_NONE, MAP_ANONYMOUS, -1);

	PROTECT(at, MIB, PROT_READ | PROT_WRITE);
	touch(at, 64 * KIB);
	check(at[thread % 16 * PAGE] == 1, "memory");
	DROP(at, MIB);
	(void)n;
}

/* --- blocks --- */

static void block(unsigned thread, unsigned n)
{
	char *at = GET_MEMORY(MIB);

	touch(at, MIB);
	DROP(at, MIB);
	(void)thread, (void)n;
}

static void reuse(unsigned thread, unsigned n)
{
	static char *pool[MOST];

	if (!pool[thread])
		pool[thread] = GET_MEMORY(MIB);
	touch(pool[thread], MIB);
	memset(pool[thread], (int)n, MIB);
}

/* --- access on and off --- */

enum { FLIPPED = 64 * KIB };

static void one_mapping(void)
{
	area = GET_MEMORY(MOST * FLIPPED);
	touch(area, MOST * FLIPPED);
}

static void flip(unsigned thread, unsigned n)
{
	char *at = area + thread * FLIPPED;

	PROTECT(at, FLIPPED, PROT_NONE);
	PROTECT(at, FLIPPED, PROT_READ | PROT_WRITE);
	check(*at == 1, "memory");
	(void)n;
}

static void flip_apart(unsigned thread, unsigned n)
{
	static char *own[MOST];
	char *at = own[thread];

	if (!at) {
		/* Others in between would make one mapping of all. */
		at = GET(FLIPPED + 2 * PAGE, PROT_NONE, MAP_ANONYMOUS, -1);
		at = own[thread] = at + PAGE;
		PROTECT(at, FLIPPED, PROT_READ | PROT_WRITE);
		touch(at, FLIPPED);
	}
	PROTECT(at, FLIPPED, PROT_NONE);
	PROTECT(at, FLIPPED, PROT_READ | PROT_WRITE);
	check(*at == 1, "memory");
	(void)n;
}

static void map_over(char *at, int prot)
{
	check(mmap(at, FLIPPED, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		   -1, 0) == at,
	      "mmap over pages");
}

static void flip_fixed(unsigned thread, unsigned n)
{
	char *at = area + thread * FLIPPED;

	map_over(at, PROT_NONE);
	map_over(at, PROT_READ | PROT_WRITE);
	check(*at == 0, "memory");
	touch(at, FLIPPED);
	(void)n;
}

/* --- very many mappings --- */

enum { SLICES = 20000, SLICE_THREADS = 4 };

static void cut(void)
{
	area = GET_MEMORY((size_t)SLICES * PAGE);
	for (size_t i = 0; i < SLICES; i += 2)
		PROTECT(area + i * PAGE, PAGE, PROT_READ);
}

static void release(unsigned thread, unsigned n)
{
	DROP(area + ((size_t)n * SLICE_THREADS + thread) * PAGE, PAGE);
}

/* --- many small gifts back to the kernel --- */

enum { SPANS = 20000, SPAN_BYTES = 160 * KIB };

static void give_back(void)
{
	for (size_t i = 0; i < SPANS; i++)
		check(madvise(area + i * SPAN_BYTES, SPAN_BYTES,
			      MADV_DONTNEED) == 0,
		      "madvise");
}

static void fill_spans(void)
{
	area = GET((size_t)SPANS * SPAN_BYTES, PROT_READ | PROT_WRITE,
		   MAP_ANONYMOUS | MAP_NORESERVE, -1);
	for (size_t i = 0; i < SPANS; i++)
		area[i * SPAN_BYTES] = 1;
}

static void allocate(unsigned thread, unsigned n)
{
	char *at = malloc(100 + n % 1000);

	check(at != NULL, "malloc");
	at[0] = (char)thread;
	atomic_fetch_add(&sum, (unsigned)at[0]);
	free(at);
}

/* --- blocks that go from hand to hand --- */

enum { HANDED = 16 * KIB, HANDFUL = 32 };

static char *handed[MOST][HANDFUL];
static sem_t full[MOST], empty[MOST];

static void set_hands(void)
{
	for (size_t i = 0; i < MOST; i++) {
		sem_init(&full[i], 0, 0);
		sem_init(&empty[i], 0, 1);
	}
}

static void take(sem_t *sem)
{
	while (sem_wait(sem))
		;
}

/* Even threads make them, odd ones unmap them. */
static void hand(unsigned thread, unsigned n)
{
	unsigned pair = thread / 2, other = thread % 2;
	size_t i;

	take(other ? &full[pair] : &empty[pair]);
	for (i = 0; i < HANDFUL && !other; i++)
		handed[pair][i] = GET_MEMORY(HANDED);
	for (i = 0; i < HANDFUL && other; i++)
		DROP(handed[pair][i], HANDED);
	sem_post(other ? &empty[pair] : &full[pair]);
	(void)n;
}

static void unmap_own(unsigned thread, unsigned n)
{
	char *at = GET_MEMORY(256 * KIB);

	touch(at, 256 * KIB);
	DROP(at, 256 * KIB);
	(void)thread, (void)n;
}

/* --- threads that begin at once --- */

static void *fill_own(void *at)
{
	touch(at, 4 * MIB);
	return NULL;
}

static void start_all(void)
{
	pthread_t threads[MOST];
	char *at = GET_MEMORY((size_t)MOST * 4 * MIB);

	for (size_t i = 0; i < MOST; i++)
		check(pthread_create(&threads[i], NULL, fill_own,
				     at + i * 4 * MIB) == 0,
		      "pthread_create");
	for (size_t i = 0; i < MOST; i++)
		pthread_join(threads[i], NULL);
}

/* --- files --- */

enum { FILE_BYTES = 16 * MIB, SMALL_BYTES = 32 * KIB };

static void make_file(void)
{
	char *at;

	file = memfd_create("case", 0);
	check(file >= 0 && ftruncate(file, FILE_BYTES) == 0, "a file");
	at = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file,
		  0);
	check(at != MAP_FAILED, "mmap");
	touch(at, FILE_BYTES);
	DROP(at, FILE_BYTES);
}

static void load_file(unsigned thread, unsigned n)
{
	char *at = GET(FILE_BYTES, PROT_READ | PROT_WRITE, MAP_POPULATE, file);

	check(at[(thread + n) * PAGE] == 1, "the file");
	DROP(at, FILE_BYTES);
}

static void map_small(void)
{
	for (unsigned n = 0; n < 4000; n++) {
		char *at = GET(SMALL_BYTES, PROT_READ, 0, file);

		for (size_t i = 0; i < SMALL_BYTES; i += PAGE)
			atomic_fetch_add(&sum, (unsigned)at[i]);
		DROP(at, SMALL_BYTES);
	}
}

static void fault(unsigned thread, unsigned n)
{
	static char *own[MOST];

	if (!own[thread])
		own[thread] = GET_MEMORY(16 * MIB);
	own[thread][n % 4096 * PAGE] = 1;
}

/* --- malloc --- */

static void serve(unsigned thread, unsigned n)
{
	size_t bytes = (256 + (thread + n) % 4 * 256) * (size_t)KIB;
	char *at = malloc(bytes);

	check(at != NULL, "malloc");
	touch(at, bytes);
	free(at);
	atomic_fetch_add(&sum, 1);
}

static void shred(unsigned thread, unsigned n)
{
	static char *kept[MOST][64];
	char **at = &kept[thread][n % 64];

	free(*at);
	*at = malloc(PAGE + n % 8 * KIB);
	check(*at != NULL, "malloc");
	touch(*at, PAGE);
	if (n % 64 == 0)
		pause_us(1000); /* or malloc_trim has no turn */
}

/* Leaves free pages between blocks that are in use. */
static void leave_holes(void)
{
	static char *kept[64];

	for (size_t i = 0; i < 64; i++) {
		free(kept[i]);
		kept[i] = malloc(64 * KIB);
		check(kept[i] != NULL, "malloc");
		touch(kept[i], 64 * KIB);
	}
	for (size_t i = 0; i < 64; i += 2) {
		free(kept[i]);
		kept[i] = NULL;
	}
}

static void trim_all(void)
{
	for (int i = 0; i < 20; i++) {
		leave_holes();
		pause_us(5000);
		check(malloc_trim(0) >= 0, "malloc_trim");
	}
}

/* --- forks --- */

static void fork_child(void)
{
	pid_t pid = fork();

	check(pid >= 0, "fork");
	if (pid == 0)
		_exit(0);
	check(waitpid(pid, NULL, 0) == pid, "waitpid");
}

static void fork_children(void)
{
	for (int i = 0; i < 20; i++)
		fork_child();
}

static void protect_own(unsigned thread, unsigned n)
{
	static char *own[MOST];

	if (!own[thread])
		own[thread] = GET(8 * MIB, PROT_READ | PROT_WRITE, 0, file);
	touch(own[thread] + PAGE + n % 8 * (MIB / 2), MIB / 2);
	PROTECT(own[thread], PAGE, n % 2 ? PROT_READ : PROT_READ | PROT_WRITE);
	own[thread][PAGE] = 1;
}

/* --- nothing to do with the lock --- */

static void protect_lengths(void)
{
	char *untouched = GET_MEMORY(64 * MIB), *used = GET_MEMORY(64 * MIB);

	touch(used, 64 * MIB);
	for (int i = 0; i < 40; i++) {
		int prot = i % 2 ? PROT_READ | PROT_WRITE : PROT_READ;

		PROTECT(untouched, 64 * MIB, prot);
		PROTECT(used, 64 * MIB, prot);
		PROTECT(used, PAGE, prot);
	}
}

static void one_area(void)
{
	area = GET_MEMORY((size_t)4 * 32 * MIB);
}

static void fill_before(void)
{
	one_area();
	check(madvise(area, (size_t)4 * 32 * MIB, ADVISE_POPULATE_WRITE) == 0,
	      "madvise");
}

static void touch_part(unsigned thread, unsigned n)
{
	touch(area + (thread * 32 + n) * (size_t)MIB, MIB);
}

static bool can_populate(void)
{
	char *at = GET_MEMORY(PAGE);

	return madvise(at, PAGE, ADVISE_POPULATE_WRITE) == 0;
}

static bool can_collapse(void)
{
	char *at = GET_MEMORY(4 * MIB);

	touch(at, 4 * MIB);
	return madvise(at, 4 * MIB, ADVISE_COLLAPSE) == 0;
}

static void collapse(void)
{
	for (int i = 0; i < 20; i++) {
		char *at = GET_MEMORY(8 * MIB);

		touch(at, 8 * MIB);
		/* Without memory to spare it may fail. */
		madvise(at, 8 * MIB, ADVISE_COLLAPSE);
		DROP(at, 8 * MIB);
	}
}

static void allocate_seldom(unsigned thread, unsigned n)
{
	char *at = GET_MEMORY(64 * KIB);

	touch(at, 64 * KIB);
	DROP(at, 64 * KIB);
	pause_us(2000);
	(void)thread, (void)n;
}

static void pause_and_unmap(unsigned thread, unsigned n)
{
	char *at = GET_MEMORY(PAGE);

	pause_us(5000);
	DROP(at, PAGE);
	pause_us(5000);
	(void)thread, (void)n;
}

static void share(void)
{
	int id = shmget(IPC_PRIVATE, MIB, 0600);
	char *at = id < 0 ? NULL : shmat(id, NULL, 0);

	check(at && at != (void *)-1, "shmat");
	shmctl(id, IPC_RMID, NULL);
	touch(at, MIB);
	shmdt(at);
}

static void call_others(unsigned thread, unsigned n)
{
	char *at = GET_MEMORY(2 * MIB);

	/* Without NUMA there is no such call; that is all the same here. */
	syscall(SYS_mbind, at, MIB, 0, NULL, 0, 0);
	touch(at, MIB);
	PROTECT(at, PAGE, PROT_READ);
	check(madvise(at, MIB, MADV_DONTNEED) == 0, "madvise");
	at = mremap(at, 2 * MIB, MIB, 0);
	check(at != MAP_FAILED, "mremap");
	DROP(at, MIB);
	share();
	(void)thread, (void)n;
}

/* --- all --- */

static const struct load loads[] = {
	{"scan", 8, 40, .before = fix_threshold, .loop = scan},
	{"scan-mutex", 8, 40, .before = with_mutex, .loop = scan},
	{"instance", 1, 20000, .loop = reserve},
	{"instances", 8, 400, .loop = reserve},
	{"queries", 16, 25, .loop = block},
	{"blocks", 4, 80, .loop = block},
	{"pool", 4, 4000, .loop = reuse},
	{"flip", 16, 400, .before = one_mapping, .loop = flip},
	{"flip-apart", 16, 400, .loop = flip_apart},
	{"flip-fixed", 16, 100, .before = one_mapping, .loop = flip_fixed},
	{"slices", SLICE_THREADS, SLICES / SLICE_THREADS, .before = cut,
	 .loop = release},
	{"burst", 4, .before = fill_spans, .loop = allocate,
	 .meanwhile = give_back},
	{"handed", 4, 100, .before = set_hands, .loop = hand},
	{"unmapped", 8, 100, .loop = unmap_own},
	{"starters", 0, .meanwhile = start_all},
	{"fill", 8, 3, .before = make_file, .loop = load_file},
	{"webapp", 8, 100, .loop = serve},
	{"trim", 8, .loop = shred, .meanwhile = trim_all},
	{"files", 1, .before = make_file, .loop = fault,
	 .meanwhile = map_small},
	{"forks", 8, .before = make_file, .loop = protect_own,
	 .meanwhile = fork_children},
	{"lengths", 0, .meanwhile = protect_lengths},
	{"apart", 4, 32, .before = one_area, .loop = touch_part},
	{"prefilled", 4, 32, .before = fill_before, .loop = touch_part,
	 .fits = can_populate},
	{"collapse", 4, .loop = allocate_seldom, .meanwhile = collapse,
	 .fits = can_collapse},
	{"pauses", 4, 30, .loop = pause_and_unmap},
	{"others", 4, 30, .loop = call_others},
};

static void *work(void *number)
{
	unsigned thread = (unsigned)(uintptr_t)number, n;

	pthread_barrier_wait(&all_there);
	for (n = 0; load->loops ? n < load->loops : !stop; n++)
		load->loop(thread, n);
	return NULL;
}

static void play(void)
{
	pthread_t threads[MOST];
	size_t i;

	if (load->before)
		load->before();
	pthread_barrier_init(&all_there, NULL, load->threads + 1);
	for (i = 0; i < load->threads; i++)
		check(pthread_create(&threads[i], NULL, work, (void *)i) == 0,
		      "pthread_create");
	pthread_barrier_wait(&all_there);
	if (load->meanwhile)
		load->meanwhile();
	stop = true;
	for (i = 0; i < load->threads; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(loads) / sizeof(*loads); i++)
		if (argc == 2 && !strcmp(argv[1], loads[i].name))
			load = &loads[i];
	if (!load)
		return 2;
	if (load->fits && !load->fits()) {
		puts("not here");
		return 0;
	}
	play();
	/* Where the threads did all there was to do, the same each time. */
	if (load->loops)
		printf("done %u\n", sum);
	else
		puts("done");
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * sys: raw system calls.
 *
 * Each returns what the kernel returns: a result, or -errno.  None touches
 * errno, is a cancellation point, or can be replaced by another library.
 */
#ifndef MMGATE_SYS_H
#define MMGATE_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#if defined(__x86_64__) && !defined(__ILP32__)

static inline long sys_call6(long nr, long a, long b, long c, long d, long e,
			     long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
			   "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static inline long sys_call3(long nr, long a, long b, long c)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return result;
}

static inline void sys_pause(void)
{
	__asm__ volatile("pause");
}

enum { SYS_MACHINE = 62 }; /* EM_X86_64 */

#elif defined(__aarch64__) && !defined(__ILP32__)

static inline long sys_call6(long nr, long a, long b, long c, long d, long e,
			     long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}

static inline long sys_call3(long nr, long a, long b, long c)
{
	return sys_call6(nr, a, b, c, 0, 0, 0);
}

static inline void sys_pause(void)
{
	__asm__ volatile("isb" ::: "memory");
}

enum { SYS_MACHINE = 183 }; /* EM_AARCH64 */

#else
#error "mmgate runs on 64-bit x86 and 64-bit ARM"
#endif

/* The largest page size that this architecture's kernels use. */
#if defined(__aarch64__)
enum { SYS_PAGE_MAX = 65536 };
#else
enum { SYS_PAGE_MAX = 4096 };
#endif

/* Is this result an error? */
static inline bool sys_failed(long result)
{
	return (unsigned long)result > -4096UL;
}

/* The wrapped calls. */

static inline long sys_mmap(const void *addr, size_t length, int prot,
			    int flags, int fd, long offset)
{
	return sys_call6(__NR_mmap, (long)addr, (long)length, prot, flags, fd,
			 offset);
}

static inline long sys_munmap(const void *addr, size_t length)
{
	return sys_call3(__NR_munmap, (long)addr, (long)length, 0);
}

static inline long sys_mprotect(const void *addr, size_t length, int prot)
{
	return sys_call3(__NR_mprotect, (long)addr, (long)length, prot);
}

static inline long sys_madvise(const void *addr, size_t length, int advice)
{
	return sys_call3(__NR_madvise, (long)addr, (long)length, advice);
}

static inline long sys_mremap(const void *addr, size_t old_length,
			      size_t new_length, int flags,
			      const void *new_addr)
{
	return sys_call6(__NR_mremap, (long)addr, (long)old_length,
			 (long)new_length, flags, (long)new_addr, 0);
}

static inline long sys_pkey_mprotect(const void *addr, size_t length, int prot,
				     int key)
{
	return sys_call6(__NR_pkey_mprotect, (long)addr, (long)length, prot,
			 key, 0, 0);
}

/* What the library needs for itself. */

/* Which file: the first words of the kernel's struct stat, on both CPUs. */
struct sys_file {
	uint64_t device, inode;
	uint64_t rest[16];
};

static inline uint64_t sys_links(const struct sys_file *file)
{
#if defined(__aarch64__)
	return file->rest[0] >> 32; /* behind the mode */
#else
	return file->rest[0];
#endif
}

static inline uint64_t sys_bytes(const struct sys_file *file)
{
	return file->rest[4];
}

/* Unix ns. */
static inline uint64_t sys_modified(const struct sys_file *file)
{
	return file->rest[9] * 1000000000 + file->rest[10];
}

static inline long sys_fstat(int fd, struct sys_file *file)
{
	return sys_call3(__NR_fstat, fd, (long)file, 0);
}

static inline long sys_stat(const char *path, struct sys_file *file)
{
	enum { AT_CWD = -100 };

	return sys_call6(__NR_newfstatat, AT_CWD, (long)path, (long)file, 0, 0,
			 0);
}

/* The number of the file system that `path` is on, 0 when there is no telling.
 */
static inline uint32_t sys_file_system(const char *path)
{
	uint64_t about[32] = {0}; /* struct statfs; its type comes first */

	return sys_call3(__NR_statfs, (long)path, (long)about, 0) == 0
		       ? (uint32_t)about[0]
		       : 0;
}

struct sys_timespec {
	int64_t seconds;
	int64_t ns;
};

struct sys_rlimit {
	uint64_t soft, hard;
};

/* Waits while *word is `seen`; `timeout` is relative. */
static inline long sys_futex_wait(const void *word, uint32_t seen,
				  const struct sys_timespec *timeout)
{
	enum { FUTEX_WAIT_PRIVATE = 0 | 128 };

	return sys_call6(__NR_futex, (long)word, FUTEX_WAIT_PRIVATE, seen,
			 (long)timeout, 0, 0);
}

static inline long sys_futex_wake(const void *word, int count)
{
	enum { FUTEX_WAKE_PRIVATE = 1 | 128 };

	return sys_call3(__NR_futex, (long)word, FUTEX_WAKE_PRIVATE, count);
}

static inline uint32_t sys_gettid(void)
{
	return (uint32_t)sys_call3(__NR_gettid, 0, 0, 0);
}

static inline uint32_t sys_getpid(void)
{
	return (uint32_t)sys_call3(__NR_getpid, 0, 0, 0);
}

static inline uint32_t sys_getppid(void)
{
	return (uint32_t)sys_call3(__NR_getppid, 0, 0, 0);
}

static inline long sys_openat(int dir, const char *path, int flags, int mode)
{
	return sys_call6(__NR_openat, dir, (long)path, flags, mode, 0, 0);
}

static inline long sys_close(int fd)
{
	return sys_call3(__NR_close, fd, 0, 0);
}

static inline long sys_read(int fd, void *buffer, size_t size)
{
	return sys_call3(__NR_read, fd, (long)buffer, (long)size);
}

static inline long sys_write(int fd, const void *buffer, size_t size)
{
	return sys_call3(__NR_write, fd, (long)buffer, (long)size);
}

static inline long sys_pwrite(int fd, const void *buffer, size_t size,
			      uint64_t at)
{
	return sys_call6(__NR_pwrite64, fd, (long)buffer, (long)size, (long)at,
			 0, 0);
}

static inline long sys_ftruncate(int fd, uint64_t size)
{
	return sys_call3(__NR_ftruncate, fd, (long)size, 0);
}

static inline long sys_fallocate(int fd, int mode, uint64_t from, uint64_t size)
{
	return sys_call6(__NR_fallocate, fd, mode, (long)from, (long)size, 0,
			 0);
}

static inline long sys_unlinkat(int dir, const char *path)
{
	return sys_call3(__NR_unlinkat, dir, (long)path, 0);
}

static inline long sys_readlink(const char *path, char *buffer, size_t size)
{
	enum { AT_CWD = -100 };

	return sys_call6(__NR_readlinkat, AT_CWD, (long)path, (long)buffer,
			 (long)size, 0, 0);
}

static inline long sys_getrlimit(int which, struct sys_rlimit *limit)
{
	return sys_call6(__NR_prlimit64, 0, which, 0, (long)limit, 0, 0);
}

static inline long sys_prctl(int what, unsigned long argument)
{
	return sys_call3(__NR_prctl, what, (long)argument, 0);
}

static inline long sys_clock_gettime(int clock, struct sys_timespec *now)
{
	return sys_call3(__NR_clock_gettime, clock, (long)now, 0);
}

/* Bytes of the CPU mask written, or -errno. */
static inline long sys_sched_getaffinity(void *mask, size_t size)
{
	return sys_call3(__NR_sched_getaffinity, 0, (long)size, (long)mask);
}

static inline long sys_capget(void *header, void *data)
{
	return sys_call3(__NR_capget, (long)header, (long)data, 0);
}

#endif

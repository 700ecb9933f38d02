/* SPDX-License-Identifier: MIT */
/*
 * held MODE [SECONDS]: one call is held in the kernel, by a seccomp filter that
 * reports it to this program's watcher and waits for an answer.
 *
 * A child is killed in its call; then all threads map, and one for SECONDS:
 *   vfork, clone  the child shares memory (clone: and runs beside its parent)
 *   fork, spawn   it does not (spawn: and is a program of its own)
 *   waiter        a vfork child is killed while a thread of its parent is in
 *                 a call, so that it may be waiting for that one to end
 *
 * A thread is held, another of its process maps, then the first is let go:
 *   self, forked, executed  in this process, its child, a program it starts
 *
 * Ends with "MODE: good", the same with and without a gate.  77: no filters.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	THREADS = 4,
	LOOPS = 50,
	BYTES = 64 * 1024,
	HELD_LENGTH = 12345, /* nobody else protects an odd length */
	STACK_BYTES = 64 * 1024,
	PATIENCE_S = 60,
};

extern char **environ;

/* Modes of the programs that it starts. */
static char call[] = "call", contend_mode[] = "contend";

static int listener;
static int go[2], done[2]; /* pipes: the call is held, the other has mapped */
static char *page;
static atomic_int failures, waiter;

static void expect(int good, const char *what)
{
	if (good)
		return;
	atomic_fetch_add(&failures, 1);
	fprintf(stderr, "held: %s: %s\n", what, strerror(errno));
}

static void map_once(void)
{
	char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		_exit(3);
	*at = 1;
	if (munmap(at, BYTES) != 0)
		_exit(4);
}

static int held_call(void)
{
	return mprotect(page, HELD_LENGTH, PROT_READ);
}

static void *hold(void *unused)
{
	expect(held_call() == 0, "mprotect");
	return unused;
}

static void tell(int fd)
{
	expect(write(fd, "", 1) == 1, "write");
}

static void hear(int fd)
{
	char c;

	expect(read(fd, &c, 1) == 1, "read");
}

/* --- the watcher --- */

static void install_filter(void)
{
	const unsigned length = offsetof(struct seccomp_data, args[1]);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, length),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, HELD_LENGTH, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	if (listener == -1)
		exit(77);
	fcntl(listener, F_SETFD, FD_CLOEXEC);
}

static struct seccomp_notif wait_for_call(void)
{
	struct seccomp_notif held;

	do
		memset(&held, 0, sizeof(held));
	while (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &held) == -1 &&
	       errno == EINTR);
	return held;
}

static void let_go(const struct seccomp_notif *held)
{
	struct seccomp_notif_resp answer = {
		.id = held->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};

	expect(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) == 0,
	       "answer");
}

static void *watch_and_kill(void *unused)
{
	struct seccomp_notif held = wait_for_call();

	expect(kill((pid_t)held.pid, SIGKILL) == 0, "kill");
	return unused;
}

static void *watch_and_let_go(void *unused)
{
	struct seccomp_notif held = wait_for_call();

	tell(go[1]);
	hear(done[0]);
	let_go(&held);
	return unused;
}

static int is_asleep(pid_t pid)
{
	char path[64], stat[512] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return 1;
	expect(read(fd, stat, sizeof(stat) - 1) > 0, "stat");
	close(fd);
	return strchr(stat, ')') == NULL || strchr("SZ", strchr(stat, ')')[2]);
}

/* Kills the vfork child where it sleeps, or finds it gone. */
static void *watch_the_waiter(void *unused)
{
	struct seccomp_notif held = wait_for_call();

	tell(go[1]);
	while (atomic_load(&waiter) == 0 || !is_asleep(atomic_load(&waiter)))
		sched_yield();
	kill(atomic_load(&waiter), SIGKILL);
	hear(done[0]);
	let_go(&held);
	return unused;
}

/* --- the children that are killed --- */

static int child(void *unused)
{
	(void)unused;
	held_call();
	_exit(5); /* not reached */
}

static __attribute__((noinline)) pid_t start_vfork(void)
{
	pid_t pid = vfork();

	if (pid == 0)
		child(NULL);
	return pid;
}

static pid_t start_clone(void)
{
	static char stack[STACK_BYTES] __attribute__((aligned(16)));

	return clone(child, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
}

static pid_t start_program(char *mode)
{
	char name[] = "held", *words[] = {name, mode, NULL};
	pid_t pid;

	return posix_spawn(&pid, "/proc/self/exe", NULL, NULL, words,
			   environ) == 0
		       ? pid
		       : -1;
}

static __attribute__((noinline)) pid_t start_waiter(void)
{
	pid_t pid;

	hear(go[0]);
	pid = vfork();
	if (pid == 0) {
		atomic_store(&waiter, getpid());
		map_once();
		_exit(0);
	}
	tell(done[1]);
	return pid;
}

static pid_t start(const char *mode)
{
	pid_t pid;

	if (strcmp(mode, "vfork") == 0)
		return start_vfork();
	if (strcmp(mode, "clone") == 0)
		return start_clone();
	if (strcmp(mode, "spawn") == 0)
		return start_program(call);
	if (strcmp(mode, "waiter") == 0)
		return start_waiter();
	pid = fork();
	if (pid == 0)
		child(NULL);
	return pid;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *map_loops(void *unused)
{
	for (int i = 0; i < LOOPS; i++)
		map_once();
	return unused;
}

static void map_in_threads(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, map_loops, NULL);
	map_loops(NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* Alone, so that no wait is long. */
static void map_for(double seconds)
{
	double end = now_s() + seconds;

	do
		map_once();
	while (now_s() < end);
}

static void kill_one(const char *mode, double seconds)
{
	int waits = strcmp(mode, "waiter") == 0, status = 0;
	pthread_t watcher, holder;
	pid_t pid;

	pthread_create(&watcher, NULL,
		       waits ? watch_the_waiter : watch_and_kill, NULL);
	if (waits)
		pthread_create(&holder, NULL, hold, NULL);
	pid = start(mode);
	expect(pid > 0 && waitpid(pid, &status, 0) == pid, "waitpid");
	expect(WIFSIGNALED(status) || (waits && status == 0), "its status");
	pthread_join(watcher, NULL);
	if (waits)
		pthread_join(holder, NULL);
	map_in_threads();
	map_for(seconds);
}

/* --- the thread that is let go --- */

static void contend(void)
{
	pthread_t holder;

	alarm(PATIENCE_S);
	pthread_create(&holder, NULL, hold, NULL);
	hear(go[0]);
	map_once();
	tell(done[1]);
	pthread_join(holder, NULL);
}

static void contend_in(const char *mode)
{
	pthread_t watcher;
	int status = 0;
	pid_t pid = 0;

	pthread_create(&watcher, NULL, watch_and_let_go, NULL);
	if (strcmp(mode, "self") == 0) {
		contend();
	} else {
		pid = *mode == 'e' ? start_program(contend_mode) : fork();
		if (pid == 0) {
			contend();
			_exit(failures != 0);
		}
		expect(waitpid(pid, &status, 0) == pid && status == 0, "child");
	}
	pthread_join(watcher, NULL);
}

/* In the program that is started: with these descriptors, by number. */
enum { GO = 100, DONE = 110 };

static void make_pipe(int fd[2], int number)
{
	expect(pipe(fd) == 0 && dup2(fd[0], number) == number &&
		       dup2(fd[1], number + 1) == number + 1,
	       "pipe");
	fd[0] = number;
	fd[1] = number + 1;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	page = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (strcmp(mode, call) == 0)
		return child(NULL);
	if (strcmp(mode, contend_mode) == 0) {
		go[0] = GO;
		done[1] = DONE + 1;
		contend();
		return failures != 0;
	}
	make_pipe(go, GO);
	make_pipe(done, DONE);
	install_filter();
	alarm(PATIENCE_S);
	if (strcmp(mode, "self") == 0 || strcmp(mode, "forked") == 0 ||
	    strcmp(mode, "executed") == 0)
		contend_in(mode);
	else
		kill_one(mode, argc > 2 ? atof(argv[2]) : 0);
	printf("%s: %s\n", mode, failures == 0 ? "good" : "bad");
	return failures != 0;
}

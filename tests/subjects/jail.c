/* SPDX-License-Identifier: MIT */
/*
 * jail HOW ROOT PROGRAM ARG...: maps, goes where it does not see its files any
 * more, maps, forks a child that maps, and executes PROGRAM there.
 *
 *   chroot  to ROOT
 *   pivot   to ROOT, in a mount namespace in which the old root is unmounted
 *   drop    (ROOT unused) to user and group 65534
 */
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 16 * 1024, LOOPS = 100, NOBODY = 65534 };

static void expect(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(77);
}

static void map_loops(void)
{
	for (int i = 0; i < LOOPS; i++) {
		void *at = mmap(NULL, BYTES, PROT_READ,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (at == MAP_FAILED || munmap(at, BYTES) != 0)
			_exit(3);
	}
}

static void change_root(const char *root)
{
	expect(chroot(root) == 0 && chdir("/") == 0, "chroot");
}

static void pivot(const char *root)
{
	expect(unshare(CLONE_NEWNS) == 0, "unshare");
	expect(mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private");
	expect(mount(root, root, NULL, MS_BIND, NULL) == 0, "bind");
	expect(chdir(root) == 0, root);
	expect(syscall(SYS_pivot_root, ".", ".") == 0, "pivot_root");
	expect(umount2(".", MNT_DETACH) == 0 && chdir("/") == 0, "umount");
}

static void drop(void)
{
	expect(setgroups(0, NULL) == 0 &&
		       setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
		       setresuid(NOBODY, NOBODY, NOBODY) == 0,
	       "setresuid");
}

static void go(const char *how, const char *root)
{
	if (strcmp(how, "chroot") == 0)
		change_root(root);
	else if (strcmp(how, "pivot") == 0)
		pivot(root);
	else
		drop();
}

static void map_in_child(void)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		map_loops();
		_exit(0);
	}
	expect(waitpid(pid, &status, 0) == pid && status == 0, "child");
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	map_loops();
	go(argv[1], argv[2]);
	map_loops();
	map_in_child();
	printf("%s: mapped\n", argv[1]);
	fflush(stdout);
	execv(argv[3], argv + 3);
	perror(argv[3]);
	return 1;
}

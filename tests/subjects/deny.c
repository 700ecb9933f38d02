/* SPDX-License-Identifier: MIT */
/*
 * deny WHAT[,WHAT...] CMD ARG...: runs CMD where something is forbidden:
 *
 *   mdwe  no memory becomes executable (PR_SET_MDWE)
 *   exec  mprotect with PROT_EXEC fails (a seccomp filter)
 *   proc  /proc is empty; needs root
 *
 * Exits with 77 when this kernel or this user cannot forbid it.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CANNOT = 77, SET_MDWE = 65, REFUSE_EXEC_GAIN = 1 };

static int deny_mdwe(void)
{
	return prctl(SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0);
}

static int deny_exec(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static int deny_proc(void)
{
	if (unshare(CLONE_NEWNS) != 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return -1;
	return mount("none", "/proc", "tmpfs", 0, NULL);
}

static const struct {
	const char *name;
	int (*deny)(void);
} things[] = {{"mdwe", deny_mdwe}, {"exec", deny_exec}, {"proc", deny_proc}};

static void deny(const char *name)
{
	for (size_t i = 0; i < sizeof(things) / sizeof(things[0]); i++) {
		if (strcmp(things[i].name, name) != 0)
			continue;
		if (things[i].deny() == 0)
			return;
		fprintf(stderr, "deny: %s: %s\n", name, strerror(errno));
		exit(CANNOT);
	}
	fprintf(stderr, "deny: unknown: %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	for (char *name = strtok(argv[1], ","); name != NULL;
	     name = strtok(NULL, ","))
		deny(name);
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}

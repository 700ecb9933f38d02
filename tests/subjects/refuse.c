/* SPDX-License-Identifier: MIT */
/*
 * deny WHAT... -- CMD...: runs CMD on a poorer system, where WHAT fails as it
 * does there:
 *
 *   populate   madvise(MADV_POPULATE_*), EINVAL: Linux before 5.14
 *   wipe       madvise(MADV_WIPEONFORK), EINVAL: Linux before 4.14
 *   fallocate  EOPNOTSUPP: network file systems
 *   statx      ENOSYS: Linux before 4.11, old containers
 *   protect    mprotect with PROT_EXEC, EACCES: hardened systems
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

enum { MADV_FIRST_POPULATE = 22, MADV_LAST_POPULATE = 23 };

/* The call `nr` fails when its third argument, cut to `mask`, is in a range. */
static const struct rule {
	const char *name;
	uint32_t nr, mask, from, to, error;
} rules[] = {
	{"populate", SYS_madvise, UINT32_MAX, MADV_FIRST_POPULATE,
	 MADV_LAST_POPULATE, EINVAL},
	{"wipe", SYS_madvise, UINT32_MAX, MADV_WIPEONFORK, MADV_WIPEONFORK,
	 EINVAL},
	{"fallocate", SYS_fallocate, 0, 0, 0, EOPNOTSUPP},
	{"statx", SYS_statx, 0, 0, 0, ENOSYS},
	{"protect", SYS_mprotect, PROT_EXEC, PROT_EXEC, PROT_EXEC, EACCES},
};

static const struct rule *find(const char *name)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (strcmp(rules[i].name, name) == 0)
			return &rules[i];
	return NULL;
}

static int install(const struct rule *rule)
{
	const uint32_t third = offsetof(struct seccomp_data, args[2]);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rule->nr, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, third),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, rule->mask),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, rule->from, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, rule->to, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | rule->error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(code) / sizeof(code[0]),
					   code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0;
}

int main(int argc, char **argv)
{
	int i = 1;

	for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const struct rule *rule = find(argv[i]);

		if (rule == NULL) {
			fprintf(stderr, "refuse: nothing is named %s\n",
				argv[i]);
			return 2;
		}
		if (install(rule)) {
			perror("refuse: seccomp");
			return 77;
		}
	}
	if (i + 1 >= argc) {
		fprintf(stderr, "usage: refuse WHAT... -- CMD...\n");
		return 2;
	}
	execvp(argv[i + 1], argv + i + 1);
	perror(argv[i + 1]);
	return 127;
}

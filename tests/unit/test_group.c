/* SPDX-License-Identifier: MIT */
/* Who is alive in a process group, whatever it calls itself. */
#include "../../tools/group.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void in_group(pid_t group, int ready)
{
	setpgid(0, group);
	prctl(PR_SET_NAME, ") Z 1 1 (");
	if (write(ready, "", 1) == 1)
		pause();
	_exit(1);
}

/* pre: `group` is 0, or lives. */
static pid_t start(pid_t group)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe(ready) != 0)
		return -1;
	pid = fork();
	if (pid == 0)
		in_group(group, ready[1]);
	close(ready[1]);
	check_int(1, read(ready[0], &byte, 1), "a process is in its group");
	close(ready[0]);
	return pid;
}

/* Leaves a zombie. */
static void end(pid_t pid)
{
	siginfo_t info;

	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
}

static pid_t session;

/* Its child goes to a session of its own, and it ends. */
static void leave(int ready)
{
	if (fork() == 0) {
		setsid();
		if (write(ready, "", 1) == 1)
			pause();
		_exit(1);
	}
	_exit(0);
}

static bool is_ours(const struct group_member *member, void *count)
{
	if (member->parent == getpid()) {
		session = member->pid;
		(*(int *)count)++;
	}
	return false;
}

/* One that left its group and lost its parent. */
static void test_adopted(void)
{
	struct group all = {.all = true};
	int ready[2], count = 0;
	char byte;

	check_true(group_adopt(), "without a child, what is lost is ours");
	if (pipe(ready) != 0)
		return;
	all.leader = fork();
	if (all.leader == 0)
		leave(ready[1]);
	check_true(!group_adopt(), "who has a child may have any");
	waitpid(all.leader, NULL, 0);
	check_int(1, read(ready[0], &byte, 1), "it is in its session");
	check_true(!group_alive((struct group){.leader = all.leader}, NULL),
		   "nothing is left in the group");
	check_true(group_alive(all, NULL), "but it descends from us");
	group_any(all, is_ours, &count);
	check_int(1, count, "and is our child now");
	end(session);
	check_true(!group_alive(all, NULL), "until it has ended");
	waitpid(session, NULL, 0);
	check_true(!group_alive(all, NULL), "and was looked at");
}

static void test_group(void)
{
	pid_t first = start(0), second = start(first);
	const struct group only = {.leader = first};
	char name[GROUP_NAME] = "";

	check_true(group_alive(only, NULL), "both are alive");
	end(first);
	check_true(group_alive(only, name), "the second still is");
	check_text(") Z 1 1 (", name, "its name");
	end(second);
	check_true(!group_alive(only, NULL), "zombies are not");
	waitpid(first, NULL, 0);
	waitpid(second, NULL, 0);
	check_true(!group_alive(only, NULL), "who is gone is not");
}

int main(void)
{
	test_group();
	test_adopted();
	return check_done();
}

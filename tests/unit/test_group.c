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

int main(void)
{
	pid_t first = start(0), second = start(first);
	char name[GROUP_NAME] = "";

	check_true(group_alive(first, NULL), "both are alive");
	end(first);
	check_true(group_alive(first, name), "the second still is");
	check_text(") Z 1 1 (", name, "its name");
	end(second);
	check_true(!group_alive(first, NULL), "zombies are not");
	waitpid(first, NULL, 0);
	waitpid(second, NULL, 0);
	check_true(!group_alive(first, NULL), "who is gone is not");
	return check_done();
}

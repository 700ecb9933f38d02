/* SPDX-License-Identifier: MIT */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "die.h"

#define LIBRARY "libmmgate.so"

void launch_fill_descriptors(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) == -1 &&
		    open("/dev/null", O_RDWR | O_CLOEXEC) == -1)
			_exit(EXIT_USAGE);
}

char *launch_own_path(void)
{
	/* Without /proc, by the name we were started with. */
	char *path = realpath("/proc/self/exe", NULL);
	unsigned long name = getauxval(AT_EXECFN);

	if (path == NULL && name != 0)
		path = realpath((const char *)name, NULL);
	return path;
}

/* In the build directory, or as installed. */
static char *find_library(const char *directory)
{
	static const char *const places[] = {
		"/" LIBRARY, "/../lib/mmgate/" LIBRARY, "/../lib/" LIBRARY};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char *name = xasprintf("%s%s", directory, places[i]);
		char *path = realpath(name, NULL);

		free(name);
		if (path != NULL)
			return path;
	}
	return NULL;
}

char *launch_library(char why[512])
{
	char *own = launch_own_path(), *library;

	if (own == NULL) {
		snprintf(why, 512, "cannot tell where mmgate itself lies: %s",
			 strerror(errno));
		return NULL;
	}
	library = find_library(dirname(own));
	if (library == NULL) {
		snprintf(why, 512,
			 LIBRARY " is neither in %s nor in ../lib/mmgate or "
				 "../lib beside it; build or install it there",
			 own);
	} else if (strpbrk(library, " :$") != NULL) {
		snprintf(why, 512,
			 "%s: a library path with a space, colon or dollar "
			 "cannot be preloaded; move it",
			 library);
		free(library);
		library = NULL;
	}
	free(own);
	return library;
}

static bool is_runtime(const char *entry, size_t len)
{
	static const char *const globs[] = {"lib*san.so*", "*/lib*san.so*",
					    "libclang_rt.*", "*/libclang_rt.*"};
	char *name = xasprintf("%.*s", (int)len, entry);
	bool found = false;

	for (size_t i = 0; i < sizeof(globs) / sizeof(globs[0]); i++)
		found |= text_glob(globs[i], text_len(globs[i]), name);
	free(name);
	return found;
}

/* Is the entry in the list already? */
static bool listed(const char *list, const char *entry, size_t len)
{
	for (; *list != '\0'; list += strspn(list, ": ")) {
		size_t n = strcspn(list, ": ");

		if (n == len && strncmp(list, entry, len) == 0)
			return true;
		list += n;
	}
	return false;
}

/* Adds the entries of `from` that are runtimes, or those that are not. */
static char *append(char *list, const char *from, bool runtimes)
{
	for (from += strspn(from, ": "); *from != '\0';
	     from += strspn(from, ": ")) {
		size_t len = strcspn(from, ": ");

		if (is_runtime(from, len) == runtimes &&
		    !listed(list, from, len)) {
			char *longer = xasprintf("%s%s%.*s", list,
						 *list != '\0' ? ":" : "",
						 (int)len, from);

			free(list);
			list = longer;
		}
		from += len;
	}
	return list;
}

char *launch_preload(const char *library, const char *runtimes,
		     const char *inherited)
{
	char *list = xstrdup("");

	if (inherited == NULL)
		inherited = "";
	list = append(list, inherited, true);
	list = append(list, runtimes, true);
	list = append(list, library, false);
	return append(list, inherited, false);
}

char **launch_variables(const struct opts_settings *settings,
			const char *preload)
{
	char **variables = xcalloc(knob_count() + 2, sizeof(*variables));
	size_t n = 0;

	for (size_t i = 0; i < knob_count(); i++)
		if (settings->given[i].value != NULL)
			variables[n++] =
				xasprintf("%s=%s", knob_at(i)->variable,
					  settings->given[i].value);
	variables[n] = xasprintf("LD_PRELOAD=%s", preload);
	return variables;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* All but those that a fault of our own would raise. */
static void hold_signals(struct launch *launch)
{
	static const int faults[] = {SIGSEGV, SIGBUS,  SIGFPE,
				     SIGILL,  SIGTRAP, SIGSYS};
	const struct sigaction standard = {.sa_handler = SIG_DFL};
	sigset_t held;

	sigfillset(&held);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&held, faults[i]);
	sigprocmask(SIG_BLOCK, &held, &launch->mask);
	/* An ignored SIGCHLD would take the status away from us. */
	sigaction(SIGCHLD, &standard, &launch->child_action);
}

static void restore_signals(const struct launch *launch)
{
	sigaction(SIGCHLD, &launch->child_action, NULL);
	sigprocmask(SIG_SETMASK, &launch->mask, NULL);
}

void launch_ignore_size(struct launch *launch)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	launch->size_ignored =
		sigaction(SIGXFSZ, &ignore, &launch->size_action) == 0;
}

static void set_variables(char **variables)
{
	char started[32];

	for (; *variables != NULL; variables++)
		putenv(*variables);
	snprintf(started, sizeof(started), "%d", (int)getpid());
	setenv(OPTS_STARTED, started, 1);
}

static _Noreturn void become(const struct launch *launch, int report)
{
	int error;

	set_variables(launch->variables);
	restore_signals(launch);
	if (launch->size_ignored)
		sigaction(SIGXFSZ, &launch->size_action, NULL);
	execvp(launch->path, launch->argv);
	error = errno;
	while (write(report, &error, sizeof(error)) == -1 && errno == EINTR)
		;
	_exit(EXIT_NOT_RUN);
}

/* Nothing comes through the pipe when the exec closed it. */
static int exec_error(int report)
{
	int error = 0;
	ssize_t n;

	do
		n = read(report, &error, sizeof(error));
	while (n == -1 && errno == EINTR);
	return n == (ssize_t)sizeof(error) ? error : 0;
}

int launch_start(struct launch *launch)
{
	int pipe_fd[2], error;

	if (pipe2(pipe_fd, O_CLOEXEC) == -1)
		return errno;
	hold_signals(launch);
	launch->started_ns = now_ns();
	launch->pid = fork();
	if (launch->pid == 0)
		become(launch, pipe_fd[1]);
	error = launch->pid == -1 ? errno : 0;
	close(pipe_fd[1]);
	if (error == 0) {
		error = exec_error(pipe_fd[0]);
		if (error != 0)
			waitpid(launch->pid, NULL, 0);
	}
	close(pipe_fd[0]);
	if (error != 0)
		restore_signals(launch);
	return error;
}

static bool is_stop(int number)
{
	return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

/* The kernel sends these to everybody at the terminal. */
static bool from_terminal(const siginfo_t *info)
{
	int s = info->si_signo;

	return info->si_code > 0 &&
	       (is_stop(s) || s == SIGINT || s == SIGQUIT || s == SIGHUP ||
		s == SIGWINCH || s == SIGCONT);
}

static void pass_on(pid_t pid, const siginfo_t *info)
{
	/* The kernel's SIGPIPE for a write of ours is our own business. */
	if (from_terminal(info) || info->si_pid == getpid())
		return;
	if (info->si_code == SI_QUEUE)
		sigqueue(pid, info->si_signo, info->si_value);
	else
		kill(pid, info->si_signo);
}

/* Where a launch stands with job control: we stop when we were asked to and
 * the program did. */
struct job {
	bool asked, stopped;
};

static void stop_with(pid_t pid, struct job *job)
{
	if (!job->asked || !job->stopped)
		return;
	*job = (struct job){0};
	raise(SIGSTOP); /* returns when somebody continues us */
	kill(pid, SIGCONT);
}

/* True when it has ended. */
static bool reap(struct launch *launch, struct job *job)
{
	int status;

	while (wait4(launch->pid, &status, WNOHANG | WUNTRACED | WCONTINUED,
		     &launch->usage) == launch->pid) {
		if (WIFSTOPPED(status)) {
			job->stopped = true;
		} else if (WIFCONTINUED(status)) {
			job->stopped = false;
		} else {
			launch->status = status;
			return true;
		}
	}
	return false;
}

static void take_signal(struct launch *launch, const siginfo_t *info,
			struct job *job)
{
	if (is_stop(info->si_signo))
		job->asked = true;
	else if (info->si_signo == SIGCONT)
		job->asked = false;
	pass_on(launch->pid, info);
}

/* What came for a program that has just gone is not for us. */
static void drop_pending(const sigset_t *held)
{
	const struct timespec now = {0};

	while (sigtimedwait(held, NULL, &now) > 0)
		;
}

void launch_wait(struct launch *launch)
{
	struct job job = {0};
	siginfo_t info;
	sigset_t held;

	sigprocmask(SIG_SETMASK, NULL, &held);
	while (!reap(launch, &job)) {
		stop_with(launch->pid, &job);
		if (sigwaitinfo(&held, &info) > 0 && info.si_signo != SIGCHLD)
			take_signal(launch, &info, &job);
	}
	launch->wall_ns = now_ns() - launch->started_ns;
	drop_pending(&held);
	restore_signals(launch);
}

int launch_exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status)
				   : WEXITSTATUS(status);
}

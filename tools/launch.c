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

static bool is_library(const char *entry, size_t len)
{
	const size_t name = sizeof(LIBRARY) - 1;

	return len >= name && strncmp(entry + len - name, LIBRARY, name) == 0 &&
	       (len == name || entry[len - name - 1] == '/');
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

static bool is_other(const char *entry, size_t len)
{
	return !is_runtime(entry, len);
}

static bool is_foreign(const char *entry, size_t len)
{
	return !is_library(entry, len);
}

/* Adds the entries of `from` that are wanted, and not there. */
static char *append(char *list, const char *from,
		    bool (*wanted)(const char *entry, size_t len))
{
	for (from += strspn(from, ": "); *from != '\0';
	     from += strspn(from, ": ")) {
		size_t len = strcspn(from, ": ");

		if (wanted(from, len) && !listed(list, from, len)) {
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

char *launch_preload_without(const char *inherited)
{
	return append(xstrdup(""), inherited != NULL ? inherited : "",
		      is_foreign);
}

char *launch_preload(const char *library, const char *runtimes,
		     const char *inherited)
{
	char *list = xstrdup("");

	if (inherited == NULL)
		inherited = "";
	list = append(list, inherited, is_runtime);
	list = append(list, runtimes, is_runtime);
	list = append(list, library, is_other);
	return append(list, inherited, is_other);
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

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
				 .tv_nsec = (long)(ns % 1000000000)};
}

void launch_hold(struct launch_signals *signals)
{
	static const int faults[] = {SIGSEGV, SIGBUS,  SIGFPE,
				     SIGILL,  SIGTRAP, SIGSYS};
	const struct sigaction standard = {.sa_handler = SIG_DFL};
	sigset_t held;

	sigfillset(&held);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&held, faults[i]);
	sigprocmask(SIG_BLOCK, &held, &signals->mask);
	/* An ignored SIGCHLD would take the status away from us. */
	sigaction(SIGCHLD, &standard, &signals->child_action);
}

void launch_release(const struct launch_signals *signals)
{
	sigaction(SIGCHLD, &signals->child_action, NULL);
	sigprocmask(SIG_SETMASK, &signals->mask, NULL);
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

/* 0, or an errno. */
static int set_up(const struct launch *launch)
{
	set_variables(launch->variables);
	if (launch->held != NULL)
		setpgid(0, 0);
	for (int fd = 0; launch->files != NULL && fd < 3; fd++)
		if (dup2(launch->files[fd], fd) == -1)
			return errno;
	if (launch->cpus != NULL &&
	    sched_setaffinity(0, sizeof(*launch->cpus), launch->cpus) != 0)
		return errno;
	return 0;
}

static _Noreturn void become(const struct launch *launch, int report)
{
	int error = set_up(launch);

	launch_release(launch->held != NULL ? launch->held : &launch->signals);
	if (launch->size_ignored)
		sigaction(SIGXFSZ, &launch->size_action, NULL);
	if (error == 0) {
		execvp(launch->path, launch->argv);
		error = errno;
	}
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
	if (launch->held == NULL)
		launch_hold(&launch->signals);
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
	if (error != 0 && launch->held == NULL)
		launch_release(&launch->signals);
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
	int stop_signal;
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
			job->stop_signal = WSTOPSIG(status);
		} else if (WIFCONTINUED(status)) {
			job->stopped = false;
		} else {
			launch->status = status;
			launch->ended = true;
			return true;
		}
	}
	return launch->ended;
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

/* Waits for a signal, and ticks meanwhile.  As sigwaitinfo(). */
static int wait_signal(struct launch *launch, const sigset_t *held,
		       siginfo_t *info, uint64_t *next)
{
	struct timespec left;
	uint64_t now = now_ns(), wait;

	if (launch->tick == NULL)
		return sigwaitinfo(held, info);
	wait = *next > now ? *next - now : 0;
	left = timespec_of(wait);
	if (wait > 0)
		return sigtimedwait(held, info, &left);
	launch->tick_ns = launch->tick(launch->tick_context);
	*next = now_ns() + launch->tick_ns;
	return 0;
}

void launch_wait(struct launch *launch)
{
	uint64_t next = launch->started_ns + launch->tick_ns;
	struct job job = {0};
	siginfo_t info;
	sigset_t held;

	sigprocmask(SIG_SETMASK, NULL, &held);
	while (!reap(launch, &job)) {
		stop_with(launch->pid, &job);
		if (wait_signal(launch, &held, &info, &next) > 0 &&
		    info.si_signo != SIGCHLD)
			take_signal(launch, &info, &job);
	}
	launch->wall_ns = now_ns() - launch->started_ns;
	drop_pending(&held);
	launch_release(&launch->signals);
}

/* --- watched --- */

enum { PATIENCE_S = 2 }; /* from the gentle signal to the one by force */

/* A signal that is held back comes all the same. */
static bool is_ignored(int number)
{
	struct sigaction now;

	return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static sigset_t ending_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!is_ignored(numbers[i]))
			sigaddset(&set, numbers[i]);
	return set;
}

int launch_asked(void)
{
	const sigset_t ending = ending_signals();
	const struct timespec now = {0};
	int number = sigtimedwait(&ending, NULL, &now);

	return number > 0 ? number : 0;
}

static bool is_asked(void)
{
	const sigset_t ending = ending_signals();
	sigset_t pending;

	sigpending(&pending);
	sigandset(&pending, &pending, &ending);
	return !sigisemptyset(&pending);
}

static void signal_all(const struct launch *launch, int number)
{
	kill(-launch->pid, number);
	if (launch->beside != NULL && !launch->beside->ended)
		kill(-launch->beside->pid, number);
}

static void force(struct launch *launch)
{
	kill(-launch->pid, SIGKILL);
	launch->forced = true;
}

static void rest(uint64_t ns)
{
	const struct timespec time = timespec_of(ns);

	nanosleep(&time, NULL);
}

/* Waits until its group is empty, up to so long.  False: it is not. */
static bool await_group(const struct launch *launch, uint64_t longest_ns,
			char *name)
{
	const uint64_t step_ns = 2000000;

	for (uint64_t ns = 0; ns < longest_ns; ns += step_ns) {
		if (!group_alive(launch->pid, name))
			return true;
		rest(step_ns);
	}
	return !group_alive(launch->pid, name);
}

/* Kills what is left of its group and waits until that is gone, unless the
 * kernel holds it up.  True: there was something that did not end by itself, as
 * what a shell began beside its last command does. */
static bool clear_group(const struct launch *launch, char *name)
{
	const uint64_t grace_ns = 100000000, longest_ns = 1000000000;

	if (await_group(launch, grace_ns, name))
		return false;
	kill(-launch->pid, SIGKILL);
	await_group(launch, longest_ns, NULL);
	return true;
}

/* We do as the terminal says, and the programs with us. */
static void pause_with(struct launch *launch)
{
	uint64_t from = now_ns();

	signal_all(launch, SIGSTOP);
	raise(SIGSTOP); /* returns when somebody continues us */
	signal_all(launch, SIGCONT);
	launch->paused = true;
	launch->paused_ns += now_ns() - from;
}

/* Returns what ends the watch: `ending`, or `number` if that is the first. */
static int end_gently(struct launch *launch, int ending, int number)
{
	const sigset_t ends = ending_signals();
	bool late = number < 0 && errno == EAGAIN;

	if (late || (number > 0 && ending != 0 && sigismember(&ends, number)))
		force(launch);
	if (late && ending == 0)
		launch->too_long = true;
	if (ending != 0 || number <= 0 || !sigismember(&ends, number))
		return ending;
	kill(-launch->pid, SIGTERM);
	return number;
}

static uint64_t time_left(const struct launch *launch)
{
	uint64_t spent = now_ns() - launch->started_ns - launch->paused_ns;

	return spent < launch->limit_ns ? launch->limit_ns - spent : 0;
}

static int next_signal(const struct launch *launch, const sigset_t *held,
		       bool ending)
{
	struct timespec patience = {.tv_sec = PATIENCE_S};

	if (launch->limit_ns != 0 && !ending && !launch->too_long)
		patience = timespec_of(time_left(launch));
	else if (!ending)
		return sigwaitinfo(held, NULL);
	return sigtimedwait(held, NULL, &patience);
}

/* What stopped does not go on by itself, and what is alone has no purpose. */
static void end_lost(struct launch *launch, const struct job *job)
{
	struct job other = {0};

	if (job->stopped)
		launch->stopped_by = job->stop_signal;
	if (job->stopped ||
	    (launch->beside != NULL && reap(launch->beside, &other)))
		force(launch);
}

int launch_watch(struct launch *launch)
{
	struct job job = {0};
	int ending = 0, number;
	sigset_t held;

	sigprocmask(SIG_SETMASK, NULL, &held);
	while (!reap(launch, &job)) {
		end_lost(launch, &job);
		number = next_signal(launch, &held, ending != 0);
		if (number > 0 && is_stop(number) && !is_ignored(number))
			pause_with(launch);
		else
			ending = end_gently(launch, ending, number);
	}
	launch->wall_ns = now_ns() - launch->started_ns;
	launch->left = clear_group(launch, launch->left_name) && ending == 0 &&
		       !launch->forced;
	return ending;
}

bool launch_look(struct launch *launch, uint64_t ns)
{
	const struct timespec patience = timespec_of(ns);
	struct job job = {0};
	sigset_t child;

	if (reap(launch, &job))
		return true;
	end_lost(launch, &job);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigtimedwait(&child, NULL, &patience);
	return reap(launch, &job);
}

static const uint64_t end_step_ns = 20000000;

/* And its group with it: what was started may be a script about a server. */
static bool has_ended(struct launch *launch)
{
	if (!launch_look(launch, end_step_ns))
		return false;
	if (!group_alive(launch->pid, NULL))
		return true;
	rest(end_step_ns);
	return false;
}

static void wait_end(struct launch *launch, uint64_t patience_ns)
{
	uint64_t from = now_ns(), spent = 0;

	while (!has_ended(launch)) {
		spent = now_ns() - from;
		launch->late = spent > patience_ns;
		if (launch->late ||
		    (is_asked() && spent > PATIENCE_S * UINT64_C(1000000000)))
			break;
	}
}

void launch_end(struct launch *launch, uint64_t patience_ns)
{
	if (!launch->ended) {
		kill(-launch->pid, SIGTERM);
		wait_end(launch, patience_ns);
		force(launch);
	}
	while (!launch_look(launch, end_step_ns))
		;
	clear_group(launch, NULL);
}

int launch_exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status)
				   : WEXITSTATUS(status);
}

/* SPDX-License-Identifier: MIT */
#include "rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "chains.h"
#include "clocks.h"
#include "die.h"
#include "jit.h"
#include "log.h"
#include "rows.h"
#include "symbols.h"

enum { PAGE = 4096 };

/* --- what is ours --- */

static bool ends_in(const char *name, const char *end)
{
	size_t len = strlen(name), tail = strlen(end);

	return len > tail && strcmp(name + len - tail, end) == 0;
}

static bool is_own_name(const char *name)
{
	return strcmp(name, RECORD_DIR_NAME) == 0 ||
	       strcmp(name, ROWS_NAME) == 0 || ends_in(name, RECORD_SUFFIX) ||
	       ends_in(name, RECORD_SUFFIX JIT_SUFFIX);
}

static bool is_own_file(int fd, const char *name)
{
	struct stat st;

	return is_own_name(name) &&
	       fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode);
}

/* Calls `each` for every name but . and .. until it returns false.  When the
 * names cannot be read that is false too, with an errno. */
static bool each_name(int dir_fd,
		      bool (*each)(int fd, const char *name, void *context),
		      void *context)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = fd == -1 ? NULL : fdopendir(fd);
	struct dirent *entry;
	bool all = true;
	int error;

	if (names == NULL) {
		if (fd != -1)
			close(fd);
		return false;
	}
	errno = 0;
	while (all && (entry = readdir(names)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0)
			all = each(dir_fd, entry->d_name, context);
	error = all ? 0 : errno;
	closedir(names);
	errno = error;
	return all;
}

/* False when there is none, or a strange one. */
static bool read_info(int fd, const char *path, struct record_dir *info)
{
	int file = openat(fd, RECORD_DIR_NAME,
			  O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	bool sound;

	if (file == -1 && errno != ENOENT && errno != ELOOP && errno != ENXIO)
		die_errno(EXIT_USAGE, "cannot read %s/" RECORD_DIR_NAME, path);
	if (file == -1)
		return false;
	sound = fstat(file, &st) == 0 && S_ISREG(st.st_mode) &&
		pread(file, info, sizeof(*info), 0) == sizeof(*info) &&
		info->magic == RECORD_MAGIC;
	close(file);
	return sound;
}

/* --- check --- */

static char *real_parent(const char *path)
{
	char *copy = xstrdup(path), *parent = realpath(dirname(copy), NULL);

	if (parent == NULL)
		die_errno(EXIT_USAGE,
			  "cannot make %s, as the directory that should hold "
			  "it cannot be used",
			  path);
	free(copy);
	return parent;
}

static void need_no_link(const char *path)
{
	char target[PATH_MAX] = "";

	if (readlink(path, target, sizeof(target) - 1) > 0)
		die(EXIT_USAGE,
		    "%s is a symbolic link to %s, which is not there; make "
		    "that directory, or give another -o",
		    path, target);
}

/* Without symbolic links, also when it is not there yet. */
static char *absolute(const char *path)
{
	char *real = realpath(path, NULL), *parent, *copy;

	if (real != NULL)
		return real;
	if (errno != ENOENT)
		die_errno(EXIT_USAGE, "cannot use %s for the logs", path);
	need_no_link(path);
	parent = real_parent(path);
	copy = xstrdup(path);
	real = xasprintf("%s/%s", strcmp(parent, "/") == 0 ? "" : parent,
			 basename(copy));
	free(parent);
	free(copy);
	return real;
}

static void need_writable(const char *path)
{
	if (faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) != 0)
		die_errno(EXIT_USAGE, "cannot write to %s; give another -o",
			  path);
}

static void need_writable_parent(const char *path)
{
	char *parent = real_parent(path);

	need_writable(parent);
	free(parent);
}

static int open_directory(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* --- who uses it --- */

/* Locks what is open for as long as it is; false: another run has the lock.
 * Where a file system has no such locks, numbers of processes must do. */
static bool lock(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

/* Is this still what the name stands for? */
static bool is_named(int fd, const char *path)
{
	struct stat open, named;

	return fstat(fd, &open) == 0 && lstat(path, &named) == 0 &&
	       open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

/* The command of a run whose `run` has not written its end. */
static bool in_use(const struct record_dir *info)
{
	uint64_t now = clocks_ns(CLOCK_REALTIME), boot, started, slack;
	pid_t pid = (pid_t)info->pid;

	if (info->finished || pid <= 0 || log_pid_ended(info->pid) ||
	    now < info->started)
		return false;
	boot = clocks_ns(CLOCK_BOOTTIME) - (now - info->started);
	started = log_pid_started(info->pid);
	slack = UINT64_C(5000000000);
	return started + slack > boot && started < boot + slack;
}

/* A mapping keeps its file open, for writing if it is one of the library.
 * Unlike a look for the process this sees other pid namespaces too. */
static bool is_unwritten(int fd, const char *name, void *writer)
{
	bool unwritten = true;
	int file;

	if (!is_own_file(fd, name) || !ends_in(name, RECORD_SUFFIX))
		return true;
	file = openat(fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (file == -1)
		return true;
	if (fcntl(file, F_SETLEASE, F_RDLCK) != 0)
		unwritten = errno != EAGAIN;
	close(file);
	if (!unwritten)
		*(long *)writer = strtol(name, NULL, 10);
	return unwritten;
}

/* A program that outlived its run, such as a daemon; 0: none. */
static long find_writer(int fd)
{
	/* Somebody who opens a log right now breaks our lease: SIGIO. */
	void (*action)(int) = signal(SIGIO, SIG_IGN);
	long writer = 0;

	each_name(fd, is_unwritten, &writer);
	signal(SIGIO, action);
	return writer;
}

static _Noreturn void refuse_used(const char *path, uint32_t pid)
{
	char number[64] = "";

	if (pid != 0)
		snprintf(number, sizeof(number), " (process %u)", pid);
	die(EXIT_USAGE,
	    "%s is in use by a run that still goes on%s; give another -o", path,
	    number);
}

static void need_unused(int fd, bool locked, const char *path)
{
	struct record_dir info = {0};
	bool begun = read_info(fd, path, &info);
	long writer;

	if (!locked)
		refuse_used(path, info.finished ? 0 : info.pid);
	if (begun && in_use(&info))
		refuse_used(path, info.pid);
	writer = begun ? find_writer(fd) : 0;
	if (writer != 0)
		die(EXIT_USAGE,
		    "%s is in use: processes of that run still use it (such as "
		    "%ld); end them, or give another -o",
		    path, writer);
}

/* Opens what is there and locks it: -1 when there is nothing.  What is no
 * directory dies. */
static int claim(const char *path)
{
	bool locked;
	int fd;

	do {
		fd = open_directory(path);
		if (fd == -1 && errno == ENOENT)
			return -1;
		if (fd == -1)
			die_errno(EXIT_USAGE, "cannot use %s for the logs",
				  path);
		locked = lock(fd);
		if (is_named(fd, path))
			break;
		close(fd); /* renamed meanwhile */
	} while (true);
	need_unused(fd, locked, path);
	return fd;
}

/* --- what is there --- */

static bool never(int fd, const char *name, void *context)
{
	(void)fd;
	(void)name;
	(void)context;
	return false;
}

static bool only_own(int fd, const char *name, void *stranger)
{
	if (is_own_file(fd, name))
		return true;
	snprintf(stranger, NAME_MAX + 1, "%s", name);
	return false;
}

static _Noreturn void refuse_old(const char *path)
{
	die(EXIT_USAGE,
	    "%s is in the way and not a directory of mmgate; move it, or give "
	    "another -o",
	    path);
}

/* The one that would be replaced: everything in it is ours, or we stop. */
static void check_old(struct rundir *dir)
{
	char stranger[NAME_MAX + 1] = "";
	struct record_dir info;
	struct stat st;

	if (lstat(dir->old, &st) == 0 && !S_ISDIR(st.st_mode))
		refuse_old(dir->old);
	dir->replaced = claim(dir->old);
	if (dir->replaced == -1)
		return;
	if (!read_info(dir->replaced, dir->old, &info))
		refuse_old(dir->old);
	if (each_name(dir->replaced, only_own, stranger))
		return;
	if (errno != 0)
		die_errno(EXIT_USAGE, "cannot read %s", dir->old);
	die(EXIT_USAGE,
	    "%s would be replaced, but holds %s, which is not mmgate's; move "
	    "it, or give another -o",
	    dir->old, stranger);
}

static void check_present(struct rundir *dir)
{
	struct record_dir info;

	if (read_info(dir->present, dir->path, &info)) {
		need_writable_parent(dir->path);
		check_old(dir);
		dir->state = RUNDIR_EARLIER;
	} else if (each_name(dir->present, never, NULL)) {
		need_writable(dir->path);
		dir->state = RUNDIR_EMPTY;
	} else if (errno != 0) {
		die_errno(EXIT_USAGE, "cannot read %s", dir->path);
	} else {
		die(EXIT_USAGE,
		    "%s has something in it and is not a directory of mmgate; "
		    "give another -o",
		    dir->path);
	}
}

/* What it lies on, which is there: `where`. */
static void check_file_system(struct rundir *dir, const char *where)
{
	const unsigned tmpfs = 0x01021994, ramfs = 0x858458f6;
	const char *unfit;
	struct statfs st;

	if (statfs(where, &st) != 0)
		return;
	unfit = record_unfit((uint32_t)st.f_type);
	if (unfit != NULL)
		die(EXIT_USAGE,
		    "%s is on %s, where a full disk would end the program; "
		    "give another -o, such as /dev/shm/NAME",
		    dir->path, unfit);
	dir->on_disk =
		(unsigned)st.f_type != tmpfs && (unsigned)st.f_type != ramfs;
}

static void need_size(const char *path)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
	    limit.rlim_cur < sizeof(struct record_dir))
		die(EXIT_USAGE,
		    "cannot write %s/" RECORD_DIR_NAME ": RLIMIT_FSIZE "
		    "(ulimit -f) is %llu bytes, and it takes %zu",
		    path, (unsigned long long)limit.rlim_cur,
		    sizeof(struct record_dir));
}

static void look(struct rundir *dir)
{
	char *parent;

	dir->present = claim(dir->path);
	if (dir->present != -1) {
		check_present(dir);
		check_file_system(dir, dir->path);
		return;
	}
	need_writable_parent(dir->path);
	parent = real_parent(dir->path);
	check_file_system(dir, parent);
	dir->state = RUNDIR_NEW;
	free(parent);
}

void rundir_check(struct rundir *dir, const char *path)
{
	*dir = (struct rundir){
		.fd = -1, .info = -1, .present = -1, .replaced = -1};
	dir->path = absolute(path);
	dir->old = xasprintf("%s.old", dir->path);
	need_size(dir->path);
	look(dir);
}

/* --- make --- */

static bool remove_log(int fd, const char *name, void *context)
{
	(void)context;
	/* RECORD_DIR_NAME last: half removed, it still is mmgate's. */
	return strcmp(name, RECORD_DIR_NAME) == 0 ||
	       (is_own_file(fd, name) && unlinkat(fd, name, 0) == 0);
}

/* Else false, with an errno. */
static bool empty(int fd)
{
	if (!each_name(fd, remove_log, NULL)) {
		errno = errno != 0 ? errno : ENOTEMPTY;
		return false;
	}
	return unlinkat(fd, RECORD_DIR_NAME, 0) == 0 || errno == ENOENT;
}

bool rundir_try_remove(const char *path)
{
	int fd = open_directory(path);
	bool done;

	if (fd == -1)
		return errno == ENOENT;
	done = empty(fd) && rmdir(path) == 0;
	close(fd);
	return done;
}

void rundir_remove(const char *path)
{
	if (!rundir_try_remove(path))
		die_errno(EXIT_USAGE, "cannot remove %s", path);
}

static void drop(int *fd)
{
	if (*fd != -1)
		close(*fd);
	*fd = -1;
}

/* Both locks are held until the new name stands. */
static void move_earlier(struct rundir *dir)
{
	rundir_remove(dir->old);
	if (rename(dir->path, dir->old) != 0)
		die_errno(EXIT_USAGE, "cannot rename %s to %s", dir->path,
			  dir->old);
}

/* Makes the directory and locks it.  False: somebody else has made it. */
static bool make_directory(struct rundir *dir)
{
	if (dir->state == RUNDIR_EMPTY) {
		dir->fd = dir->present;
		dir->present = -1;
		return true;
	}
	if (mkdir(dir->path, 0700) != 0) {
		if (errno == EEXIST)
			return false;
		die_errno(EXIT_USAGE, "cannot make %s", dir->path);
	}
	dir->fd = open_directory(dir->path);
	if (dir->fd == -1)
		die_errno(EXIT_USAGE, "cannot use %s", dir->path);
	return lock(dir->fd);
}

/* False: somebody else has. */
static bool make_info(struct rundir *dir, const struct record_dir *info)
{
	dir->info = openat(dir->fd, RECORD_DIR_NAME,
			   O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			   0600);
	if (dir->info == -1 && errno == EEXIST)
		return false;
	if (dir->info == -1 ||
	    pwrite(dir->info, info, sizeof(*info), 0) != sizeof(*info)) {
		int error = errno;

		rundir_unmake(dir);
		errno = error;
		die_errno(EXIT_USAGE, "cannot write %s/" RECORD_DIR_NAME,
			  dir->path);
	}
	return true;
}

static bool make(struct rundir *dir, const struct record_dir *info)
{
	bool made;

	if (dir->state == RUNDIR_EARLIER)
		move_earlier(dir);
	made = make_directory(dir) && make_info(dir, info);
	drop(&dir->present);
	drop(&dir->replaced);
	return made;
}

void rundir_make(struct rundir *dir, const struct record_dir *info)
{
	while (!make(dir, info)) {
		drop(&dir->fd);
		look(dir);
	}
}

void rundir_unmake(struct rundir *dir)
{
	if (dir->info != -1)
		unlinkat(dir->fd, RECORD_DIR_NAME, 0);
	if (dir->state != RUNDIR_EMPTY)
		rmdir(dir->path);
}

void rundir_close(struct rundir *dir)
{
	drop(&dir->info);
	drop(&dir->fd);
	drop(&dir->present);
	drop(&dir->replaced);
	free(dir->path);
	free(dir->old);
}

/* --- fill ---
 * The programs count `allocated` and `unlogged` in the same page meanwhile, so
 * every write here is of the fields that are ours. */

static void put(const struct rundir *dir, const void *from, size_t from_offset,
		size_t size)
{
	if (pwrite(dir->info, (const char *)from + from_offset, size,
		   (off_t)from_offset) != (ssize_t)size)
		warn("cannot complete %s/" RECORD_DIR_NAME ": %s", dir->path,
		     strerror(errno));
}

void rundir_started(const struct rundir *dir, pid_t pid)
{
	const struct record_dir info = {.pid = (uint32_t)pid};

	put(dir, &info, offsetof(struct record_dir, pid), sizeof(info.pid));
}

void rundir_finish(const struct rundir *dir, const struct record_dir *info)
{
	const size_t from = offsetof(struct record_dir, status);
	struct record_dir end = *info;

	put(dir, &end, from, offsetof(struct record_dir, unlogged) - from);
	end.finished = 1;
	put(dir, &end, offsetof(struct record_dir, finished),
	    sizeof(end.finished));
}

bool rundir_read(const struct rundir *dir, struct record_dir *info)
{
	if (pread(dir->info, info, sizeof(*info), 0) != sizeof(*info))
		return false;
	log_clean_info(info);
	return true;
}

const char *rundir_trouble(const struct rundir *dir)
{
	struct stat now;

	if (lstat(dir->path, &now) != 0)
		return "was moved or removed while the program ran";
	if (!is_named(dir->fd, dir->path))
		return "was replaced while the program ran";
	return NULL;
}

/* --- logs --- */

struct census {
	pid_t pid;
	size_t logs;
};

static bool count_log(int fd, const char *name, void *context)
{
	struct census *census = context;

	(void)fd;
	if (ends_in(name, RECORD_SUFFIX) &&
	    (census->pid == 0 || strtol(name, NULL, 10) == census->pid))
		census->logs++;
	return true;
}

size_t rundir_logs(const struct rundir *dir, pid_t pid)
{
	struct census census = {.pid = pid};

	each_name(dir->fd, count_log, &census);
	return census.logs;
}

/* Nobody has it open, and nobody has it mapped: a mapping keeps its file open.
 * Unlike a look for the process this sees other pid namespaces too. */
static bool is_unused(int file)
{
	return fcntl(file, F_SETLEASE, F_WRLCK) == 0;
}

/* The writer's number is free, or was given to a later process. */
static bool is_gone(const struct record_header *h)
{
	uint64_t asleep, started;

	if (log_pid_ended(h->pid))
		return true;
	asleep = clocks_ns(CLOCK_BOOTTIME) - clocks_now();
	started = log_pid_started(h->pid);
	return started > h->start.ns + asleep + 1000000000;
}

static void punch(int file, off_t from, off_t to)
{
	if (to > from)
		fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  from, to - from);
}

static bool is_zero(const char *bytes, size_t size)
{
	return size == 0 ||
	       (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

/* Frees every page without a bit in it, as one hole for each row of them.  The
 * size stays, so that a reader can tell a log that was cut. */
static void punch_zeros(int file, off_t size)
{
	static char part[64 * PAGE];
	off_t kept = 0, at = 0; /* all before `kept` is done */
	ssize_t n;

	while (at < size) {
		off_t data = lseek(file, at, SEEK_DATA);

		if (data == -1 && errno == ENXIO)
			break; /* a hole from here to the end */
		if (data != -1)
			at = data / PAGE * PAGE;
		n = pread(file, part, sizeof(part), at);
		if (n <= 0)
			return;
		for (ssize_t i = 0; i < n; i += PAGE, at += PAGE) {
			size_t rest = (size_t)(n - i < PAGE ? n - i : PAGE);

			if (is_zero(part + i, rest))
				continue;
			punch(file, kept, at);
			kept = at + PAGE;
		}
	}
	punch(file, kept, size / PAGE * PAGE);
}

struct trim {
	const char *path;      /* of the directory */
	struct images *images; /* NULL: copies of stacks stay */
};

/* A log that cannot be read keeps what it has. */
static void write_chains(const struct trim *trim, int fd, const char *name,
			 int file, const struct stat *st)
{
	char *path = xasprintf("%s/%s", trim->path, name), why[256];
	struct log *log = log_open(path, why);
	int error = 0;

	if (log != NULL && log_is(log, st->st_dev, st->st_ino))
		error = chains_write(log, file, fd, trim->images);
	if (error != 0)
		warn("%s: its copies of stacks could not all be replaced, so "
		     "that some are missing: %s",
		     path, strerror(error));
	if (log != NULL)
		log_close(log);
	free(path);
}

static bool trim_log(int fd, const char *name, void *context)
{
	const struct trim *trim = context;
	struct record_header h;
	struct stat st;
	int file;

	if (!is_own_file(fd, name) || !ends_in(name, RECORD_SUFFIX))
		return true;
	file = openat(fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (file == -1)
		return true;
	if (fstat(file, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_uid == geteuid() &&
	    pread(file, &h, sizeof(h), 0) == sizeof(h) &&
	    h.magic == RECORD_MAGIC && is_gone(&h) && is_unused(file)) {
		if (trim->images != NULL) {
			/* A lease would be in the way of our own reading. */
			fcntl(file, F_SETLEASE, F_UNLCK);
			write_chains(trim, fd, name, file, &st);
		}
		punch_zeros(file, st.st_size);
	}
	close(file);
	return true;
}

void rundir_trim(const struct rundir *dir, bool keep_raw)
{
	/* Somebody who opens a log right now breaks our lease: SIGIO. */
	void (*action)(int) = signal(SIGIO, SIG_IGN);
	struct trim trim = {dir->path, keep_raw ? NULL : images_new()};

	each_name(dir->fd, trim_log, &trim);
	if (trim.images != NULL)
		images_free(trim.images, symbols_free);
	signal(SIGIO, action);
}

/* SPDX-License-Identifier: MIT */
/*
 * poison: what code that lives in somebody else's process must not use.
 *
 * Rules for everything under shim/:
 *   - a wrapped call may arrive in a signal handler, inside malloc or the
 *     loader with their locks held, in a fork's child, before constructors
 *     and after destructors; so no function here allocates, takes a lock but
 *     the gate's own, keeps a descriptor, touches stdio, or unwinds;
 *   - system calls are raw (sys.h); libc gives us errno's address, and whether
 * it is glibc;
 *   - thread-local data is initial-exec, some 64 bytes in all, no destructors;
 *   - errors are -errno; what stands in for a function of libc alone turns them
 *     into errno (edge() in wrap_enter.h, and syscall()'s replacement).
 * Include this last: a slip is then a compile error.
 */
#ifndef MMGATE_POISON_H
#define MMGATE_POISON_H

#pragma GCC poison malloc calloc realloc free strdup strndup asprintf
#pragma GCC poison printf fprintf dprintf sprintf snprintf vsnprintf perror puts
#pragma GCC poison fopen fclose fread fwrite fflush stdin stdout stderr
#pragma GCC poison getenv setenv putenv environ
#pragma GCC poison dlsym dlopen dlclose dladdr dl_iterate_phdr
#pragma GCC poison pthread_create pthread_self pthread_once pthread_atfork
#pragma GCC poison pthread_mutex_lock pthread_mutex_unlock pthread_key_create
#pragma GCC poison pthread_setspecific pthread_getspecific
#pragma GCC poison strlen strcmp strncmp strcpy strcat strtol strtoul atoi
#pragma GCC poison open close read write fstat getpid gettid fork vfork
#pragma GCC poison clock_gettime gettimeofday nanosleep
#pragma GCC poison sigaction signal exit _exit abort syscall

#endif

/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "demangle.h"
#include "die.h"
#include "utf8.h"

enum { LONGEST = 4096 }; /* what a broken file may hold */

typedef char *demangler(const char *symbol, char *buffer, size_t *size,
			int *status);

/* NULL: there is none. */
static demangler *find_demangler(void)
{
	static demangler *found;
	static bool looked;
	void *library;

	if (looked)
		return found;
	looked = true;
	library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
	if (!library)
		library = dlopen("libc++abi.so.1", RTLD_LAZY | RTLD_LOCAL);
	if (library)
		*(void **)(void *)&found = dlsym(library, "__cxa_demangle");
	return found;
}

/* Cuts what gcc and clang put behind a dot, and versions. */
static void cut_suffix(char *name)
{
	static const char *const known[] = {
		"@",     "@",          ".isra.", ".part.",  ".constprop.",
		".cold", ".lto_priv.", ".llvm.", " [clone "};
	size_t i;
	char *at;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		at = strstr(name, known[i]);
		if (at && at != name)
			*at = '\0';
	}
}

/* Cuts the last pair of parentheses, if only words such as const follow it. */
static void cut_parameters(char *name)
{
	char *at = strrchr(name, ')');
	int depth = 0;
	char *rest;

	if (!at || at == name)
		return;
	for (rest = at + 1; *rest; rest++)
		if (!isalpha((unsigned char)*rest) && *rest != ' ' &&
		    *rest != '&')
			return;
	for (; at > name; at--) {
		depth += (*at == ')') - (*at == '(');
		if (depth == 0)
			break;
	}
	if (at > name && at[-1] != ' ' && at[-1] != ':')
		*at = '\0';
}

char *demangle(const char *symbol)
{
	demangler *find =
		symbol[0] == '_' && symbol[1] == 'Z' ? find_demangler() : NULL;
	size_t length = strnlen(symbol, LONGEST);
	char *plain = NULL, *name;
	int status = -1;

	if (find && length < LONGEST)
		plain = find(symbol, NULL, NULL, &status);
	if (plain && status == 0) {
		cut_suffix(plain);
		cut_parameters(plain);
		symbol = plain;
		length = strnlen(symbol, LONGEST);
	}
	name = xcalloc(length + 1, 1);
	utf8_clean(name, symbol, length, 0);
	free(plain);
	cut_suffix(name);
	return name;
}

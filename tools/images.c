/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "die.h"
#include "images.h"
#include "text.h"
#include "utf8.h"

struct entry {
	struct images_entry public;
	char *key;
	UT_hash_handle hh;
};

struct images {
	struct entry *entries;
};

/* Everything that tells one file from another. */
static char *key_of(const struct image_identity *identity)
{
	char id[2 * 64 + 1] = "";
	size_t i;

	for (i = 0; i < identity->build_id_bytes && i < 64; i++)
		snprintf(id + 2 * i, 3, "%02x", identity->build_id[i]);
	if (*id)
		return xasprintf("%s\n%s", id, identity->path);
	return xasprintf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n%s",
			 identity->inode, identity->bytes,
			 identity->modified_ns, identity->path);
}

static char *module_of(const char *path)
{
	const char *name = text_base_name(path);
	size_t length = strlen(name);
	char *module;

	if (!strncmp(name, "linux-vdso.", 11))
		return xstrdup("[vdso]");
	if (length == 0)
		return xstrdup("[unknown]");
	module = xcalloc(length + 1, 1);
	utf8_clean(module, name, length, 0);
	return module;
}

static struct entry *entry_new(char *key, const struct image_identity *identity)
{
	struct entry *e = xcalloc(1, sizeof(*e));

	e->key = key;
	e->public.path = xstrdup(identity->path);
	e->public.module = module_of(identity->path);
	e->public.image = image_open(identity, &e->public.why);
	return e;
}

struct images *images_new(void)
{
	return xcalloc(1, sizeof(struct images));
}

struct images_entry *images_get(struct images *images,
				const struct image_identity *identity)
{
	char *key = key_of(identity);
	struct entry *e;

	HASH_FIND_STR(images->entries, key, e);
	if (e) {
		free(key);
		return &e->public;
	}
	e = entry_new(key, identity);
	HASH_ADD_KEYPTR(hh, images->entries, e->key, strlen(e->key), e);
	return &e->public;
}

void images_free(struct images *images,
		 void (*free_symbols)(struct symbols_file *symbols))
{
	struct entry *e, *next;

	HASH_ITER(hh, images->entries, e, next)
	{
		HASH_DEL(images->entries, e);
		if (e->public.symbols && free_symbols)
			free_symbols(e->public.symbols);
		if (e->public.image)
			image_close(e->public.image);
		free((void *)(uintptr_t)e->public.path);
		free((void *)(uintptr_t)e->public.module);
		free(e->key);
		free(e);
	}
	free(images);
}

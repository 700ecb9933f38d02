/* SPDX-License-Identifier: MIT */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "die.h"
#include "image.h"

enum {
	MOST_SEGMENTS = 64,
	/* Of .eh_frame_hdr: what its numbers are. */
	DW_EH_PE_udata4 = 0x03,
	DW_EH_PE_sdata4 = 0x0b,
	DW_EH_PE_pcrel = 0x10,
	DW_EH_PE_datarel = 0x30,
};

struct image {
	const char *bytes;
	size_t size;
	bool mapped;
	Elf64_Phdr segments[MOST_SEGMENTS];
	unsigned count;
};

/* --- what it is --- */

static bool fits(const struct image *image, uint64_t at, uint64_t size)
{
	return at <= image->size && size <= image->size - at;
}

static bool take_segments(struct image *image)
{
	Elf64_Ehdr h;

	if (image->size < sizeof(h))
		return false;
	memcpy(&h, image->bytes, sizeof(h));
	if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 ||
	    h.e_ident[EI_CLASS] != ELFCLASS64 ||
	    h.e_phentsize != sizeof(Elf64_Phdr) || h.e_phnum > MOST_SEGMENTS ||
	    !fits(image, h.e_phoff, h.e_phnum * sizeof(Elf64_Phdr)))
		return false;
	memcpy(image->segments, image->bytes + h.e_phoff,
	       h.e_phnum * sizeof(Elf64_Phdr));
	image->count = h.e_phnum;
	return true;
}

static size_t padded(uint32_t size)
{
	return ((size_t)size + 3) & ~(size_t)3;
}

/* The build-id among notes; its size, 0: there is none. */
static size_t find_build_id(const char *at, size_t size, const char **id)
{
	Elf64_Nhdr note;
	size_t name, all;

	while (size > sizeof(note)) {
		memcpy(&note, at, sizeof(note));
		name = sizeof(note) + padded(note.n_namesz);
		all = name + padded(note.n_descsz);
		if (name > size || note.n_descsz > size - name)
			return 0;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    memcmp(at + sizeof(note), "GNU", 4) == 0) {
			*id = at + name;
			return note.n_descsz;
		}
		if (all > size)
			return 0;
		at += all;
		size -= all;
	}
	return 0;
}

uint32_t image_build_id(const struct image *image, uint8_t id[32])
{
	const char *found;
	size_t size;
	unsigned i;

	for (i = 0; i < image->count; i++) {
		const Elf64_Phdr *s = &image->segments[i];

		if (s->p_type != PT_NOTE ||
		    !fits(image, s->p_offset, s->p_filesz))
			continue;
		size = find_build_id(image->bytes + s->p_offset, s->p_filesz,
				     &found);
		if (size == 0 || size > 32)
			continue;
		memcpy(id, found, size);
		return (uint32_t)size;
	}
	return 0;
}

static bool has_build_id(const struct image *image, const uint8_t *id,
			 size_t size)
{
	uint8_t found[32];

	return image_build_id(image, found) == size &&
	       memcmp(found, id, size) == 0;
}

static bool is_same_file(const struct stat *st,
			 const struct image_identity *identity)
{
	uint64_t modified = (uint64_t)st->st_mtim.tv_sec * 1000000000 +
			    (uint64_t)st->st_mtim.tv_nsec;

	if (identity->inode == 0)
		return true;
	return st->st_ino == identity->inode &&
	       (uint64_t)st->st_size == identity->bytes &&
	       modified == identity->modified_ns;
}

/* --- open, close --- */

static struct image *over(const void *bytes, size_t size, bool mapped)
{
	struct image *image = xcalloc(1, sizeof(*image));

	image->bytes = bytes;
	image->size = size;
	image->mapped = mapped;
	return image;
}

/* How much of this process's own vDSO is there. */
static size_t vdso_size(const Elf64_Ehdr *header)
{
	const Elf64_Phdr *s =
		(const void *)((const char *)header + header->e_phoff);
	size_t size = 0;
	unsigned i;

	for (i = 0; i < header->e_phnum; i++)
		if (s[i].p_type == PT_LOAD &&
		    s[i].p_offset + s[i].p_filesz > size)
			size = s[i].p_offset + s[i].p_filesz;
	return size;
}

/* The kernel puts it into each process; its name is no path. */
static struct image *open_vdso(const char **why)
{
	const Elf64_Ehdr *at = (const void *)getauxval(AT_SYSINFO_EHDR);

	if (at)
		return over(at, vdso_size(at), false);
	*why = "is the kernel's, and this process has none";
	return NULL;
}

static struct image *map(int fd, const struct image_identity *identity,
			 const char **why)
{
	struct stat st;
	void *at;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0) {
		*why = "is not a regular file";
		return NULL;
	}
	if (identity->build_id_bytes == 0 && !is_same_file(&st, identity)) {
		*why = "was replaced by another file";
		return NULL;
	}
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at != MAP_FAILED)
		return over(at, (size_t)st.st_size, true);
	*why = strerror(errno);
	return NULL;
}

static struct image *open_file(const struct image_identity *identity,
			       const char **why)
{
	struct image *image;
	int fd;

	*why = "has no known path";
	/* As the loader was told: good for something if it is the one. */
	if (*identity->path != '/' &&
	    (!*identity->path || identity->build_id_bytes == 0))
		return NULL;
	fd = open(identity->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		*why = errno == ENOENT ? "was deleted" : strerror(errno);
		return NULL;
	}
	image = map(fd, identity, why);
	close(fd);
	return image;
}

struct image *image_open(const struct image_identity *identity,
			 const char **why)
{
	bool vdso = !strncmp(identity->path, "linux-vdso.", 11) ||
		    !strcmp(identity->path, "linux-gate.so.1");
	struct image *image = vdso ? open_vdso(why) : open_file(identity, why);

	if (!image)
		return NULL;
	*why = NULL;
	if (!take_segments(image))
		*why = "is not a 64-bit ELF file";
	else if (identity->build_id_bytes > 0 &&
		 !has_build_id(image, identity->build_id,
			       identity->build_id_bytes))
		*why = "was replaced by another file";
	if (!*why)
		return image;
	image_close(image);
	return NULL;
}

void image_close(struct image *image)
{
	if (image->mapped)
		munmap((void *)(uintptr_t)image->bytes, image->size);
	free(image);
}

/* --- as memory --- */

bool image_address(const struct image *image, uint64_t offset,
		   uint64_t *address)
{
	unsigned i;

	for (i = 0; i < image->count; i++) {
		const Elf64_Phdr *s = &image->segments[i];
		/* A mapping begins and ends with whole pages. */
		uint64_t start = s->p_offset & ~UINT64_C(4095);

		if (s->p_type != PT_LOAD || !(s->p_flags & PF_X) ||
		    offset < start || offset - s->p_offset >= s->p_filesz)
			continue;
		*address = offset - s->p_offset + s->p_vaddr;
		return true;
	}
	return false;
}

static bool is_in(const Elf64_Phdr *s, uint64_t address)
{
	return s->p_type == PT_LOAD && address >= s->p_vaddr &&
	       address - s->p_vaddr < s->p_memsz;
}

bool image_word(const struct image *image, uint64_t address, uint64_t *word)
{
	unsigned i;

	for (i = 0; i < image->count; i++) {
		const Elf64_Phdr *s = &image->segments[i];
		uint64_t at = address - s->p_vaddr, size = sizeof(*word);

		if (!is_in(s, address))
			continue;
		*word = 0;
		/* Beyond the file's part there are zeros. */
		if (at >= s->p_filesz)
			return true;
		if (size > s->p_filesz - at)
			size = s->p_filesz - at;
		if (!fits(image, s->p_offset + at, size))
			return false;
		memcpy(word, image->bytes + s->p_offset + at, size);
		return true;
	}
	return false;
}

static bool take_frames(const struct image *image, const Elf64_Phdr *s,
			struct image_frames *frames)
{
	uint64_t word, count;
	unsigned char encoding[4];

	if (!image_word(image, s->p_vaddr, &word) ||
	    !image_word(image, s->p_vaddr + 8, &count))
		return false;
	memcpy(encoding, &word, sizeof(encoding));
	if (encoding[0] != 1 ||
	    (encoding[1] & 0x0f) != DW_EH_PE_sdata4 || /* its address: 32 bit */
	    encoding[2] != DW_EH_PE_udata4 ||
	    encoding[3] != (DW_EH_PE_datarel | DW_EH_PE_sdata4))
		return false;
	frames->header = s->p_vaddr;
	frames->table = s->p_vaddr + 12;
	frames->count = (uint32_t)count;
	return frames->count <= s->p_memsz / 8;
}

bool image_frames(const struct image *image, struct image_frames *frames)
{
	unsigned i;

	for (i = 0; i < image->count; i++)
		if (image->segments[i].p_type == PT_GNU_EH_FRAME)
			return take_frames(image, &image->segments[i], frames);
	return false;
}

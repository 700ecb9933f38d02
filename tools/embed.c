/* SPDX-License-Identifier: MIT */
#include "embed.h"

/* The assembler reads them, by their names from the top of the tree. */
#define EMBED(name, path)                                                      \
	__asm__(".pushsection .rodata\n"                                       \
		".globl " #name "\n" #name ":\n"                               \
		".incbin \"" path "\"\n"                                       \
		".byte 0\n"                                                    \
		".popsection\n")

EMBED(embed_style, "tools/html/style.css");
EMBED(embed_script, "tools/html/script.js");

/* SPDX-License-Identifier: MIT */
/*
 * embed: files of tools/html as strings.
 */
#ifndef MMGATE_EMBED_H
#define MMGATE_EMBED_H

extern const char embed_style[], embed_script[];

#endif

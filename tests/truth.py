#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""truth.py TRACE: what strace saw, per op: caught by the library or missed.

Reads `strace -f -i -y` output of a run under the library with a log.  A call
is caught when its instruction pointer lies in the library's code, missed when
it lies elsewhere after the library's start in that process.  The library's
own calls (populating its log, marking its page, the self-test and the patching
in its constructor, what place=thread maps for itself) do not count.  Prints "op caught missed" lines, and each
missed place on stderr.
"""
import collections
import re
import subprocess
import sys

LINE = re.compile(r'^(\d+) +\[([0-9a-f]+)\] (\w+)\((.*)$')
EXECUTED = re.compile(r'^(\d+) .*<\.\.\. execve resumed>.* = 0$')
CHILD = re.compile(r'^(\d+) .*\b(?:clone3?|v?fork)\b.* = (\d+)$')


class Image:
    """One process between two execs."""

    def __init__(self):
        self.code = None        # range of the library's code
        self.started = False    # its constructor has ended
        self.text = {}          # start -> (end, path) of executable maps


def code_of_place(library):
    """Ranges of the library's code that maps for itself: that of place.c."""
    symbols = subprocess.run(['readelf', '-sW', library], text=True,
                             capture_output=True, check=True).stdout
    found = []
    source = None
    for row in map(str.split, symbols.splitlines()):
        if row[3:4] == ['FILE']:
            source = row[7] if len(row) == 8 else None
        if len(row) != 8:
            continue
        # What is local to a file stands behind its name in the table.
        if row[3] == 'FUNC' and (row[7].startswith('place_') or
                                 source == 'place.c'):
            start = int(row[1], 16)
            found.append((start, start + int(row[2], 0)))
    return found


def parents(trace):
    """Each child's parent.  A child may run before its parent's line ends."""
    found = {}
    for line in open(trace, errors='replace'):
        match = CHILD.match(line)
        if match:
            found[match.group(2)] = match.group(1)
    return found


def main():
    parent = parents(sys.argv[1])
    images = {}
    place = []
    caught = collections.Counter()
    missed = collections.Counter()
    places = collections.Counter()
    for line in open(sys.argv[1], errors='replace'):
        match = EXECUTED.match(line)
        if match:
            images[match.group(1)] = Image()
            continue
        match = LINE.match(line)
        if not match:
            continue
        pid, pointer, op, rest = match.groups()
        if pid not in images:
            images[pid] = images.get(parent.get(pid)) or Image()
        address = int(pointer, 16)
        if op == 'execve':
            if ' = 0' in rest:
                images[pid] = Image()
            continue
        if op in ('clone', 'clone3', 'fork', 'vfork'):
            continue
        image = images[pid]
        if op == 'mmap' and 'PROT_EXEC' in rest:
            at = re.search(r' = (0x[0-9a-f]+)', rest)
            size = re.match(r'\w+, (\d+)', rest)
            path = re.search(r'<([^>]*)>', rest)
            if at and size and path:
                start = int(at.group(1), 16)
                image.text[start] = (start + int(size.group(1)),
                                     path.group(1))
                if 'libmmgate' in path.group(1):
                    image.code = (start, start + int(size.group(1)))
                    place = place or code_of_place(path.group(1))
                    continue
        ours = image.code and image.code[0] <= address < image.code[1]
        if ours and 'MADV_POPULATE_WRITE' in rest:
            # The last call of the constructor fills the log's first pages.
            image.started = image.started or ', 12288, ' in rest
            continue
        if not image.started:
            continue
        if ours:
            at = address - image.code[0]
            # The pointer is behind the instruction.
            if not any(start < at <= end for start, end in place):
                caught[op] += 1
            continue
        missed[op] += 1
        where = next((path for start, (end, path) in image.text.items()
                      if start <= address < end), 'unknown')
        places[(op, where)] += 1
    for op in sorted(set(caught) | set(missed)):
        print(op, caught[op], missed[op])
    for (op, where), count in places.most_common():
        print('missed', op, where, count, file=sys.stderr)


main()

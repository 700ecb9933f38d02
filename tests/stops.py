# SPDX-License-Identifier: MIT
"""For gdb: writes the chain of callers at each copy of a stack, as gdb sees it.

A line for each: the thread's number and the addresses, innermost first, from
the caller of the library on, with a ? where gdb knows no function (beyond the
first function of a stack it takes data for callers).  Frames that have no return address of their own
(inlined, tail calls) are left out.
usage: gdb -batch -x stops.py -ex 'run' --args PROGRAM, with STOPS_FILE,
STOPS_LIBRARY and STOPS_ENVIRONMENT (lines NAME=VALUE) in the environment
"""
import os
import gdb

out = open(os.environ["STOPS_FILE"], "w")
library = os.environ["STOPS_LIBRARY"]


def chain():
    frame = gdb.newest_frame()
    while frame is not None:
        kind = frame.type()
        if kind not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            yield frame
        frame = frame.older()


class Copy(gdb.Breakpoint):
    def stop(self):
        frames = list(chain())
        while gdb.solib_name(frames[0].pc()) == library:
            frames.pop(0)
        pcs = " ".join(hex(f.pc()) + "?" * (f.name() is None) for f in frames)
        out.write("%d %s\n" % (gdb.selected_thread().ptid[1], pcs))
        out.flush()
        return False


for setting in (
    "pagination off",
    "breakpoint pending on",
    "startup-with-shell off",
    "backtrace past-main on",
    "backtrace past-entry on",
    "backtrace limit 600",
    "print thread-events off",
):
    gdb.execute("set " + setting)
for line in os.environ["STOPS_ENVIRONMENT"].split("\n"):
    name, value = line.split("=", 1)
    gdb.execute("set environment %s %s" % (name, value))
gdb.execute("handle SIGUSR1 nostop noprint pass")
Copy("stack_copy")

# SPDX-License-Identifier: GPL-3.0-or-later
"""gdb: threads of its inferior, and which of them is selected."""

import gdb


class Selection:
    """Puts the selected thread and frame back."""

    def __enter__(self):
        self.thread = gdb.selected_thread()
        try:
            self.frame = gdb.selected_frame()
        except gdb.error:
            self.frame = None

    def __exit__(self, *_):
        if self.thread and self.thread.is_valid():
            self.thread.switch()
        if self.frame and self.frame.is_valid():
            self.frame.select()


def find_thread(tid):
    for thread in gdb.selected_inferior().threads():
        if tid_of(thread) == tid:
            return thread
    return None


def tid_of(thread):
    """The kernel's id of the thread; a process without threads may lack one."""
    pid, lwp, _ = thread.ptid
    return lwp or pid

# SPDX-License-Identifier: GPL-3.0-or-later
# Joins bootstrap.py when allocations are first sampled. The agent adds:
#   sites_begin(recipe, codes)   the address of the buffer, or a text that says why not
#   sites_wait(job, ms)          returns when the time is over, or the client wants it
#   sites_end()                  ends sampling: False if the allocators have to stay
#   sites_stop()                 the same, and releases what is held for the client
#   sites_row(…)                 writes a row of memory_allocations: 0 or an errno value
SITES_READ_MS = 10000  # for so long the client may read what code objects are called


def sites_sample(job, seconds, recipe):
    """Sends the buffer's address, then "ended" or "stays"; the client reads, and interrupts."""
    frame, codes = sys._getframe(), []
    while frame:
        codes.append(id(frame.f_code))
        frame = frame.f_back
    buffer = sites_begin(recipe, tuple(codes))
    if not isinstance(buffer, int):
        raise RuntimeError(buffer)
    try:
        try:
            send(job, 1, "buffer %d\n" % buffer)
            sites_wait(job, int(seconds * 1000))
        except KeyboardInterrupt:
            pass
        send(job, 1, "ended\n" if sites_end() else "stays\n")
        sites_wait(job, SITES_READ_MS)
    except KeyboardInterrupt:
        pass
    finally:
        sites_stop()


def sites_write(lines):
    """Each line: function, file, line, then four numbers, then the stack, divided by tabs."""
    for line in lines:
        cells = line.split(b"\t")
        numbers = [int(cell) if cell else None for cell in cells[2:7]]
        error = sites_row(cells[0], cells[1] or None, numbers[0], numbers[1], numbers[2], numbers[3],
                          numbers[4], cells[7])
        if error:
            raise OSError(error, "the rows of memory_allocations cannot be kept: " +
                          posix.strerror(error))


def sites_request(job, source):
    """"sample", the seconds and the recipe; or "rows" and the lines."""
    head, _, rest = source.partition(b"\n")
    if head == b"rows":
        sites_write(rest.split(b"\n") if rest else [])
        return DONE
    words = rest.split()
    sites_sample(job, float(words[0]), tuple(int(word) for word in words[1:]))
    return DONE

# SPDX-License-Identifier: GPL-3.0-or-later
"""Exceptions that are handled, in functions whose names begin with h, and others, each in a thread of its own that
it ends."""
import os
import sys
import textwrap
import threading
import time

sys.stderr = open(os.devnull, "w")


class Errors:
    Value = ValueError


class Context:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def boom():
    raise ValueError


def h_plain():
    try:
        boom()
    except ValueError:
        pass


def u_other():
    try:
        boom()
    except KeyError:
        pass


def u_finally():
    try:
        boom()
    finally:
        sys.intern("x")


def h_above():
    try:
        try:
            boom()
        finally:
            sys.intern("x")
    except Exception:
        pass


def u_with():
    with Context():
        boom()


def h_with():
    try:
        with Context():
            boom()
    except (KeyError, ValueError):
        pass


def h_bare():
    for _ in range(2):
        try:
            boom()
        except KeyError:
            continue
        except:  # noqa: E722
            break


def u_behind():
    try:
        sys.intern("x")
    except ValueError:
        pass
    boom()


def u_in_handler():
    try:
        raise KeyError
    except KeyError as error:  # noqa: F841
        boom()


def h_in_handler():
    try:
        try:
            raise KeyError
        except KeyError as error:  # noqa: F841
            boom()
    except ValueError:
        return 5


def h_returns():
    try:
        boom()
    except:  # noqa: E722
        return 1


def h_dotted():
    try:
        boom()
    except (Errors.Value, KeyError):
        pass


def h_local():
    kind = ValueError
    try:
        boom()
    except kind:
        pass


def h_comprehension():
    try:
        [boom() for _ in range(2)]
    except ValueError:
        pass


def u_loops():
    for _ in range(2):
        with Context():
            for each in range(2):
                if each == 0:
                    continue
                boom()


def u_again():
    try:
        boom()
    except:  # noqa: E722
        sys.intern("x")
        raise


class Iterator:
    left = 2

    def __iter__(self):
        return self

    def __next__(self):
        if not self.left:
            raise StopIteration
        self.left -= 1


class Broken:
    def __aiter__(self):
        return self

    async def __anext__(self):
        boom()


KINDS = [KeyError, ValueError]


def h_iterator():
    for _ in Iterator():
        sys.intern("x")


def h_call():
    try:
        boom()
    except tuple(KINDS):
        pass


def h_locals():
    one, other = KINDS
    try:
        boom()
    except (one, other):
        pass


def u_async_for():
    async def run():
        async for _ in Broken():
            sys.intern("x")

    run().send(None)


class Numbers:
    def __getitem__(self, number):
        if number > 1:
            raise IndexError(number)
        return number


class Forwards:
    def __getattr__(self, name):
        raise AttributeError(name)


def h_counts():
    for _ in Numbers():
        sys.intern("x")
    first, second = Numbers()
    return [*Numbers()], list(Numbers()), 5 in Numbers()


def u_counts():
    return Numbers()[2]


def h_asks():
    return hasattr(Forwards(), "x") or getattr(Forwards(), "x", None)


def u_asks():
    return getattr(Forwards(), "x")


def u_takes():
    return Forwards().x


# From 3.11 on. They are indented for those who look for the functions of a version.
STARS = """
    def u_star():
        try:
            boom()
        except* TypeError:
            pass

    def h_star():
        try:
            boom()
        except* ValueError:
            pass

    def h_around_star():
        try:
            try:
                boom()
            except* (TypeError, KeyError):
                pass
        except ValueError:
            pass
"""
if sys.version_info >= (3, 11):
    exec(textwrap.dedent(STARS))


def main():
    every = [function for name, function in sorted(globals().items()) if name[:2] in ("h_", "u_")]
    print("ready", flush=True)
    while True:
        for function in every:
            thread = threading.Thread(target=function, name=function.__name__)
            thread.start()
            thread.join()
        time.sleep(0.001)


main()

"""A script: wait until the driver has ended, then end what is left of the clusters it started.

If the driver is killed, Linux ends the processes that Ray has started in it. Their own children
notice that after some time: agents take a minute. So this small process looks for them. It needs
no pipe to the driver, which a forked child would keep open.

A process of a cluster has a log file of the cluster's session open for writing,
`session_<time>_<process id of the driver>/logs/...`. Only such processes are ended.
"""

import os
import signal
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path

_watched: set[int] = set()  # this process, if it has a watcher; or the one it was forked from

_INTERVAL = 0.5  # seconds
_LONGEST = 10.0  # seconds after the end of the driver
_SCANS = 3  # without finding anything: over


def start_watcher() -> None:
    """Start the script for this process; on other systems than Linux Ray has its own."""
    driver = os.getpid()
    if not sys.platform.startswith("linux") or driver in _watched:
        return
    now = time.strftime("%Y-%m-%d_%H-%M-%S")
    nothing = [(os.POSIX_SPAWN_OPEN, handle, os.devnull, os.O_RDWR, 0) for handle in (0, 1, 2)]
    os.posix_spawn(
        sys.executable,
        [sys.executable, "-I", "-S", __file__, str(driver), now],
        os.environ,
        file_actions=nothing,
        setsid=True,  # Ctrl-C is for the driver
    )
    _watched.add(driver)


def main(driver: int, started: str) -> None:
    """`started`: a time as in names of sessions; older sessions are somebody else's."""
    while os.getppid() == driver:
        time.sleep(_INTERVAL)
    until = time.monotonic() + _LONGEST
    empty = 0
    while empty < _SCANS and time.monotonic() < until:
        found = session_processes(driver, started)
        for process in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        empty = 0 if found else empty + 1
        time.sleep(_INTERVAL)


def session_processes(driver: int, started: str) -> list[int]:
    """The processes that write to a log of a session that the driver has started since."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):  # it has ended, or is another user's
                files = list((folder / "fd").iterdir())
                if any(_is_log(file, driver, started) for file in files):
                    found.append(int(folder.name))
    return found


def _is_log(file: Path, driver: int, started: str) -> bool:
    """Whether an open file is a log of such a session, open for writing."""
    try:
        path = file.readlink()
        name, _, number = path.parent.parent.name.rpartition("_")
        return (
            path.parent.name == "logs"
            and number == str(driver)
            and name.startswith("session_")
            and name.removeprefix("session_") >= started
            and bool(file.lstat().st_mode & stat.S_IWUSR)
            and path.samefile(file)  # not a file of that name in a container
        )
    except OSError:  # closed meanwhile
        return False


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])

# SPDX-License-Identifier: GPL-3.0-or-later
"""A Slurm of one machine, with its own munged, for tests of Slurm jobs."""
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile

import pytest

from environment import wait_until

CONF = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES State=UP OverSubscribe=YES
"""


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def end_all(variable):
    """Ends its daemons, the keepers of its steps, and its jobs' processes, found by their environment."""
    word = variable.encode()
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            with open("/proc/%d/environ" % int(name), "rb") as environ:
                if word in environ.read().split(b"\0"):
                    os.kill(int(name), signal.SIGKILL)


@contextlib.contextmanager
def running():
    """Gives the environment of its commands."""
    if os.getuid() or not shutil.which("slurmctld") or not shutil.which("munged"):
        pytest.skip("slurm is not installed")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        os.chmod(folder, 0o755)
        for name in ("state", "spool"):
            os.mkdir(os.path.join(folder, name))
        with open(os.path.join(folder, "key"), "wb") as key:
            key.write(os.urandom(1024))
        os.chmod(key.name, 0o600)
        conf = os.path.join(folder, "slurm.conf")
        with open(conf, "w", encoding="utf-8") as file:
            file.write(CONF.format(folder=folder, host=socket.gethostname().split(".")[0],
                                   ports=free_ports(2)))
        env = dict(os.environ, SLURM_CONF=conf)
        daemons = (["munged", "--foreground", "--force", *(
            "--%s=%s/%s" % (option, folder, name) for option, name in (
                ("key-file", "key"), ("socket", "munge.socket"), ("pid-file", "munged.pid"),
                ("log-file", "munged.log"), ("seed-file", "seed")))],
            ["slurmctld", "-D", "-c", "-f", conf], ["slurmd", "-D", "-c", "-f", conf])
        for words in daemons:
            daemon = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
            stack.callback(daemon.wait)
            stack.callback(daemon.kill)
        wait_until(lambda: b"idle" in subprocess.run(
            ["sinfo"], env=env, capture_output=True, check=False).stdout, 60)
        stack.callback(end_all, "SLURM_CONF=" + conf)
        yield env

# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing node`: its parts, their ends and its own; and the files of docs/deploy/."""
import os
import re
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import clickhouse_server
import support
from clickhouse_server import OPENER, free_ports, needs_clickhouse
from files_support import AS_USER, PYTHON, USER, folder, needs_root  # noqa: F401 (fixtures)
from test_clickhouse import AGENT, Writer, count, daemon, wait_for

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "docs/deploy"
NODE = ("node",)


def children(pid):
    """Processes of a daemon: pid and the arguments of its command line."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "stat").read_text().rsplit(")", 1)[1].split()
            if int(words[1]) == pid and words[0] not in "ZX":
                found[int(path.name)] = (path / "cmdline").read_bytes().split(b"\0")
        except (OSError, IndexError):  # it has ended
            pass
    return found


def answers(port):
    try:
        with OPENER.open("http://127.0.0.1:%d/" % port, timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


@needs_clickhouse
def test_it_ships_serves_and_starts_again_what_failed(target, tmp_path):
    writer = Writer(target, tmp_path / "data")
    port, = free_ports(1)
    (tmp_path / "token").write_text("x" * 43)
    (tmp_path / "token").chmod(0o600)
    with clickhouse_server.running() as server, \
            daemon(tmp_path, "--to", server.url("node"), "--every", "100ms", "--host-name", "here",
                   "--job-name", "night", "--keep-days", "30", "--listen", "127.0.0.1:%d" % port,
                   "--listen-token", tmp_path / "token", command=NODE) as start:
        node = start()
        writer.write(100)
        wait_for(lambda: (mine(server, writer) or 0) == 100, start.log.read_text)
        assert server.rows("SELECT DISTINCT host, job FROM node.user_stored WHERE pid = %d" %
                           writer.pid) == [{"host": "here", "job": "night"}]
        wait_for(lambda: answers(port), start.log.read_text)
        parts = children(node.pid)
        assert len(parts) == 2, parts
        for part in parts:
            os.kill(part, signal.SIGKILL)
        writer.write(100)
        wait_for(lambda: (mine(server, writer) or 0) == 200, start.log.read_text)
        wait_for(lambda: answers(port) and len(children(node.pid)) == 2, start.log.read_text)
        assert set(children(node.pid)).isdisjoint(parts)
        assert "'ship' has ended by signal 9" in start.log.read_text()
        parts = children(node.pid)
        node.send_signal(signal.SIGTERM)
        assert node.wait(60) == 0, start.log.read_text()
        assert not any(Path("/proc/%d" % part).exists() for part in parts)


def mine(server, writer):
    return count(server, "node.user_stored WHERE pid = %d" % writer.pid)


def test_its_parts_end_with_it(tmp_path):
    """However it ends."""
    port, = free_ports(1)
    with daemon(tmp_path, "--listen", "127.0.0.1:%d" % port, command=NODE) as start:
        node = start()
        wait_for(lambda: answers(port), start.log.read_text)
        part, = children(node.pid)
        node.kill()
        node.wait()
        wait_for(lambda: not Path("/proc/%d" % part).exists(), start.log.read_text)


@pytest.mark.parametrize("words, code, said", [
    ((), 2, "there is nothing to do"),
    (("--to", "ftp://x/y"), 2, "begins with clickhouse://"),
    (("--to", "clickhouse://x"), 2, "has no database"),
    (("--listen", "nowhere"), 2, "'serve' cannot run as it was told"),
    (("--listen", "127.0.0.1:0", "--keep-days", "3"), 2, "are for --to"),
])
def test_mistakes_end_it(probing, words, code, said):
    result = probing("node", *words)
    assert result.code == code and said in result.err, result


def test_it_keeps_crash_records(tmp_path):
    own = tmp_path / "data" / "crashes"
    own.mkdir(parents=True, mode=0o700)
    (own / "crash-1700000000-4242.core").write_bytes(b"a record")
    (own / "crash-1700000000-4242.core.new").write_bytes(b"not whole")
    (own / "crash-1700000001-4242.core").symlink_to("/etc/passwd")
    os.mkfifo(own / "crash-1700000002-4242.core")
    kept = tmp_path / "state" / "crashes" / str(os.geteuid())
    with daemon(tmp_path, "--crashes", "--state", tmp_path / "state", command=NODE,
                data=tmp_path / "data") as start:
        start()
        wait_for(lambda: (kept / "crash-1700000000-4242.core").exists(), start.log.read_text)
    names = {path.name for path in kept.iterdir()}
    assert (kept / "crash-1700000000-4242.core").read_bytes() == b"a record"
    assert not names & {"crash-1700000001-4242.core", "crash-1700000002-4242.core",
                        "crash-1700000000-4242.core.new"}
    assert (kept / "crash-1700000000-4242.core").stat().st_mode & 0o777 == 0o600


def test_it_keeps_all_crash_records(tmp_path):
    """Also where a larger crash.count has left many in one folder."""
    own = tmp_path / "data" / "crashes"
    own.mkdir(parents=True, mode=0o700)
    names = {"crash-%d-4242.core" % (1700000000 + number) for number in range(300)}
    for name in names:
        (own / name).write_bytes(b"a record")
    kept = tmp_path / "state" / "crashes" / str(os.geteuid())
    with daemon(tmp_path, "--crashes", "--state", tmp_path / "state", command=NODE,
                data=tmp_path / "data") as start:
        start()
        wait_for(lambda: kept.is_dir() and names <= set(os.listdir(kept)), start.log.read_text)


def test_the_unit_is_one(tmp_path):
    program = shutil.which("systemd-analyze")
    if not program:
        pytest.skip("systemd-analyze is not installed")
    unit = (DEPLOY / "probing-node.service").read_text()
    assert "ExecStart=/usr/local/bin/probing node --to " in unit
    copy = tmp_path / "probing-node.service"
    copy.write_text(unit.replace("/usr/local/bin/probing", '"%s"' % support.BINARY))
    done = subprocess.run([program, "verify", "--man=no", str(copy)], capture_output=True, text=True,
                          check=False, timeout=60, stdin=subprocess.DEVNULL)
    lines = [line for line in done.stderr.splitlines() if "probing-node" in line]
    assert not lines, done


@pytest.mark.parametrize("name", ["probing-node.service", "daemonset.yaml", "helm/probing/templates/daemonset.yaml",
                                  "helm/probing/templates/judge.yaml"])
def test_options_of_these_files_exist(probing, name):
    """A renamed option would leave daemons that do not start."""
    text = "\n".join(line for line in (DEPLOY / name).read_text().splitlines()
                     if "--" in line and "#" not in line)
    help_text = probing("help", "node").out
    options = set(re.findall(r" (--[a-z]+[a-z-]*)", text))
    assert options and all(option in help_text for option in options), options


def test_the_manifest_is_yaml():
    yaml = pytest.importorskip("yaml")
    manifest, = yaml.safe_load_all((DEPLOY / "daemonset.yaml").read_text())
    pod = manifest["spec"]["template"]["spec"]
    container, = pod["containers"]
    assert manifest["kind"] == "DaemonSet" and pod["hostPID"] is True
    assert manifest["spec"]["selector"]["matchLabels"] == \
        manifest["spec"]["template"]["metadata"]["labels"]
    assert {mount["name"] for mount in container["volumeMounts"]} == \
        {volume["name"] for volume in pod["volumes"]}
    assert container["command"] == ["probing", "node"]


def test_the_manifests_are_of_kubernetes():
    yaml = pytest.importorskip("yaml")
    validate = pytest.importorskip("kubernetes_validate")
    for name in yaml.safe_load((DEPLOY / "kustomization.yaml").read_text())["resources"]:
        for manifest in yaml.safe_load_all((DEPLOY / name).read_text()):
            validate.validate(manifest, validate.latest_version(), strict=True)


def test_the_chart_renders():
    """With all that it has, and as it is."""
    yaml = pytest.importorskip("yaml")
    if not shutil.which("helm"):
        pytest.skip("helm is not installed")
    more = ["--set", "judge=true,clickhouse.url=clickhouse://x/y,serve.tokenSecret=t,webhookSecret=w,operators[0].kind=Group,"
            "operators[0].name=o,operators[0].apiGroup=rbac.authorization.k8s.io"]
    for words, kinds in (([], ["DaemonSet", "ServiceAccount"]),
                         (more, ["DaemonSet", "Deployment", "Role", "RoleBinding", "Service", "Service", "ServiceAccount"])):
        done = subprocess.run(["helm", "template", "night", str(DEPLOY / "helm/probing"), *words], capture_output=True,
                              check=True, text=True)
        manifests = [manifest for manifest in yaml.safe_load_all(done.stdout) if manifest]
        assert sorted(manifest["kind"] for manifest in manifests) == kinds, done.stdout


@needs_clickhouse
@needs_root
@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is not installed")
def test_the_rights_of_the_unit_suffice(folder, tmp_path):  # noqa: F811
    """For rings and metrics of another user's process; the manifest gives the same rights."""
    rights = re.search("^CapabilityBoundingSet=(.*)$", (DEPLOY / "probing-node.service").read_text(), re.M)[1]
    rights = [right[4:].lower() for right in rights.split()]
    assert all('"%s"' % right.upper() in (DEPLOY / "daemonset.yaml").read_text() for right in rights)
    data = folder / "data"
    data.mkdir(mode=0o700)
    os.chown(data, USER, USER)
    shutil.copytree(ROOT / "package", folder / "package")
    shutil.copy(AGENT, folder / "agent.so")
    shutil.copy(support.HERE / "programs/stored.py", folder)
    process = subprocess.Popen(
        [PYTHON, str(folder / "stored.py"), str(folder / "package")], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, **AS_USER,
        env=dict(os.environ, PROBING_DATA_DIR=str(data), PROBING_AGENT=str(folder / "agent.so")))
    try:
        assert process.stdout.readline().startswith(b"ready")
        process.stdin.write(b"100\n")
        process.stdin.flush()
        process.stdout.readline()
        with clickhouse_server.running() as server, subprocess.Popen(
                ["setpriv", "--bounding-set", "-all,+" + ",+".join(rights), "--inh-caps", "-all",
                 "--no-new-privs", support.BINARY, "node", "--to", server.url("rights"), "--every", "100ms",
                 "--metrics", "1s"], env=clickhouse_server.environment(tmp_path), stdin=subprocess.DEVNULL,
                stderr=open(tmp_path / "log", "w")) as node:
            mine = "WHERE pid = %d AND uid = %d" % (process.pid, USER)
            try:
                wait_for(lambda: count(server, "rights.user_stored " + mine) == 100 and
                         count(server, "rights.probing_metrics %s AND metric = 'probing_threads'" % mine),
                         (tmp_path / "log").read_text)
            finally:
                node.terminate()
    finally:
        process.kill()
        process.wait()


def test_what_it_costs(tmp_path):
    """An idle daemon: its memory, and that it does little."""
    with daemon(tmp_path, "--to", "clickhouse://127.0.0.1:1/none", "--state", tmp_path / "s",
                command=NODE) as start:
        node = start()
        wait_for(lambda: "rows wait" in start.log.read_text(), start.log.read_text)
        part, = children(node.pid)
        memory = sum(pss(pid) for pid in (node.pid, part))
    assert memory < 20 << 10, memory


def pss(pid):
    text = Path("/proc/%d/smaps_rollup" % pid).read_text()
    return int(re.search(r"^Pss: +(\d+)", text, re.M)[1])


def used(folder):
    """Bytes that files below it take on the disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def written(pid):
    """Bytes that the parts of a daemon have written, or had the kernel write."""
    total = 0
    for part in children(pid):
        fields = dict(line.split(": ") for line in (Path("/proc/%d/io" % part).read_text().splitlines()))
        total += int(fields["wchar"])
    return total


def record(folder, seconds, size, sparse=False):
    """It gets its name when it is whole, as the agent writes it."""
    path = folder / ("crash-%d-4242.core" % seconds)
    with open(folder / ".new", "wb") as file:
        if sparse:
            file.truncate(size)
        else:
            file.write(os.urandom(1024) * (size // 1024))
    (folder / ".new").rename(path)
    return path.name


def test_what_is_over_the_bound_is_not_copied_again(tmp_path):
    """Three records of 6 MB, of which 10 MiB hold one: it stays the newest, and nothing more is written."""
    own = tmp_path / "data" / "crashes"
    own.mkdir(parents=True, mode=0o700)
    names = [record(own, 8000000000 + number, 6_144_000) for number in range(3)]
    kept = tmp_path / "state" / "crashes" / str(os.geteuid())
    with daemon(tmp_path, "--crashes", "--state", tmp_path / "state", "--max-size", "10", command=NODE,
                data=tmp_path / "data") as start:
        node = start()

        def is_kept(name):  # other tests may have left records, which are older
            return kept.is_dir() and {*names, newest} & set(os.listdir(kept)) == {name}
        newest = None
        wait_for(lambda: is_kept(names[-1]), start.log.read_text)
        before = written(node.pid)
        assert 6_144_000 <= before < 11_000_000
        # A newer record takes its place: then the next round, which checks the old ones again, is over.
        newest = record(own, 8100000000, 6_144_000)
        wait_for(lambda: is_kept(newest), start.log.read_text)
        wait_for(lambda: written(node.pid) >= before + 6_144_000, start.log.read_text)
        assert written(node.pid) < before + 7_000_000


@needs_root
def test_users_share_one_bound(tmp_path):
    """One floods, with files that are holes and of a time to come: the honest ones keep theirs, and the disk
    never has more than the bound."""
    flood, honest = Path("/tmp/probing-%d" % USER), Path("/tmp/probing-%d" % (USER + 1))
    own = tmp_path / "data" / "crashes"
    own.mkdir(parents=True, mode=0o700)
    mine = record(own, 1700000000, 1 << 20)
    state = tmp_path / "state"
    try:
        for base in (flood, honest):
            shutil.rmtree(base, ignore_errors=True)
            (base / "crashes").mkdir(mode=0o700, parents=True)
            base.chmod(0o700)
        for number in range(300):
            record(flood / "crashes", 9900000000 + number, 10 << 20, sparse=True)
        for number in range(1500):
            record(flood / "crashes", 9800000000 + number, 4096)
        theirs = record(honest / "crashes", 1700000001, 2 << 20)
        for base in (flood, honest):
            for path in (base, *base.rglob("*")):
                os.chown(path, int(base.name.split("-")[1]), -1)
        most = []
        with daemon(tmp_path, "--crashes", "--state", state, "--max-size", "10", command=NODE,
                    data=tmp_path / "data") as start:
            node = start()

            def kept():
                most.append(used(state))
                return (state / "crashes" / str(USER + 1) / theirs).exists() and (
                    state / "crashes/0" / mine).exists() and (state / "crashes" / str(USER)).is_dir()
            wait_for(kept, start.log.read_text)
            before = written(node.pid)
            newer = record(own, 1700000005, 1 << 20)
            wait_for(lambda: kept() and (state / "crashes/0" / newer).exists(), start.log.read_text)
            assert written(node.pid) < before + (2 << 20)
        assert max(most) <= 10 << 20
        assert len(list((state / "crashes" / str(USER)).iterdir())) > 100
    finally:
        shutil.rmtree(flood, ignore_errors=True)
        shutil.rmtree(honest, ignore_errors=True)

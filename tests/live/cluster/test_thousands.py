# SPDX-License-Identifier: GPL-3.0-or-later
"""A job of a thousand ranks, simulated with the answers of two real ones; some hosts are dead."""
import json

import jobs
import simulated
import support

PYTHON = "/usr/bin/python3"
LATE, UNREACHABLE = 13, 18


def test_a_late_rank_of_a_thousand_with_dead_hosts(tmp_path):
    count = support.count(1024, 10000)
    with jobs.ranks(PYTHON, 2, source=simulated.RANK % 30):
        looks = jobs.cluster("cluster", "look", jobs.ADDRESS).stdout
    hosts, missing = simulated.write(str(tmp_path), looks, count, 8, late=count // 3, dead=20)
    env = simulated.environment(str(tmp_path))
    done = jobs.cluster("cluster", "hang", "--json", "--timeout", "9s", "--hosts", ",".join(hosts), env=env)
    assert done.returncode == LATE, done
    verdict = json.loads(done.stdout)
    assert verdict["ranks"] == [count // 3]
    assert "rank %d (host%05d, pid " % (count // 3, count // 24) in verdict["sentence"]
    assert "load rank.py" in verdict["sentence"]
    # Hosts that did not answer are named, and their ranks are not called absent.
    dead = {rank // 8 for rank in missing}
    assert [line for line in done.stderr.splitlines() if "no answer within" in line] == [
        "probing: warning: host%05d: no answer within 10 s" % host for host in sorted(dead)]
    # Each with the reason, and all of the time that it was given.
    assert sorted(each["host"] for each in verdict["unanswered"]) == ["host%05d" % host for host in sorted(dead)]
    assert all(each["error"] == "no answer within 10 s" and each["waited_s"] >= 10 for each in verdict["unanswered"])
    assert "\nranks %d-%d,%d-" % (missing[0], missing[7], missing[8]) in verdict["evidence"]
    assert " cannot be read: no host that answered has it\n" in verdict["evidence"]
    tree = jobs.cluster("cluster", "dump", "--timeout", "3s", "--hosts", ",".join(hosts), env=env)
    assert "%d ranks on %d hosts" % (count, len(hosts)) in tree.stdout


def test_a_slow_host_is_given_its_time(tmp_path):
    """It is often the one that matters. All others have answered long before."""
    with jobs.ranks(PYTHON, 2, source=simulated.RANK % 3):
        looks = jobs.cluster("cluster", "look", jobs.ADDRESS).stdout
    hosts, _ = simulated.write(str(tmp_path), looks, 128, 8, late=60, dead=0)
    (tmp_path / (hosts[60 // 8] + ".delay")).write_text("6")
    done = jobs.cluster("cluster", "hang", "--json", "--hosts", ",".join(hosts), env=simulated.environment(str(tmp_path)))
    verdict = json.loads(done.stdout)
    assert done.returncode == LATE and verdict["ranks"] == [60] and verdict["unanswered"] == [], done


def test_the_late_rank_is_on_a_host_that_does_not_answer(tmp_path):
    with jobs.ranks(PYTHON, 2, source=simulated.RANK % 3):
        looks = jobs.cluster("cluster", "look", jobs.ADDRESS).stdout
    hosts, missing = simulated.write(str(tmp_path), looks, 64, 8, late=60, dead=8)
    done = jobs.cluster("cluster", "hang", "--json", "--timeout", "3s", "--hosts", ",".join(hosts),
                        env=simulated.environment(str(tmp_path)))
    assert done.returncode == UNREACHABLE, done
    verdict = json.loads(done.stdout)
    assert verdict["ranks"] == missing == list(range(56, 64)) and verdict["confidence"] == "medium", verdict
    assert "all 56 ranks that answered wait in all_reduce" in verdict["sentence"]
    assert "--timeout" in verdict["next"] and "host00007" in verdict["next"], verdict


def test_one_look_is_not_sure():
    with jobs.ranks(PYTHON, 2, source=simulated.RANK % 3):
        done = jobs.cluster("cluster", "slow", "--duration", "10ms", jobs.ADDRESS)
    assert "slow: rank 1 " in done.stdout and "\n  confidence  low: 1 look\n" in done.stdout, done


# A rank of many that is in many groups of all ranks, as large jobs are. It waits in the last one.
GROUPS = """
import sys, time, types
class Group:
    pass
def all_reduce(tensor, op=None, group=None):
    print("ready", flush=True)
    time.sleep(1000)
module = types.ModuleType("torch.distributed.distributed_c10d")
sys.modules[module.__name__] = module
call = types.FunctionType(all_reduce.__code__, {
    "__name__": module.__name__, "print": print, "time": time}, "all_reduce", (None, None))
groups = [Group() for _ in range(10)]
module._pg_group_ranks = {group: {rank: rank for rank in range(16384)} for group in groups}
module._pg_names = {group: "group %d" % number for number, group in enumerate(groups)}
call(None, group=groups[9])
"""


def test_members_of_many_groups():
    with jobs.ranks("/usr/bin/python3", 1, source=GROUPS, WORLD_SIZE="16384") as ranks:
        support.wait_for_sleep(ranks[0].pid, "nanosleep", timeout=60)
        done = jobs.cluster("cluster", "look", jobs.ADDRESS)
        assert done.returncode == 0, done
        call = json.loads(done.stdout)["ranks"][0]["call"]
        assert (call["group"], call["members"]) == ("group 9", "0-16383"), call

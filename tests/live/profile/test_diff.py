# SPDX-License-Identifier: GPL-3.0-or-later
"""Two recordings beside each other, and parts of the time of one."""
import json
import re

import pytest

import browser
import support

OK, FAILED, USAGE = range(3)
NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
SHARES = support.HERE / "programs" / "shares.py"


@pytest.fixture(name="files", scope="module")
def fixture_files(probing, tmp_path_factory):
    """Recordings of one program, which spends 30 % and then 70 % of its time in heavy()."""
    made = [tmp_path_factory.mktemp("diff") / name for name in ("before.profile", "after.profile")]
    for file, tenths in zip(made, (3, 7)):
        with support.Target(NEWEST, SHARES, tenths) as target:
            assert target.line() == "ready"
            done = probing(target.pid, "perf", "-d", "3s", "-r", 1000, "-o", file)
            assert done.code == OK, done
    return made


def test_what_got_slower(probing, files):
    before, after = files
    done = probing("perf", "--diff", before, after)
    assert done.code == OK and not done.err, done
    head, certain = done.out.split("\nMore than chance, in percent of the run:\n")
    assert re.fullmatch(r"before  \d+  .*shares\.py 3\n {8}Python .* · 1 thread · \d+ samples · .*\n"
                        r"after   \d+  .*shares\.py 7\n {8}Python .*\n", head), head
    row = re.search(r"^ +([\d.]+) % +([\d.]+) % +\+([\d.]+) +\+([\d.]+)…\+([\d.]+) +\+([\d.]+)  "
                    r"heavy +shares\.py:9$", certain, re.M)
    was, now, change, low, high, total = map(float, row.groups())
    assert 20 < was < 40 and 60 < now < 80 and low < change < high and total >= change - 15
    assert re.search(r"^ .* -[\d.]+ .*  light +shares\.py:15$", certain, re.M)
    lines = probing("perf", "--diff", before, after, "--lines").out
    assert re.search(r" heavy +shares\.py:1[12]$", lines, re.M), lines


def test_as_json(probing, files):
    result = json.loads(probing("perf", "--diff", files[0], files[1], "--json").out)
    rows = {row["func"]: row for row in result["functions"]}
    heavy = rows["heavy"]
    assert heavy["first_line"] == 9 and result["mode"] == "cpu"
    for side, file in zip(("before", "after"), files):
        alone = json.loads(probing(file, "perf", "--json").out)
        own = {row["func"]: row for row in alone["functions"]}["heavy"]
        assert heavy[side]["self_ns"] == own["self_ns"] and heavy[side]["total_ns"] == own["total_ns"]
        assert result[side]["weight_ns"] == alone["weight_ns"] and result[side]["pid"] == alone["pid"]
        assert abs(heavy["self"][side] - own["share"]) < 1e-5
    assert heavy["self"]["certain"] and heavy["self"]["chance"] < 0.01
    light = rows["light"]["self"]
    assert light["certain"] and light["change_low"] < light["change"] < light["change_high"] < 0


def test_no_change(probing, files):
    done = probing("perf", "--diff", files[0], files[0])
    assert "\nNo function changed by more than chance explains.\n" in done.out
    assert re.search(r"^.* \+0\.0 .* heavy ", done.out, re.M), done.out


def test_by_one_query(probing, files):
    """Without ATTACH: both are targets."""
    done = probing("-t", files[0], "-t", files[1], "query", "-f", "json",
                   "SELECT func, sum(self_cpu_ms) FILTER (WHERE _target LIKE '%before.profile') AS was, "
                   "sum(self_cpu_ms) FILTER (WHERE _target LIKE '%after.profile') AS now "
                   "FROM profile.functions WHERE func = 'heavy' GROUP BY func, file")
    assert done.code == OK, done
    row, = json.loads(done.out)
    result = json.loads(probing("perf", "--diff", files[0], files[1], "--json").out)
    heavy = {each["func"]: each for each in result["functions"]}["heavy"]
    assert abs(row["was"] - heavy["before"]["self_ns"] / 1e6) < 1e-3
    assert abs(row["now"] - heavy["after"]["self_ns"] / 1e6) < 1e-3


def test_parts_of_the_time(probing, files):
    whole = json.loads(probing(files[0], "perf", "--json", "-m", "wall").out)
    parts = [json.loads(probing(files[0], "perf", "--json", "-m", "wall", *options).out)
             for options in (("--to", "1s"), ("--from", "1s"))]
    assert abs(sum(part["weight_ns"] for part in parts) - whole["weight_ns"]) < 1000
    assert parts[0]["duration_ns"] == 10**9
    none = probing(files[0], "perf", "--from", "1h")
    assert none.code == OK and " 0 samples " in none.out


def test_bad_use(probing, files, tmp_path):
    before, after = files
    (tmp_path / "text.profile").write_text("text")
    for arguments, code, said in (
            (("perf", "--diff", before, after, "-o", tmp_path / "x.svg"), USAGE,
             "a comparison cannot be written as svg"),
            (("perf", "--diff", before, after, "--tid", 1), USAGE, "--tid is not for --diff"),
            (("perf", "--diff", tmp_path / "text.profile", after), FAILED, "text.profile"),
            (("perf", "--diff", tmp_path / "none.profile", after), FAILED, "none.profile"),
            (("perf", after, "--from", "2s", "--to", "1s"), USAGE, "--to has to be after --from")):
        done = probing(*arguments)
        assert done.code == code and said in done.err and not done.out, done
    assert not list(tmp_path.glob("*.svg"))


@pytest.mark.skipif(not browser.COMMAND, reason="chromium is not installed")
def test_page(probing, files, tmp_path):
    page = tmp_path / "diff.html"
    assert probing("flamegraph", "--diff", *files, "-o", page).code == OK
    result = json.loads(probing("perf", "--diff", *files, "--json").out)
    with browser.Browser() as chromium:
        chromium.open(page)
        assert "before: " in chromium.value("document.getElementById('before').textContent")
        assert "points of the run" in chromium.value("document.getElementById('legend').innerText")
        chromium.value("document.querySelector('#pictures [value=time]').click()")
        titles = chromium.value("probing.chart.picture.rows.filter((row) => row.state)"
                                ".map((row) => probing.chart.look.title(row.thread))")
        assert {title.startswith("before: ") for title in titles} == {True, False}
        assert chromium.value("probing.chart.picture.end") == max(
            result[side]["duration_ns"] for side in ("before", "after"))
        chromium.value("document.querySelector('#pictures [value=functions]').click()")
        rows = chromium.value("[...document.querySelectorAll('#functions tbody tr')].map((row) => "
                              "row.innerText.split('\\t'))")
        by_name = {row[-1].split()[0]: row for row in rows}
        for each in result["functions"]:
            row = by_name[each["func"]]
            assert row[:2] == ["%.1f %%" % (100 * each["self"][side]) for side in ("before", "after")]
            assert (not row[2].endswith("?")) == each["self"]["certain"]
            low, high = [float(text.replace("−", "-")) for text in row[3].split("…")]
            assert abs(low - 100 * each["self"]["change_low"]) < 0.1
            assert abs(high - 100 * each["self"]["change_high"]) < 0.1
        widths = [chromium.value("document.querySelector('#widths [value=%s]').click();"
                                 "probing.weighed().whole" % side) for side in ("before", "after")]
        assert widths == [result[side]["weight_ns"] for side in ("before", "after")]
        assert not chromium.errors, chromium.errors

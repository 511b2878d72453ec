# SPDX-License-Identifier: GPL-3.0-or-later
"""A script of forty cases, whose output has to be the same wherever it runs. Of programs/matrix.py."""

import probing

p = probing.current()
threads = {t.name: t for t in p.threads()}
main = next(t for t in threads.values() if t.main)
frame = main.frames[0]
e = frame.locals["everything"]
CASES = """
sorted(name for name in threads if name.startswith("worker"))
[(f.func, f.qualname, f.module, f.line, f.depth) for f in main.frames]
[[f.func for f in threads["worker-%d" % i].frames[:5]] for i in (1, 2)]
sorted(frame.locals)
[f.native for f in main.frames]
frame.source.strip()
str(threads["worker-1"].frames[-4 + 0].func) in ("work", "run")
str(threads["worker-1"].frames[4].locals["held"][0])
e.type.name, e.type.qualname, e.type.module
int(e.number), int(e.negative), int(e.large)
e.number + 0 if isinstance(e.number, int) else e.number == 12
e.half == 0.5, e.half > 0.25, float(e.half)
bool(e.yes), bool(e.nothing), e.nothing == None
str(e.text), len(e.text), "me" in str(e.text)
repr(e.bytes)
[str(x) for x in e.slot], len(e.slot), e.slot[-1] == "three"
e.unset
e.shared == "of the class"
e.missing
e.computed
e.method.type.name
e.table["one"] == 1, e.table[2] == "two", e.table["deep"]["er"]["est"] == "found"
e.table["nothing"]
sorted(str(key) for key in e.table.keys())
e.table.get("nothing", "default"), len(e.table)
sorted(str(x) for x in e.names), [int(x) for x in e.frozen]
[int(x) for x in e.queue], len(e.queue), e.queue[1] == 1
[(str(k), int(v)) for k, v in e.ordered.items()]
{str(k): int(v) for k, v in e.counted.items()}
[int(x) for x in e.default["k"]]
repr(e.point), e.point[1] == "r", e.pair[1][0] == 2
bool(e.empty), len(e.long), sum(int(x) for x in e.long), e.long[-1] == 999
probing.get(e, "type") == "hidden by the stand-in"
e.me == e, e.me.address == e.address, e.other == e
e.other.anything
bool(e.other)
e.number < e.other
[name for name, _ in probing.attributes(e)][:6]
repr(e.array), e.array.type.name
repr(e.point), repr(e.pair), repr(e.slot), repr(e.table)
sorted(str(s.state) for s in p.find("Session")), len(list(p.find("Session", where=lambda s: s.state == "stuck")))
[(h.type.name, how) for h, how in p.referrers(e.point)]
str(p.path_to(e.table["deep"])).split(" in ")[0]
str(frame.globals["kept"][0].state), "nothing" in frame.globals
p.query("SELECT count(*) AS n, 0.5 AS half, NULL AS cell FROM python.threads WHERE name LIKE 'worker%'")
p.query("SELECT name FROM python.locals WHERE func = 'inner' AND depth = 0 GROUP BY name")
p.thread("nobody")
probing.Value(p, 8)
[x.size for x in (e.slot, e.text, e.table, e.names, e.queue, e.large, e.bytes, e.array, e.point, e.default)]
e.size > 0, e.method.size > 0, e.other.size > 0
"""
for number, case in enumerate(CASES.strip().splitlines(), 1):
    try:
        print(number, ascii(eval(case)))
    except probing.Error as error:
        print(number, type(error).__name__)

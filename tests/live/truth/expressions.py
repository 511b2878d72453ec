# SPDX-License-Identifier: GPL-3.0-or-later
"""Expressions around a call: everything that moves its line and its columns."""

WORDS = ["größe", "функция", "函数", "ñandú", "μέθοδος", "x", "step", "load_batch", "𝒳y", "ᵫz"]
TEXTS = ["é", "日本語", "🎈", "abc", "naïve ☕", "Ω" * 90, "🎉" * 70, "a" * 300, "\\n", "\\t{}"]


class Expressions:
    """Needs self.rng and self.version. The value of every expression made here is a number."""

    def newline(self):
        """Between two tokens inside brackets: mostly a blank, sometimes lines, sometimes many."""
        draw = self.rng.random()
        if draw < 0.72:
            return " "
        if draw < 0.93:
            return "\n" + " " * self.rng.randrange(0, 40)
        if draw < 0.96:
            return "  # " + self.text() + "\n"
        if draw < 0.99:
            return "\n" * self.rng.randrange(2, 40)
        return "\n" * self.rng.choice([120, 127, 128, 129, 255, 300, 513])

    def text(self):
        return self.rng.choice(TEXTS)

    def literal(self):
        return '"%s"' % self.text()

    def wrap(self, call, walrus=False):
        """@call inside zero to three random expressions."""
        for _ in range(self.rng.choice([0, 0, 1, 1, 1, 2, 3])):
            call = self.wrap_once(call, walrus)
        return call

    def wrap_once(self, call, walrus):
        n = self.newline
        forms = [
            lambda: "(%s%s%s)" % (n(), call, n()),
            lambda: "(1 -%s1 + %s)" % (n(), call),
            lambda: "(%s%s+ 0 *%s2)" % (call, n(), n()),
            lambda: "[%s,%s%s][1]" % (self.literal(), n(), call),
            lambda: "{%s:%s%s}[%s%s]" % ((k := self.literal()), n(), call, n(), k),
            lambda: "(%s if%s1 else 0)" % (call, n()),
            lambda: "(0 if%s0 else%s%s)" % (n(), n(), call),
            lambda: "(1 and%s%s)" % (n(), call),
            lambda: "(None or%s%s%s)" % (n(), call, n()),
            lambda: "max(%s0,%s%s,%skey=None)" % (n(), n(), call, n()) if self.version > (3, 7)
            else "max(%s0,%s%s)" % (n(), n(), call),
            lambda: "int(%s%s%s)" % (n(), call, n()),
            lambda: "abs(%s-%s%s)" % (n(), n(), call),
            lambda: "((0 <%s%s <=%s9) *%s1)" % (n(), call, n(), n()),
            lambda: "dict(%sa=1,%sb=%s)[%s'b']" % (n(), n(), call, n()),
            lambda: "(Chain(%s0)%s.add(%s1)%s.add(%s%s)%s.value)" % (
                n(), n(), n(), n(), n(), call, n()),
            lambda: "(%s.strip()%sand%s%s)" % ('"1"' + self.literal(), n(), n(), call),
            lambda: "(lambda a,%sb=2: a)(%s%s)" % (n(), n(), call),
            lambda: "(lambda *a: %s)(%s1,%s2)" % (call, n(), n()),
            lambda: "(%s,%s%s,)[%s-1:][0]" % (self.literal(), n(), call, n()),
            lambda: "(not%snot%s%s) + 0" % (n(), n(), call),
            lambda: "([1, 2]%s[%s0 * %s:]%s)[0]" % (n(), n(), call, n()),
        ]
        if self.version >= (3, 5):
            forms.append(lambda: "len([%s*%s(%s,)])" % (n(), n(), call))
            forms.append(lambda: "sum([%s*[0],%s*[%s]]%s)" % (n(), n(), call, n()))
        if self.version >= (3, 6):
            forms.append(lambda: self.f_string(call))
        if self.version >= (3, 8) and walrus:
            forms.append(lambda: "(%s :=%s%s)" % (self.rng.choice(WORDS), n(), call))
        return self.rng.choice(forms)()

    def f_string(self, call):
        if self.version >= (3, 12):
            return 'int(f"%s{ %s%s:>3}"[%s-1:])' % (
                self.rng.choice(["é", "🎈", "x"]), call, self.newline(), self.newline())
        if any(char in call for char in "\n\"\\#{}"):
            return "(0 or %s)" % call
        if self.rng.random() < 0.5:
            return 'int(f"%s{%s}"[-1:])' % (self.rng.choice(["é", "🎈", "x"]), call)
        return 'int(f"""\n\n%s{%s!r:>3}"""[-1:])' % (self.rng.choice(["é", "🎈", "x"]), call)

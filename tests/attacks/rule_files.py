"""Hostile rule files: a fixed list, and mutations of good ones."""

import random
from pathlib import Path

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "rules").glob("*.rules"))
DECLARED = "var x, y\nvar p: 3\nbool a, b\nclass f: 3\n"
WORDS = """
rule let var class bool mask axis group constant membership if then and or not iff implies given in is all any
( ) [ ] { } : ; , = == <= < > + - * / ** @ | & ~ >> ^ ... None nan inf 1e999 -1 0 1e308 " ' \\ # lambda __import__ self True é
"""
TOKENS = WORDS.split()
TOKENS += ["\x00", "\t", "\u202e", "\U0001d4b3", "\ufeff", "x.__class__", "9" * 400]


def nested(name, count):
    """``Iff(Iff(Iff(a0, a1), a2), ...)``, by lets: brackets that deep are refused as they are read."""
    names = ", ".join(f"a{place}" for place in range(count))
    lines = "".join(f"let t{place} = {name}(t{place - 1}, a{place})\n" for place in range(1, count))
    return f"bool {names}\nlet t0 = a0\n{lines}rule r: t{count - 1}"


def lets(start, step, count, rule):
    """A chain of lets, each of which uses the one before it, perhaps several times."""
    lines = "".join(f"let t{place + 1} = {step.format(place)}\n" for place in range(count))
    return f"{start}\n{lines}rule r: {rule}"


def fixed():
    """By name, the bytes of files that a person would not write."""
    found = {
        "empty": "",
        "only a comment": "# nothing",
        "only blanks": " \t\n \n",
        "no rule": "var x",
        "NUL": "var x\x00\nrule r: x <= 1",
        "NUL in a name": "var x\x00y\nrule r: x <= 1",
        "a name of a hundred thousand letters": f"var {'x' * 100_000}\nrule r: {'x' * 100_000} <= 1",
        "a number of ten thousand digits": f"var x\nrule r: x <= {'9' * 10_000}",
        "a number without end": f"var x\nrule r: x <= 0.{'1' * 100_000}",
        "not a number": "var x\nrule r: x <= nan",
        "infinity": "var x\nrule r: x <= inf",
        "an overflow": "var x\nrule r: x <= 1e999",
        "an overflow by arithmetic": "var x\nrule r: x <= 1e308 * 1e308",
        "division by zero": "var x\nrule r: x <= 1 / 0",
        "a power tower": "var x\nrule r: x <= 9 ** 9 ** 9 ** 9",
        "a large power": "var x\nrule r: x <= 10 ** 100000000",
        "a negative power": "var x\nrule r: x <= 0 ** -1",
        "a complex power": "var x\nrule r: x <= (-1) ** 0.5",
        "a shift": "var x\nrule r: x <= 1 << 1000000000000",
        "brackets": f"var x\nrule r: {'(' * 20_000}x <= 1{')' * 20_000}",
        "open brackets": f"var x\nrule r: {'(' * 50_000}",
        "negations": f"bool a\nrule r: {'~' * 20_000}a",
        "the word not": f"bool a\nrule r: {'not ' * 20_000}a",
        "minus signs": f"var x\nrule r: {'-' * 20_000}x <= 1",
        "a chain of implications": f"bool a\nrule r: {' >> '.join(['a'] * 5_000)}",
        "a long conjunction": f"bool a\nrule r: {' and '.join(['a'] * 20_000)}",
        "a long sum": f"var x\nrule r: {' + '.join(['x'] * 5_000)} <= 1",
        "a chained comparison": f"var x\nrule r: {' <= '.join(['x'] * 3_000)}",
        "a list of lists": f"constant c = {'[' * 5_000}1{']' * 5_000}\nvar x\nrule r: x <= c",
        "a ragged list": "constant c = [[1, 2], [3]]\nvar x: 2\nrule r: (x <= c).all()",
        "an empty list": "constant c = []\nvar x: 2\nrule r: (x <= c).all()",
        "a huge axis": "var x: 1000000000000\nrule r: (x <= 1).all()",
        "huge axes": "var x: 100000, 100000\nrule r: (x <= 1).all()",
        "an axis of nothing": "var x: 0\nrule r: (x <= 1).all()",
        "a negative axis": "var x: -3\nrule r: (x <= 1).all()",
        "a fraction of an axis": "var x: 2.5\nrule r: (x <= 1).all()",
        "a huge class": "class f: 1000000000\nrule r: f == 1",
        "a class of one": "class f: 1\nrule r: f == 0",
        "a class of none": "class f: 0\nrule r: f == 0",
        "no classes": "class f: {}\nrule r: f == 0",
        "a class twice": "class f: {a, a}\nrule r: f is a",
        "many classes": f"class f: {{{', '.join(f'c{place}' for place in range(3_000))}}}\nrule r: f is c1",
        "an index too large": "var p: 3\nrule r: p[3] <= 1",
        "an index far too large": "var p: 3\nrule r: p[99999999999999999999] <= 1",
        "a slice of nothing": "var p: 3\nrule r: (p[5:2] <= 1).all()",
        "a slice with step 0": "var p: 3\nrule r: (p[::0] <= 1).all()",
        "too many indices": f"var p: 3\nrule r: p{'[0]' * 100} <= 1",
        "new axes without end": f"var p: 3\nrule r: (p[{', '.join(['None'] * 100)}, :] <= 1).all()",
        "axes that do not fit": "var p: 3\nvar q: 2\nrule r: (p <= q).all()",
        "an axis that is left": "var p: 3\nrule r: p <= 1",
        "dimensions that are not there": "var p: 3\nrule r: (p <= 1).all(7)",
        "an unknown name": "rule r: z <= 1",
        "a name twice": "var x\nvar x\nrule r: x <= 1",
        "a rule twice": "var x\nrule r: x <= 1\nrule r: x <= 2",
        "a reserved name": "var index\nrule r: index <= 1",
        "a name of Python": "var __class__\nrule r: __class__ <= 1",
        "an attribute": "var x\nrule r: x.__class__ <= 1",
        "an import": "rule r: __import__('os').system('true')",
        "a call": "var x\nrule r: print(x) <= 1",
        "a lambda": "var x\nrule r: (lambda: x)() <= 1",
        "a rule that uses itself": "rule r: r",
        "a let that uses itself": "let t = t\nrule r: t",
        "a range the wrong way": "var x in [1, 0]\nrule r: x <= 1",
        "a range of nothing": "var x in []\nrule r: x <= 1",
        "an axis without a length": "axis n\nvar x: n\nrule r: (x <= 1).all()",
        "an axis of length 0": "axis n max 0\nvar x: n\nrule r: (x <= 1).all()",
        "a mask as a formula": "mask m: 3\nrule r: m",
        "a class as a formula": "class f: 3\nrule r: f",
        "a number as a formula": "rule r: 1",
        "a text as a formula": 'rule r: "x"',
        "an open quotation": 'class f: {"a, b}\nrule r: f is a',
        "escapes": 'class f: {"\\ud800", "\\x", b}\nrule r: f is b',
        "a text that breaks the line": 'class f: {"a\nb", c}\nrule r: f is c',
        "many rules": DECLARED + "".join(f"rule r{place}: x <= {place}\n" for place in range(150)),
        "many lets": DECLARED + "".join(f"let t{place} = x + {place}\n" for place in range(2_000)) + "rule r: t1 <= 1",
        "forty nested Iffs": nested("Iff", 40),
        "twenty nested Xors": nested("Xor", 20),
        "three hundred nested Iffs": nested("Iff", 300),
        "lets that double a term": lets("var x\nlet t0 = x", "t{0} + t{0}", 200, "t200 <= 1"),
        "lets that multiply a term": lets("var x\nlet t0 = x", "t{0} * t{0}", 60, "t60 <= 1"),
        "lets that double for long": lets("var x\nlet t0 = x", "0.5 * (t{0} + t{0})", 2_000, "t2000 <= 1"),
        "lets that double a conjunction": lets("bool a\nlet t0 = a", "t{0} & t{0}", 200, "t200"),
        "lets that almost double too often": lets("bool a\nlet t0 = a", "t{0} | t{0}", 17, "t17"),
        "lets that double a formula": lets("bool a, b\nlet t0 = a", "(t{0} & a) | (t{0} & b)", 30, "t30"),
        "lets that nest a formula": lets("bool a, b\nlet t0 = a", "(t{0} & a) | b", 200, "t200"),
        "lets of equivalences": lets("bool a, b\nlet t0 = a", "t{0} iff (t{0} >> b)", 40, "t40"),
        "AtMost of many": f"bool a: 40\nrule r: AtMost(20, {', '.join(f'a[{place}]' for place in range(40))})",
        "ExactlyOne of many": f"bool a: 300\nrule r: ExactlyOne({', '.join(f'a[{place}]' for place in range(300))})",
        "AtMost of a negative number": "bool a, b\nrule r: AtMost(-1, a, b)",
        "AtMost of nothing": "rule r: AtMost(1)",
        "a negative margin": "var x\nrule r: lt(x, 1, margin=-1)",
        "a margin that is no number": "var x\nrule r: lt(x, 1, margin=nan)",
        "an argument twice": "var x\nrule r: lt(x, 1, margin=1, margin=1)",
        "evidence of nothing": "var x\nrule r: evidence(x)",
        "evidence above one": "bool a, b\nrule r: Implies(a, b, evidence=7)",
        "indented": "    var x\n        rule r: x <= 1",
        "tabs": "\tvar x\n\t\trule r: x <= 1",
        "a form feed": "var x\n\x0crule r: x <= 1",
        "a line separator": "var x\u2028rule r: x <= 1",
        "right to left": "var x\nrule \u202er: x <= 1",
        "digits of another script": "var x\nrule r: x <= \u0661",
        "letters that look alike": "var \u0445\nrule r: x <= 1",
        "carriage returns": "var x\rrule r: x <= 1\r",
        "HTML": "<!DOCTYPE html><html><body>404</body></html>",
        "Python": "import dualogic as dl\nx = dl.var('x')\nrule = x <= 1\n",
        "JSON": '{"rules": {"r": "x <= 1"}}',
        "a format string": "var x\nrule r: x <= {x!r:%s%n}",
    }
    files = {name: text.encode("utf-8", "surrogatepass") for name, text in found.items()}
    files["Latin-1"] = "var größe\nrule r: größe <= 1".encode("latin-1")
    files["UTF-16"] = "var x\nrule r: x <= 1".encode("utf-16")
    files["two byte order marks"] = b"\xef\xbb\xbf\xef\xbb\xbfvar x\nrule r: x <= 1"
    files["a ZIP file"] = b"PK\x03\x04" + bytes(range(256))
    files["a very long line"] = b"# " + b"x" * (3 << 20)
    files["four megabytes and more"] = b"#" * (5 << 20)
    return files


def mutate(content, draw):
    """A good file with one to five small faults."""
    text = content.decode()
    for _ in range(draw.choice([1, 1, 2, 5])):
        kind = draw.randrange(7)
        place, other = sorted(draw.randrange(len(text) + 1) for _ in range(2))
        other = min(other, place + 40)
        if kind == 0:
            text = text[:place] + text[other:]
        elif kind == 1:
            text = text[:place] + draw.choice(TOKENS) + text[place:]
        elif kind == 2:
            text = text[:other] + text[place:other] + text[other:]
        elif kind == 3:
            text = text[:place] + f" {draw.choice(TOKENS)} " + text[other:]
        elif kind == 4:
            lines = text.split("\n")
            draw.shuffle(lines)
            text = "\n".join(lines)
        elif kind == 5:
            text = text[:place]
        else:
            text = text[:place] + chr(draw.randrange(0x3000)) + text[place + 1 :]
        text = text or "x"
    return text.encode("utf-8", "replace")


def mutated(seed):
    """A mutation of an example or of a small file."""
    draw = random.Random(seed)
    small = DECLARED + "rule r: if a and f is 1 then (p <= 0.5).all() or x + y >= 2\nrule s: b iff not a\n"
    return mutate(draw.choice([path.read_bytes() for path in EXAMPLES] + [small.encode()] * len(EXAMPLES)), draw)

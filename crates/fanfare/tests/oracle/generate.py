"""Random template documents, messages for them, and damage to their bytes."""

import re
from xml.sax.saxutils import escape

from codec import RESET
from convert import Number
from templates import BYTES, INTEGERS, OPERATORS

TYPES = [*INTEGERS, *INTEGERS, "decimal", "decimal", "parts", *BYTES, *BYTES]
PLAIN = ["uInt32", "uInt32", "int32", "uInt8", "uInt16", "uInt64", "int64", "decimal", "ascii"]
DICTIONARIES = ["template", "type", "global", "mine", "yours"]
SAME = {"length": "uInt32", "exponent": "int32", "mantissa": "int64"}
SPACE = "http://www.fixprotocol.org/ns/fast/td/1.1"
MARK = 9999  # the template that tells packets apart
LETTERS = {
    "ascii": ["A", "B", "z", "\0", "~", "\x7f", " "],
    "unicode": ["A", "é", "\U0001f600", "߿", "\0", "\x80", "￿"],
}


class Documents:
    """Makes template documents from a random number generator."""

    def __init__(self, random):
        self.random = random

    def chance(self, of):
        return self.random.random() < of

    def document(self):
        """Returns a document, with the template Mark in it."""
        self.types = PLAIN if self.chance(0.35) else TYPES
        # A kernel decodes long runs of plain fields at once.
        self.composites = 0.09 if self.types is PLAIN and self.chance(0.5) else 0.2
        self.statics = [f"S{n}" for n in range(self.random.randint(0, 2))]
        if self.types is PLAIN:
            self.statics = []
        out = [self.template(name, None, []) for name in self.statics]
        for n in range(self.random.randint(1, 4)):
            number = self.random.choice([n, 126 + n, 20000 + n, 4294967290 + n])
            out.append(self.template(f"T{n}", number, self.statics))
            if self.chance(0.2):
                self.statics.append(f"T{n}")
        if self.chance(0.15):
            out.append(self.template("Clear", 120, []).replace("<templateRef/>", ""))
        if self.statics[:1] == ["S0"] and self.chance(0.2):
            out.append(self.template("S0", None, [], "other"))
        self.random.shuffle(out)
        mark = f'<template name="Mark" id="{MARK}"><uInt32 name="N"/></template>'
        return self.dressed(f"<templates{self.inherited()}>{''.join(out)}{mark}</templates>")

    def dressed(self, text):
        """Returns the same document in another form: prefixes, comments, foreign elements."""
        roll = self.random.random()
        if roll < 0.2:
            text = re.sub(r"<(/?)(?=\w)", r"<\1td:", text)
            text = text.replace("<td:templates", f"<td:templates xmlns:td='{SPACE}'", 1)
        elif roll < 0.4:
            text = text.replace("<templates", f"<templates xmlns='{SPACE}'", 1)
        if self.chance(0.3):
            noise = ["<!-- <copy/> -->", "\n  ", "<q:note>x<copy/></q:note>", "<?pi copy?>"]
            text = text.replace("templates", "templates xmlns:q='urn:q' q:by='1'", 1)
            text = re.sub(r"(?<=>)(?=<)", lambda _: self.random.choice([""] * 12 + noise), text)
        return text

    def inherited(self):
        text = ""
        if self.chance(0.15):
            text += f' dictionary="{self.random.choice(DICTIONARIES)}"'
        return text + self.namespace(0.1)

    def namespace(self, of):
        return f' ns="{self.random.choice(["", "n", "m"])}"' if self.chance(of) else ""

    def template_ns(self, of):
        return f' templateNs="{self.random.choice(["", "other"])}"' if self.chance(of) else ""

    def template(self, name, number, statics, ns=None):
        self.count = 0  # so that templates share names, and the keys that are made of them
        size = self.random.choice([1, 2, 3, 5, 8, 8, 21, 22, 40, 70])
        if self.types is PLAIN and self.chance(0.1):
            size = 150
        if name.startswith("S"):
            size = min(size, 6)
        attributes = "" if number is None else f' id="{number}"'
        if number is not None and self.chance(0.08):
            attributes += ' reset="yes"'
        if ns is not None:
            attributes += f' templateNs="{ns}"'
        elif not name.startswith("S"):
            attributes += self.template_ns(0.1)
        inner = self.type_ref() + self.instructions(size, statics, 0)
        return f'<template name="{name}"{attributes}{self.inherited()}>{inner}</template>'

    def type_ref(self):
        return f'<typeRef name="{self.random.choice("XYZ")}"/>' if self.chance(0.25) else ""

    def instructions(self, size, statics, depth):
        out, names = [], set()
        for _ in range(size):
            roll = self.random.random()
            if roll < 0.05 and statics:
                name = self.random.choice(statics)
                if name not in names:
                    out.append(f'<templateRef name="{name}"{self.template_ns(0.15)}/>')
                names.add(name)
            elif roll > 0.999:
                out.append('<templateRef name="Nowhere"/>')
            elif roll > 0.98 and self.types is TYPES:
                out.append(self.bit_group(len(out)))
            elif roll < 0.07 and depth == 0 and self.types is TYPES:
                if "templateRef" not in names:
                    out.append("<templateRef/>")
                names.add("templateRef")
            elif roll < self.composites and depth < 3:
                out.append(self.composite(statics, depth))
            else:
                out.append(self.field(names))
        return "".join(out)

    def composite(self, statics, depth):
        kind = self.random.choice(["group", "sequence"])
        self.count += 1
        name = f"{kind}{self.count}"
        length = ""
        if kind == "sequence" and self.chance(0.6):
            of = f' name="L{self.count}"' if self.chance(0.5) else ""
            length = f"<length{of}{self.namespace(0.1)}>{self.operator('length')}</length>"
        size = self.random.choice([0, 1, 2, 3, 5, 9])
        inner = self.type_ref() + length + self.instructions(size, statics, depth + 1)
        return f'<{kind} name="{name}"{self.presence()}{self.inherited()}>{inner}</{kind}>'

    def presence(self):
        return self.random.choice(["", ' presence="mandatory"', *[' presence="optional"'] * 2])

    def field(self, names):
        type_ = self.random.choice(self.types)
        free = [n for n in range(100) if f"{type_}{n}" not in names]
        name = f"{type_}{free[0] if self.chance(0.7) else self.random.choice(free)}"
        names.add(name)
        self.optional = ""
        attributes = self.presence() + self.namespace(0.05)
        self.optional = "optional" in attributes
        element, inner = type_, ""
        if type_ == "parts":
            element = "decimal"
            both = self.random.choice([(1, 1), (1, 1), (0, 1), (1, 0)])
            for part, has in zip(("exponent", "mantissa"), both, strict=True):
                inner += f"<{part}>{self.operator(part)}</{part}>" if has else ""
        elif type_ == "int64" and self.chance(0.2):
            element = "timestamp"  # of FAST 1.2
        elif type_ in ("ascii", "unicode"):
            element = "string"
            if type_ == "unicode" or self.chance(0.2):
                attributes += f' charset="{type_}"'
        if type_ in ("unicode", "byteVector") and self.chance(0.2):
            inner += '<length name="Len"/>'
        if type_ != "parts":
            inner += self.operator(type_)
        return f'<{element} name="{name}"{attributes}>{inner}</{element}>'

    def bit_group(self, number):
        """Returns a bit group of FAST 1.2."""
        members, width = "", 0
        for index in range(self.random.randint(1, 5)):
            size = self.random.choice([1, 1, 2, 3, 5, 7, 13])
            kind = self.random.choice(["uInt", "uInt", "int"])
            presence = ' presence="optional"' if kind == "uInt" and self.chance(0.2) else ""
            name = "boolean" if size == 1 and not presence else f"{kind}{size}"
            members += f'<{name} name="m{index}"{presence}/>'
            width += size
        kind = self.random.choice(["none", "none", "constant", "default", "copy", "delta"])
        operator = "" if kind == "none" else f"<{kind}/>"
        if kind in ("constant", "default") or kind != "none" and self.chance(0.4):
            operator = f'<{kind} value="{self.random.getrandbits(width)}"/>'
        name = f"bits{width}-{number}"
        return f'<bitGroup name="{name}"{self.presence()}>{members}{operator}</bitGroup>'

    def operator(self, type_):
        kinds = ["none", "constant", "default", "copy", "copy", "delta", "delta"]
        if type_ in BYTES:
            kinds += ["tail", "tail"]
        elif type_ != "decimal":
            kinds += ["increment", "increment"]
        kind = self.random.choice(kinds)
        if kind == "none":
            return ""
        attributes = ""
        if kind in ("constant", "default") or self.chance(0.4):
            attributes = f' value="{self.initial(type_, kind == "constant")}"'
        if kind not in ("constant", "default"):
            if self.chance(0.25):
                attributes += f' dictionary="{self.random.choice(DICTIONARIES)}"'
            if self.chance(0.2):
                shared = SAME.get(type_, type_) if self.chance(0.9) else "any"
                attributes += f' key="{shared}-{self.random.randint(0, 1)}"{self.namespace(0.1)}'
        return f"<{kind}{attributes}/>"

    def initial(self, type_, constant):
        pick = self.random
        if type_ == "length":
            return str(pick.choice([0, 1, 2, 3] if constant else [0, 1, 5, 4294967295]))
        if type_ == "exponent":
            return str(pick.choice([0, -2, 2, -63, 63]))
        if type_ in INTEGERS or type_ == "mantissa":
            low, high = INTEGERS["int64" if type_ == "mantissa" else type_]
            number = pick.choice([low, high, 0, 1, high - 1, low + 1, pick.randint(low, high)])
            return pick.choice(["{}", "{}", " {} ", "{}&#10;"]).format(number)
        if type_ == "decimal":
            return pick.choice(["0", "0.00", "12000", "10.50", ".5", "-7.25", "-0", "1" + "0" * 63,
                                "9223372036854775807", "0." + "0" * 62 + "1", "5.0", "007"])
        if type_ == "byteVector":
            return pick.choice(["", "00", "c0 ff", "0A0b 0C", "80 80 80"])
        letters = [c for c in LETTERS[type_] if c not in "\0\uffff"]
        text = "".join(pick.choice(letters) for _ in range(pick.choice([0, 1, 3, 7])))
        return escape(text, {'"': "&quot;", "\x7f": "&#127;", "\x80": "&#128;"})


def miswritten(pick, text):
    """Returns the document with one modification, mostly an invalid one."""
    junk = ["", " ", "x", "-1", "256", "-129", "1.5", ".", "1e3", "0x1", "é", "0g", "a", "-0",
            "0 a", str(1 << 63), str(1 << 64), "1" + "0" * 82, "+1"]
    ways = [
        (r' value="[^"]*"', lambda _: f' value="{pick.choice(junk)}"'),
        (r' value="[^"]*"', lambda _: ""),
        (r"<((?:td:)?)(constant|default|copy|increment|delta|tail)\b",
         lambda m: f"<{m[1]}{pick.choice(OPERATORS)}"),
        (r"<((?:td:)?)(copy|delta|tail|increment)[^>]*/>", lambda m: m[0] + f"<{m[1]}copy/>"),
        (r' name="[^"]*"', lambda _: ""),
        (r' (presence|charset)="[^"]*"', lambda m: f' {m[1]}="some"'),
        (r"<(/?(?:td:)?)(uInt32|string|decimal|group|sequence|length)\b",
         lambda m: f"<{m[1]}uInt24"),
        (r"[<>/\"]", lambda _: ""),
    ]
    pattern, to = pick.choice(ways)
    found = list(re.finditer(pattern, text))
    if not found:
        return text
    one = pick.choice(found)
    return text[: one.start()] + to(one) + text[one.end() :]


class Messages:
    """Makes messages of templates, with values similar to those before them."""

    def __init__(self, random, templates):
        self.random, self.templates, self.recent = random, templates, {}
        self.roots = [one for one in templates.by_id.values() if one.id != MARK]

    def chance(self, of):
        return self.random.random() < of

    def message(self, depth=0):
        if depth > 2 or self.chance(0.03):
            template = self.templates.by_id.get(120, RESET)
            return template, self.values(template.inner, depth)
        template = self.random.choice(self.roots[: 1 if depth or self.chance(0.5) else None])
        return template, self.values(template.inner, depth)

    def values(self, instructions, depth):
        return [self.value(one, depth) for one in instructions]

    def value(self, one, depth):
        if one.type == "static":
            target = self.templates.by_key.get(one.refers)
            return target and self.values(target.inner, depth)
        if one.type == "dynamic":
            return self.message(depth + 1)
        if one.optional and self.chance(0.25):
            return None
        if one.type == "group":
            return self.values(one.inner, depth)
        if one.type == "sequence":
            count = self.random.choice([0, 1, 1, 2, 3])
            if depth == 0 and self.chance(0.02):
                count = self.random.choice([17, 40])
            if one.length.kind == "constant" and not self.chance(0.02):
                count = one.length.value
            elif one.length.value is not None and one.length.value < 9 and self.chance(0.3):
                count = one.length.value
            return [self.values(one.inner, depth + 1) for _ in range(count)]
        if one.parts:
            exponent, mantissa = one.parts
            return (max(-63, min(63, self.primitive("int8", exponent))),
                    self.primitive("int64", mantissa))
        return self.primitive(one.type, one.operator)

    def primitive(self, type_, operator):
        if operator.kind == "constant" and (type_ == "decimal" or not self.chance(0.001)):
            return operator.value  # a decimal constant may be given in another form
        recent = self.recent.setdefault(type_, [])
        if operator.value is not None and self.chance(0.25):
            value = operator.value
        elif recent and self.chance(0.6):
            value = self.near(type_, self.random.choice(recent[-3:]), operator)
        else:
            value = self.fresh(type_)
        recent.append(value)
        return value

    def near(self, type_, value, operator):
        pick = self.random
        if type_ in INTEGERS:
            low, high = INTEGERS[type_]
            value += pick.choice([0, 0, 1, 1, 1, -1, 2, 64, -65])
            return low + (value - low) % (high - low + 1)
        if type_ == "decimal":
            exponent = max(-63, min(63, value[0] + pick.choice([0, 0, 0, 1, -1])))
            return exponent, self.near("int64", value[1], operator)
        keep = pick.randint(0, len(value))
        fresh = self.fresh(type_)
        if operator.kind == "tail":
            rest = len(value) - keep  # as long as before, at least
            value = value[:keep] + (self.fresh(type_) * rest)[: max(rest, pick.randint(0, 20))]
            value = value if len(value) - keep >= rest else value + b"~" * rest
        else:
            value = pick.choice([value, value[:keep] + fresh, fresh + value[keep:]])[:200]
        return value.decode(errors="ignore").encode() if type_ == "unicode" else value

    def fresh(self, type_):
        pick = self.random
        if type_ in INTEGERS:
            low, high = INTEGERS[type_]
            bits = pick.randint(0, high.bit_length())
            small = pick.getrandbits(bits) * (-1 if low and self.chance(0.5) else 1)
            return pick.choice([small, small, small, low, high])
        if type_ == "decimal":
            return pick.choice([0, -2, pick.randint(-63, 63)]), self.fresh("int64")
        if type_ == "byteVector":
            return pick.randbytes(pick.choice([0, 1, 2, 5, 9, 130]))
        size = pick.choice([0, 1, 2, 3, 4, 5, 8, 9, 17])
        return "".join(pick.choice(LETTERS[type_]) for _ in range(size)).encode()


def foreign(pick):
    """Returns a value of any type, for a field of any other."""
    edge = pick.choice([1 << 63, 1 << 64, 1 << 31, 1 << 32, 128, 256, 10**19, 10**20])
    number = pick.choice([pick.getrandbits(pick.randint(0, 64)), edge + pick.randint(-1, 1)])
    number *= pick.choice([1, -1])
    kind = pick.randrange(5)
    if kind == 0:
        return number
    if kind == 1:
        near = max(-(1 << 63), min((1 << 63) - 1, number))
        mantissa = pick.choice([0, near, pick.randint(-20000, 20000) * pick.choice([1, 10, 1000])])
        return Number((pick.choice([0, 0, -1, -2, 5, pick.randint(-63, 63)]), mantissa))
    if kind == 2:
        form = pick.choice(["{}", " {} ", "{}\n", "+{}", "{}.0", "{}.5", "-{}", ".{}", "{}.",
                            "0x{}", "{} 1", "{}0", "\u00a0{}"])
        return form.format(pick.choice([0, 7, 300, number, "00012"]))
    if kind == 3:
        return pick.choice(["", "é", "abc", "0g", "a", "AB cd", "\t0a\r\nFF", "12.50", "-0.00",
                            ".", "0." + "0" * 63 + "1", "1" + "0" * 80, "1e5", "\0", "１２",
                            "0" * 99, "1." + "0" * 64, "0." + "0" * 62 + "10"])
    return pick.randbytes(pick.randrange(4))


def damaged(random, data):
    """Returns the bytes with damage, most of the time."""
    data = bytearray(data)
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        at = random.randrange(len(data)) if data else 0
        kind = random.randrange(7)
        if kind == 0 or not data:
            data[at:at] = random.choice([b"\x00", b"\x7f", b"\x00\x00", random.randbytes(1)])
        elif kind == 1:
            data[at] ^= 1 << random.randrange(8)
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at]
        elif kind == 4:
            data[at] = random.choice([0, 0x7F, 0x80, 0x81, 0xFF, 0xC0])
        elif kind == 5:
            data[at:at] = bytes([data[at] & 0x7F]) * random.choice([1, 4, 9, 12])
        else:
            data[at] ^= 0x80
    return bytes(data) or b"\x80"

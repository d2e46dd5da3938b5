"""A FAST 1.1 decoder and encoder, written from the specification: slow, obvious, one at a time.

A message is `(template, values)`, a value for each instruction: int, `(exponent, mantissa)`,
bytes (strings too), None, a list of values for a group, a list of lists for a sequence, a list
for a static reference, a message for a dynamic one.
"""

import copy

from templates import BYTES, INTEGERS, Template
from wire import (
    LIMIT, FastError, Reader,
    put_bits, put_octets, put_packed, put_signed, put_text, put_unsigned,
)

EMPTY = object()  # a previous value that is absent (6.3.1)
UNDEFINED = object()
RESET = Template("Reset", None, 120, True, None, [])
INT64 = (-(1 << 63), (1 << 63) - 1)
HUGE = 1 << 4096  # differences have no bounds of their own


class Codec:
    """The state of decoder and encoder: dictionaries and the template identifier."""

    def __init__(self, templates):
        self.templates = templates
        self.clear()

    def clear(self):
        """Resets the state, as Reset and the start of a packet do."""
        self.values, self.identifier = {}, None

    def enter(self, template):
        """Applies the resets of a template."""
        if template.id == 120:
            self.clear()
        elif template.reset:
            self.values = {}

    def by_id(self, number):
        template = self.templates.by_id.get(number, RESET if number == 120 else None)
        if template is None:
            raise FastError("D9")
        return template

    def static(self, one):
        target = self.templates.by_key.get(one.refers)
        if target is None:
            raise FastError("D8")
        return target

    def entry(self, operator, app_type):
        scope = {"template": ("template", operator.template), "type": ("type", app_type),
                 "global": "global"}.get(operator.dictionary, ("user", operator.dictionary))
        return scope, operator.key

    def previous(self, operator, app_type, type_):
        """Returns the previous value, which has the field's type (D4); an empty one has none."""
        kind, value = self.values.get(self.entry(operator, app_type), (type_, UNDEFINED))
        if kind != type_ and value is not EMPTY:
            raise FastError("D4")
        return value

    def assign(self, operator, app_type, type_, value):
        value = EMPTY if value is None else value
        self.values[self.entry(operator, app_type)] = (type_, value)

    def implied(self, operator, app_type, type_, optional):
        """Returns the value of copy, increment or tail that is not in the stream (6.3.5, 6.3.6,
        6.3.8), which becomes the previous one."""
        value = self.previous(operator, app_type, type_)
        if value is EMPTY:
            if not optional:
                raise FastError("D6")  # 6.3.8 says D7 for tail; appendix 4 has D6 for this
            return None
        if value is UNDEFINED:
            value = operator.value
            if value is None and not optional:
                raise FastError("D6" if operator.kind == "tail" else "D5")
        elif operator.kind == "increment":
            low, high = INTEGERS[type_]
            value = low if value == high else value + 1
        return value

    def base(self, operator, app_type, type_):
        """Returns the base of a delta or a tail."""
        value = self.previous(operator, app_type, type_)
        if value is EMPTY and operator.kind == "delta":
            raise FastError("D6")
        if value is EMPTY or value is UNDEFINED:
            value = operator.value
        if value is None:
            value = b"" if type_ in BYTES else (0, 0) if type_ == "decimal" else 0
        return value


class Decoder(Codec):
    """Decodes bytes to messages."""

    def __init__(self, templates, strict=True):
        super().__init__(templates)
        self.strict = strict

    def decode(self, data, at=0):
        """Returns a message, and its end."""
        self.stream = Reader(data, self.strict)
        self.stream.at = self.begin = at
        message = self.message(0)
        return message, self.stream.at

    def message(self, depth):
        bits = self.stream.bits()
        self.stream.start = self.stream.at
        if bits.next():
            self.identifier = self.stream.integer(False, False, 0, (1 << 32) - 1, "D9")
        if self.identifier not in self.templates.by_id and self.identifier != 120:
            self.stream.fail("D9")
        template = self.by_id(self.identifier)
        if depth > 16:
            raise FastError("LIMIT")
        self.enter(template)
        values = self.segment(bits, template.inner, template.app_type, depth)
        return template, values

    def segment(self, bits, instructions, app_type, depth):
        """Decodes instructions, with or without a presence map of their own."""
        values = self.instructions(bits, instructions, app_type, depth)
        if bits is not None and bits.more():
            self.stream.start = bits.start
            self.stream.report("R8")
        return values

    def own_map(self, instructions):
        return self.stream.bits() if self.templates.needs_map(instructions) else None

    def instructions(self, bits, instructions, app_type, depth):
        values = []
        for one in instructions:
            try:
                values.append(self.instruction(bits, one, app_type, depth))
            except FastError as error:
                if one.type != "static" or one.refers not in self.templates.by_key:
                    error.path.insert(0, one.name)
                raise
        return values

    def instruction(self, bits, one, app_type, depth):
        if one.type == "static":
            target = self.static(one)
            return self.instructions(bits, target.inner, target.app_type or app_type, depth)
        if one.type == "dynamic":
            return self.message(depth + 1)
        if one.type == "group":
            if one.optional and not bits.next():
                return None
            own = self.own_map(one.inner)
            return self.segment(own, one.inner, one.app_type or app_type, depth)
        if one.type == "sequence":
            return self.sequence(bits, one, one.app_type or app_type, depth)
        if one.parts:
            exponent, mantissa = one.parts
            exponent = self.value(bits, exponent, app_type, "int32", one.optional, "R1")
            if exponent is None:
                return None
            self.check_exponent(exponent)
            return exponent, self.value(bits, mantissa, app_type, "int64", False, "R1")
        return self.value(bits, one.operator, app_type, one.type, one.optional)

    def sequence(self, bits, one, app_type, depth):
        count = self.value(bits, one.length, app_type, "uInt32", one.optional, "LIMIT")
        if count is None:
            return None
        if count > LIMIT:
            raise FastError("LIMIT")
        entries = []
        for index in range(count):
            try:
                own = self.own_map(one.inner)
                entries.append(self.segment(own, one.inner, app_type, depth))
            except FastError as error:
                error.path.insert(0, f"[{index}]")
                raise
        return entries

    def value(self, bits, operator, app_type, type_, optional, *others):
        """Decodes a field with its operator; `others` are the codes that are also right for D2."""
        kind, begin = operator.kind, self.stream.at
        self.begin = begin
        if kind == "none":
            return self.read(type_, optional, *others)
        if kind == "constant":
            return None if optional and not bits.next() else operator.value
        if kind == "delta":
            return self.delta(operator, app_type, type_, optional)
        present = bits.next()
        if kind == "default":
            return self.read(type_, optional, *others) if present else operator.value
        if not present:
            value = self.implied(operator, app_type, type_, optional)
        else:
            tail = kind == "tail"
            # A tail may end inside a character of its string.
            read = "byteVector" if tail and type_ == "unicode" else type_
            value = self.read(read, optional, *others)
            if tail and value is not None:
                base = self.base(operator, app_type, type_)
                value = base[: max(0, len(base) - len(value))] + value
                self.stream.start = begin
                self.check_text(type_, value)
        self.assign(operator, app_type, type_, value)
        return value

    def read(self, type_, nullable, *others):
        """Decodes a value as in the stream (10.6)."""
        stream = self.stream
        if type_.startswith("bits"):
            return stream.packed(int(type_[4:]), nullable)
        if type_ in INTEGERS:
            low, high = INTEGERS[type_]
            return stream.integer(low < 0, nullable, low, high, "D2", *others)
        if type_ == "decimal":
            exponent = stream.integer(True, nullable, *INTEGERS["int32"], "R1", "D2")
            if exponent is None:
                return None
            self.check_exponent(exponent)
            return exponent, stream.integer(True, False, *INT64, "R1", "D2")
        if type_ == "ascii":
            return stream.text(nullable)
        value = stream.octets(nullable)
        if value is not None and type_ == "unicode":
            self.check_text(type_, value)
        return value

    def check_text(self, type_, value):
        if len(value) > LIMIT:
            raise FastError("LIMIT")
        if type_ == "unicode":
            try:
                value.decode()
            except UnicodeDecodeError:
                self.stream.report("R2")

    def delta(self, operator, app_type, type_, optional):
        """Decodes a delta, sections 6.3.7 and 10.7."""
        stream, begin = self.stream, self.stream.at
        code = "D7" if type_ in BYTES else "R1" if type_ == "decimal" else "R4"
        first = stream.integer(True, optional, -HUGE, HUGE, code, "D2")
        if first is None:
            return None
        wrong = None
        try:
            base = self.base(operator, app_type, type_)
            if type_ == "decimal":
                self.check_exponent(base[0] + first)
            elif type_ in BYTES and (first if first >= 0 else -first - 1) > len(base):
                raise FastError("D7")
        except FastError as error:
            wrong = error
        second = self.second(type_, wrong)
        if type_ == "decimal":
            value = base[0] + first, base[1] + second
            if not INT64[0] <= value[1] <= INT64[1]:
                raise FastError("R1", "D2")
        elif type_ in BYTES:
            value = splice(base, first, second)
            stream.start = begin
            self.check_text(type_, value)
        else:
            value = base + first
            if not INTEGERS[type_][0] <= value <= INTEGERS[type_][1]:
                raise FastError("R4", "D2", "R1")
        self.assign(operator, app_type, type_, value)
        return value

    def second(self, type_, wrong):
        """Decodes the second part of a difference whose first may be wrong: either error may be
        reported."""
        part = None
        try:
            if type_ == "decimal":
                part = self.stream.integer(True, False, -HUGE, HUGE, "R1", "D2")
            elif type_ in BYTES:
                part = self.stream.text(False) if type_ == "ascii" else self.stream.octets(False)
        except FastError as error:
            if wrong:
                raise FastError(wrong.code, error.code, *error.others) from error
            raise
        if wrong:
            raise wrong
        return part

    def check_exponent(self, exponent):
        if not -63 <= exponent <= 63 and (self.strict or not -128 <= exponent <= 127):
            raise FastError("R1")


def splice(base, subtract, add):
    """Returns a string with its difference applied, at the front if `subtract` is negative."""
    if subtract < 0:
        return add + base[-subtract - 1 :]
    return base[: len(base) - subtract] + add


class Encoder(Codec):
    """Encodes messages to bytes. A message that cannot be encoded leaves the state unchanged."""

    def encode(self, message):
        before = copy.copy(self.values), self.identifier
        try:
            return self.message(message)
        except FastError:
            self.values, self.identifier = before
            raise

    def message(self, message):
        template, values = message
        bits, body = [0], b""
        if self.identifier != template.id:
            bits, body = [1], put_unsigned(template.id)
        self.identifier = template.id
        self.enter(template)
        body += self.instructions(bits, template.inner, values, template.app_type)
        return put_bits(bits) + body

    def segment(self, instructions, values, app_type):
        bits = []
        body = self.instructions(bits, instructions, values, app_type)
        return (put_bits(bits) if self.templates.needs_map(instructions) else b"") + body

    def instructions(self, bits, instructions, values, app_type):
        body = b""
        for one, value in zip(instructions, values, strict=True):
            try:
                body += self.instruction(bits, one, value, app_type)
            except FastError as error:
                if one.type != "static" or one.refers not in self.templates.by_key:
                    error.path.insert(0, one.name)
                raise
        return body

    def instruction(self, bits, one, value, app_type):
        if one.type == "static":
            target = self.static(one)
            return self.instructions(bits, target.inner, value, target.app_type or app_type)
        if one.type == "dynamic":
            return self.message(value)
        if value is None and not one.optional:
            raise FastError("D6")
        if one.type == "group":
            if one.optional:
                bits.append(int(value is not None))
            if value is None:
                return b""
            return self.segment(one.inner, value, one.app_type or app_type)
        if one.type == "sequence":
            return self.sequence(bits, one, value, one.app_type or app_type)
        if one.parts:
            exponent, mantissa = one.parts
            number = None if value is None else value[0]
            body = self.value(bits, exponent, app_type, "int32", one.optional, number)
            if value is not None:
                body += self.value(bits, mantissa, app_type, "int64", False, value[1])
            return body
        return self.value(bits, one.operator, app_type, one.type, one.optional, value)

    def sequence(self, bits, one, value, app_type):
        count = None if value is None else len(value)
        body = self.value(bits, one.length, app_type, "uInt32", one.optional, count)
        for index, entry in enumerate(value or []):
            try:
                body += self.segment(one.inner, entry, app_type)
            except FastError as error:
                error.path.insert(0, f"[{index}]")
                raise
        return body

    def value(self, bits, operator, app_type, type_, optional, value):
        kind = operator.kind
        if kind == "none":
            return self.write(type_, optional, value)
        if kind == "constant":
            if value is not None and value != operator.value:
                raise FastError("D3")
            if optional:
                bits.append(int(value is not None))
            return b""
        if kind == "delta":
            return self.delta(operator, app_type, type_, optional, value)
        if kind == "default":
            bits.append(int(value != operator.value))
            return self.write(type_, optional, value) if bits[-1] else b""
        if self.is_implied(operator, app_type, type_, optional, value):
            bits.append(0)
            self.assign(operator, app_type, type_, value)
            return b""
        bits.append(1)
        sent = value
        if kind == "tail" and value is not None:
            sent = self.tail(self.base(operator, app_type, type_), value)
        self.assign(operator, app_type, type_, value)
        return self.write(type_, optional, sent)

    def is_implied(self, operator, app_type, type_, optional, value):
        """Returns whether omitting the field has the same meaning: it is omitted then."""
        try:
            return self.implied(operator, app_type, type_, optional) == value
        except FastError as error:
            if error.code == "D4" and operator.kind == "tail" and value is not None:
                raise
            return False

    @staticmethod
    def tail(base, value):
        if len(value) > len(base):
            return value
        if len(value) < len(base):
            raise FastError("D3")
        common = 0
        while common < len(value) and base[common] == value[common]:
            common += 1
        return value[common:]

    def write(self, type_, nullable, value):
        if type_.startswith("bits"):
            return put_packed(value, int(type_[4:]), nullable)
        if type_ == "decimal":
            if value is None:
                return put_signed(None)
            return put_signed(value[0], nullable) + put_signed(value[1])
        if type_ == "ascii":
            return put_text(value, nullable)
        if type_ in BYTES:
            return put_octets(value, nullable)
        put = put_signed if INTEGERS[type_][0] else put_unsigned
        return put(value, nullable)

    def delta(self, operator, app_type, type_, optional, value):
        if value is None:
            return b"\x80"
        base = self.base(operator, app_type, type_)
        self.assign(operator, app_type, type_, value)
        if type_ == "decimal":
            return put_signed(value[0] - base[0], optional) + put_signed(value[1] - base[1])
        if type_ not in BYTES:
            return put_signed(value - base, optional)
        shorter = min(len(base), len(value))
        prefix = suffix = 0
        while prefix < shorter and base[prefix] == value[prefix]:
            prefix += 1
        while suffix < shorter and base[-1 - suffix] == value[-1 - suffix]:
            suffix += 1
        if prefix >= suffix:
            subtract, add = len(base) - prefix, value[prefix:]
        else:
            subtract, add = suffix - len(base) - 1, value[: len(value) - suffix]
        put = put_text if type_ == "ascii" else put_octets
        return put_signed(subtract, optional) + put(add)

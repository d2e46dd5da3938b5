"""Sections 10.2 to 10.7: the contents of a FAST stream, read and written byte by byte."""

LIMIT = 1 << 16  # text and entries, Fanfare's default


class FastError(Exception):
    """An error of the stream. `code` is the specification's; if it leaves the order of two errors
    open, or permits a limit, `others` are the alternatives."""

    def __init__(self, code, *others):
        super().__init__(code)
        self.code, self.others, self.path = code, others, []
        self.at = None  # offset of what is wrong


class Reader:
    """The bytes of a stream. A strict reader refuses overlong entities."""

    def __init__(self, data, strict=True):
        self.data, self.at, self.start, self.strict = data, 0, 0, strict

    def report(self, code, *others):
        """Reports an error that a lenient decoder ignores."""
        if self.strict:
            self.fail(code, *others)

    def fail(self, code, *others):
        """Raises an error at `start`; the error of missing bytes is at their end."""
        error = FastError(code, *others)
        error.at = len(self.data) if code == "EOF" else self.start
        raise error

    def entity(self, *others):
        """Returns the seven bits of each byte up to the stop bit."""
        groups, self.start = [], self.at
        while self.at < len(self.data):
            byte = self.data[self.at]
            self.at += 1
            groups.append(byte & 0x7F)
            if byte & 0x80:
                return groups
        self.fail("EOF", *(others if len(groups) > 4 else ()))

    def integer(self, signed, nullable, low, high, code="D2", *others):
        """Returns an integer between two bounds, None for NULL; raises `code` if it is outside of
        them."""
        groups = self.entity(code, "R6", *others)
        overlong = groups[0] == 0 and len(groups) > 1 and (not signed or groups[1] < 0x40)
        if signed and len(groups) > 1 and groups[0] == 0x7F and groups[1] >= 0x40:
            overlong = True
        value = 0
        for group in groups:
            value = value << 7 | group
        if signed and groups[0] >= 0x40:
            value -= 1 << 7 * len(groups)
        inside = low <= value - (nullable and value > 0) <= high
        if overlong:
            # Whether a number is too long for its type is open where it is too long for itself.
            self.report("R6", *(() if inside and len(groups) <= 10 else (code, *others)))
        if nullable and value == 0:
            return None
        if not inside:
            self.fail(code, *others)
        return value - (nullable and value > 0)

    def bits(self):
        """Returns a presence map."""
        groups = self.entity()
        if len(groups) > 1 and groups[-1] == 0:
            self.report("R7", "R8")
        return Bits([group >> 6 - bit & 1 for group in groups for bit in range(7)], self.start)

    def packed(self, width, nullable):
        """Returns the bits of a group: as many bytes as they need, padded with zeros."""
        groups = self.entity("D2")
        if nullable and groups == [0]:
            return None
        count, value = -(-width // 7), 0
        if len(groups) > count and groups[0] == 0:
            self.fail("D2", "R6")
        for group in groups:
            value = value << 7 | group
        value -= nullable
        if len(groups) < count or value < 0 or value >> 7 * count:
            self.fail("D2", "R6")
        if value & (1 << 7 * count - width) - 1:
            self.report("R8")
        return value >> 7 * count - width

    def text(self, nullable):
        """Returns an ASCII string (10.6.3)."""
        groups = self.entity("LIMIT")
        if len(groups) > LIMIT:
            self.fail("LIMIT")
        if nullable and groups[0] == 0:
            groups = groups[1:]
            if not groups:
                return None
            if groups[0] != 0:
                self.report("R9")
                return bytes(groups)
        if groups[0] == 0:
            groups = groups[1:]
            if groups and groups[0] != 0:
                self.report("R9")
        return bytes(groups)

    def octets(self, nullable):
        """Returns a byte vector (10.6.5)."""
        length = self.integer(False, nullable, 0, (1 << 32) - 1, "D2", "LIMIT")
        if length is None:
            return None
        if length > LIMIT:
            self.fail("LIMIT", "EOF")
        if self.at + length > len(self.data):
            self.fail("EOF")
        self.at += length
        return bytes(self.data[self.at - length : self.at])


class Bits:
    """The presence map of a segment, with its infinite suffix of zeros."""

    def __init__(self, bits, start):
        self.bits, self.used, self.start = bits, 0, start

    def next(self):
        self.used += 1
        return self.used <= len(self.bits) and self.bits[self.used - 1] == 1

    def more(self):
        """Returns whether it has bits that no field used (R8)."""
        return any(self.bits[self.used :])


def put_unsigned(value, nullable=False):
    if value is None:
        return b"\x80"
    value += nullable
    out = [value & 0x7F | 0x80]
    while value >> 7:
        value >>= 7
        out.insert(0, value & 0x7F)
    return bytes(out)


def put_packed(value, width, nullable):
    if value is None:
        return b"\x80"
    count = -(-width // 7)
    value = (value << 7 * count - width) + nullable
    groups = [value >> 7 * at & 0x7F for at in range(max(count, -(-value.bit_length() // 7)))]
    return bytes([*groups[:0:-1], groups[0] | 0x80])


def put_signed(value, nullable=False):
    if value is None:
        return b"\x80"
    value += nullable and value >= 0
    out = [value & 0x7F | 0x80]
    while not -64 <= value < 64:
        value >>= 7
        out.insert(0, value & 0x7F)
    return bytes(out)


def put_text(value, nullable=False):
    if value is None:
        return b"\x80"
    if not value or value[0] == 0:
        value = b"\0" + value
        if nullable:
            value = b"\0" + value
    return value[:-1] + bytes([value[-1] | 0x80])


def put_octets(value, nullable=False):
    if value is None:
        return b"\x80"
    return put_unsigned(len(value), nullable) + value


def put_bits(bits):
    """Returns the shortest map: trailing groups of zeros are cut, one byte remains."""
    while len(bits) > 7 and not any(bits[(len(bits) - 1) // 7 * 7 :]):
        bits = bits[: (len(bits) - 1) // 7 * 7]
    bits = bits + [0] * (-len(bits) % 7 or 7 * (not bits))
    groups = [sum(bits[at + bit] << 6 - bit for bit in range(7)) for at in range(0, len(bits), 7)]
    groups[-1] |= 0x80
    return bytes(groups)

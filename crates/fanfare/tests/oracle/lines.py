"""Messages as the JSON lines that `fanfare fast decode` writes and `encode` reads."""

import json

from convert import Number
from templates import INTEGERS


class Pairs(tuple):
    """An object: its members in order."""


def of(message, templates):
    """Returns a message as an object."""
    template, values = message
    fields = level(template.inner, values, templates)
    return Pairs((("template", template.name), ("id", template.id), ("fields", fields)))


def level(instructions, values, templates):
    """Returns the fields of a level. From the second of a name on they have a number behind it, of
    which none makes the name of another field."""
    pairs = list(members(instructions, values, templates))
    names, last, numbered = {name for name, _ in pairs}, {}, []
    for name, value in pairs:
        number = last.get(name, 0) + 1
        while number > 1 and f"{name}#{number}" in names:
            number += 1
        last[name] = number
        numbered.append((f"{name}#{number}" if number > 1 else name, value))
    return Pairs(numbered)


def members(instructions, values, templates):
    for one, value in zip(instructions, values, strict=True):
        if one.type == "static":
            if value is not None:
                yield from members(templates.by_key[one.refers].inner, value, templates)
        else:
            yield one.name, member(one, value, templates)


def bits(one, value):
    """Returns the members of a bit group, the first in the topmost bits."""
    left = sum(width for _, width, _, _ in one.members)
    for name, width, signed, optional in one.members:
        left -= width
        raw = value >> left & (1 << width) - 1
        if signed and raw >> width - 1:
            raw -= 1 << width
        yield name, raw if not optional else None if raw == 0 else raw - 1


def member(one, value, templates):
    if value is not None and one.members:
        return Pairs(bits(one, value))
    if value is None or one.type in INTEGERS:
        return value
    if one.type == "decimal":
        return Pairs((("mantissa", value[1]), ("exponent", value[0])))
    if one.type == "byteVector":
        return Pairs((("hex", value.hex()),))
    if one.type == "group":
        return level(one.inner, value, templates)
    if one.type == "sequence":
        return [level(one.inner, entry, templates) for entry in value]
    if one.type == "dynamic":
        return of(value, templates)
    return string(value)


def string(value):
    """Returns a string, or an object with its bytes if they are not UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return Pairs((("raw", value.hex()),))


def value(foreign):
    """Returns a value in its JSON form, for a field of any type."""
    if isinstance(foreign, Number):
        return Pairs((("mantissa", foreign[1]), ("exponent", foreign[0])))
    return Pairs((("hex", foreign.hex()),)) if isinstance(foreign, bytes) else foreign


def write(value):
    if isinstance(value, Pairs):
        return "{" + ", ".join(f"{json.dumps(k)}: {write(v)}" for k, v in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(write, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def read(line):
    return json.loads(line, object_pairs_hook=Pairs)

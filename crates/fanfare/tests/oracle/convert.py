"""Section 8: values of one type for fields of another, which an encoder converts."""

import re

from templates import BYTES, INTEGERS, SPACE, TemplateError, initial
from wire import FastError

INT64 = INTEGERS["int64"]


class Number(tuple):
    """A decimal, (exponent, mantissa)."""


def converted(value, type_):
    """Returns an int, `Number`, str or bytes as the value of a field of this type."""
    if isinstance(value, bytes):
        if type_ in INTEGERS or type_ == "decimal":
            raise FastError("D10")
        return value if type_ == "byteVector" else value.hex().encode()  # 8.4
    if type_ == "byteVector":
        if not isinstance(value, str):
            raise FastError("D10")
        return from_string(value, type_)
    if type_ in BYTES:
        text = value if isinstance(value, str) else as_text(value)
        if type_ == "ascii" and not text.isascii():
            raise FastError("R3")  # 8.1.4
        return text.encode()
    if isinstance(value, str):
        return from_string(value, type_)
    if type_ == "decimal":
        return scaled(value) if isinstance(value, int) else tuple(value)
    number = value if isinstance(value, int) else whole(value)
    low, high = INTEGERS[type_]
    if number is None:
        raise FastError("R5")  # 8.3.1
    if not low <= number <= high:
        raise FastError("R4", "R5") if isinstance(value, int) else FastError("R5", "R4")
    return number


def whole(number):
    """Returns the integer that a decimal equals, if there is one."""
    exponent, mantissa = number
    if exponent >= 0:
        return mantissa * 10**exponent
    return mantissa // 10**-exponent if mantissa % 10**-exponent == 0 else None


def scaled(number):
    """Returns an integer as a scaled number (8.2.2)."""
    exponent = 0
    while not INT64[0] <= number <= INT64[1]:
        if number % 10 or exponent == 63:
            raise FastError("R1")
        number, exponent = number // 10, exponent + 1
    return exponent, number


def as_text(value):
    """8.2.3 and 8.3.2."""
    number = value if isinstance(value, int) else whole(value)
    if number is not None:
        return str(number)
    exponent, mantissa = value
    digits = str(abs(mantissa)).rjust(1 - exponent, "0")
    return f"{'-' * (mantissa < 0)}{digits[:exponent]}.{digits[exponent:]}"


def from_string(text, type_):
    """Converts text (8.1). An initial value is converted in the same way, except for its errors and
    a decimal's form."""
    if type_ == "decimal":
        match = re.fullmatch(r"(-?)([0-9]*)(?:\.([0-9]+))?", text.strip(SPACE))
        if not match or not (match[2] or match[3]):
            raise FastError("D11")
        exponent, mantissa = -len(match[3] or ""), int(match[1] + match[2] + (match[3] or ""))
        # Trailing zeros carry no information.
        while mantissa and mantissa % 10 == 0:
            if exponent >= -63 and INT64[0] <= mantissa <= INT64[1]:
                break
            exponent, mantissa = exponent + 1, mantissa // 10
        if mantissa == 0:
            exponent = 0
        if not -63 <= exponent <= 63 or not INT64[0] <= mantissa <= INT64[1]:
            raise FastError("R1")
        return exponent, mantissa
    try:
        return initial(text, type_)
    except TemplateError as error:
        sign = "-?" if type_.startswith("int") else ""
        is_number = type_ in INTEGERS and re.fullmatch(sign + "[0-9]+", text.strip(SPACE))
        raise FastError("R4" if is_number else "D11") from error

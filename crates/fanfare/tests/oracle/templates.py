"""FAST 1.1 template documents, read by sections 6 to 8 of the specification.

The code is slow and obvious, and written from the specification alone (except bit groups, which
follow the codec's README): Fanfare is compared with it.
"""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field

OPERATORS = ("constant", "default", "copy", "increment", "delta", "tail")
SIZES = (8, 16, 32, 64)
INTEGERS = {f"int{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) for bits in SIZES}
INTEGERS |= {f"uInt{bits}": (0, (1 << bits) - 1) for bits in SIZES}
SIZED = tuple(INTEGERS)  # without bit groups, which come as they are met
BYTES = ("ascii", "unicode", "byteVector")
SPACE = " \t\r\n"


class TemplateError(Exception):
    """A static error: S1 to S5."""


@dataclass
class Operator:
    """A field operator; `none` for a field without one."""

    kind: str = "none"
    value: object = None  # the initial value, converted
    dictionary: str = "global"
    template: object = None  # the template it is written in, for dictionary="template"
    key: object = None  # (namespace, name), or that of a part of a decimal or of a length


@dataclass
class Instruction:
    """A field instruction or a template reference."""

    type: str  # an integer's, decimal, ascii, unicode, byteVector, sequence, group, static, dynamic
    name: str = ""
    optional: bool = False
    operator: Operator = field(default_factory=Operator)
    parts: object = None  # operators of exponent and mantissa, where they are individual
    length: object = None  # the operator of a sequence's length
    app_type: object = None  # from a typeRef inside it
    inner: list = field(default_factory=list)
    refers: object = None  # (templateNs, name) of a static reference
    members: object = None  # (name, width, signed, optional) of each in a bit group


@dataclass
class Template:
    """A template: its name, its identifier, its effect on the dictionaries."""

    name: str
    key: object
    id: object
    reset: bool
    app_type: object
    inner: list


class Templates:
    """All templates of a document."""

    def __init__(self, document):
        self.by_key, self.by_id, self.by_name = {}, {}, {}
        try:
            root = ElementTree.fromstring(document)
        except ElementTree.ParseError as error:
            raise TemplateError("S1", str(error)) from error
        top = Scope()
        if local(root) == "templates":
            top = top.within(root)
            elements = [child for child in root if local(child) is not None]
        else:
            elements = [root]
        for element in elements:
            self.add(template(element, top))
        conform(root)

    def add(self, one):
        if one.key in self.by_key or (one.id is not None and one.id in self.by_id):
            raise TemplateError("S1", "two templates of one name or identifier")
        self.by_key[one.key] = self.by_name[one.name] = one
        if one.id is not None:
            self.by_id[one.id] = one

    def needs_map(self, instructions):
        """Returns whether any instruction needs a bit in the presence map of its segment
        (10.5.1)."""
        return any(self.needs_bit(one) for one in instructions)

    def needs_bit(self, one):
        if one.type == "static":
            target = self.by_key.get(one.refers)
            return target is not None and self.needs_map(target.inner)
        if one.type == "dynamic":
            return False
        if one.type == "group":
            return one.optional
        if one.type == "sequence":
            return has_bit(one.length, one.optional)
        if one.parts:
            exponent, mantissa = one.parts
            return has_bit(exponent, one.optional) or has_bit(mantissa, False)
        return has_bit(one.operator, one.optional)


def has_bit(operator, optional):
    """Returns the presence map utilisation of an operator (10.5.1)."""
    if operator.kind == "constant":
        return optional
    return operator.kind in ("default", "copy", "increment", "tail")


class Scope:
    """The context that elements inherit: namespaces, dictionary, and the enclosing template."""

    def __init__(self, ns="", template_ns="", dictionary="global", inside=None):
        self.ns, self.template_ns = ns, template_ns
        self.dictionary, self.inside = dictionary, inside

    def within(self, element):
        return Scope(
            element.get("ns", self.ns),
            element.get("templateNs", self.template_ns),
            element.get("dictionary", self.dictionary),
            self.inside,
        )


def local(element):
    """Returns the name of an element of the specification; None for a foreign one (section 9).
    Third-party templates have namespaces of their own, so only the generator's own one is
    foreign."""
    namespace, _, name = element.tag.rpartition("}")
    return None if namespace == "{urn:q" else name


def conform(element):
    """Refuses content that the schema (appendix 1) lacks: text, and contexts of operators without a
    state."""
    inside = [element.text, *(child.tail for child in element)]
    if any(text and text.strip() for text in inside):
        raise TemplateError("S1", "text")
    if local(element) in ("constant", "default"):
        if any(name in element.attrib for name in ("dictionary", "key", "ns")):
            raise TemplateError("S1", "a dictionary of an operator without previous values")
    for child in children(element):
        conform(child)


def children(element):
    return [child for child in element if local(child) is not None]


def template(element, scope):
    if local(element) != "template" or not element.get("name"):
        raise TemplateError("S1", "no template")
    scope = scope.within(element)
    scope.inside = key = (scope.template_ns, element.get("name"))
    number = element.get("id")
    if number is not None:
        number = int(number) if number.isdigit() and int(number) < 1 << 32 else None
    app_type, rest = type_ref(children(element), scope)
    reset = element.get("reset", "no") in ("Y", "yes", "true", "1")
    inner = [instruction(child, scope) for child in rest]
    return Template(element.get("name"), key, number, reset, app_type, inner)


def type_ref(elements, scope):
    if elements and local(elements[0]) == "typeRef":
        scope = scope.within(elements[0])
        if not elements[0].get("name"):
            raise TemplateError("S1", "a typeRef without a name")
        return (scope.ns, elements[0].get("name")), elements[1:]
    return None, elements


def instruction(element, scope):
    kind = local(element)
    if kind == "templateRef":
        if element.get("name") is None:
            return Instruction("dynamic", "templateRef")
        refers = (scope.within(element).template_ns, element.get("name"))
        return Instruction("static", element.get("name"), refers=refers)
    if not element.get("name"):
        raise TemplateError("S1", "a field without a name")
    one = Instruction(kind, element.get("name"), is_optional(element))
    if kind == "bitGroup":
        bit_group(one, element, scope)
    elif kind in ("group", "sequence"):
        composite(one, element, scope.within(element))
    elif kind == "decimal" and any(local(c) in ("exponent", "mantissa") for c in element):
        decimal_parts(one, element, scope)
    else:
        primitive(one, element, scope)
    return one


def is_optional(element):
    presence = element.get("presence", "mandatory")
    if presence not in ("mandatory", "optional"):
        raise TemplateError("S1", "presence")
    return presence == "optional"


def composite(one, element, scope):
    one.app_type, rest = type_ref(children(element), scope)
    inside = scope
    if one.type == "sequence":
        name, key, operator = one.name, (scope.ns, one.name, "length"), []
        if rest and local(rest[0]) == "length":
            length = rest.pop(0)
            operator = children(length)
            scope = scope.within(length)
            if length.get("name"):
                name, key = length.get("name"), (scope.ns, length.get("name"))
        one.length = read_operator(operator, scope, "uInt32", key, one.optional, name)
    one.inner = [instruction(child, inside) for child in rest]


def bit_group(one, element, scope):
    """Reads a bit group as in the codec's README: an integer of all bits together,
    `bits<width>`."""
    rest = children(element)
    one.members = []
    while rest and local(rest[0]) not in OPERATORS:
        member = rest.pop(0)
        kind, optional = local(member), is_optional(member)
        width = 1 if kind == "boolean" else int(re.sub(r"\D", "", kind))
        if not member.get("name"):
            raise TemplateError("S1", "a bit group's field without a name")
        one.members.append((member.get("name"), width, kind.startswith("int"), optional))
    width = sum(member[1] for member in one.members)
    one.type = f"bits{width}"
    INTEGERS[one.type] = (0, (1 << width) - 1)
    scope = scope.within(element)
    key = (scope.ns, one.name)
    one.operator = read_operator(rest, scope, one.type, key, one.optional, one.name)


def decimal_parts(one, element, scope):
    parts = {local(child): child for child in children(element)}
    if not set(parts) <= {"exponent", "mantissa"} or len(parts) != len(children(element)):
        raise TemplateError("S1", "a decimal of other parts")
    scope = scope.within(element)
    key = (scope.ns, one.name)
    one.parts = [
        read_operator(
            children(parts[part]) if part in parts else [],
            scope, type_, (*key, part), one.optional and part == "exponent", one.name,
        )
        for part, type_ in (("exponent", "int32"), ("mantissa", "int64"))
    ]


def primitive(one, element, scope):
    if one.type == "timestamp":
        one.type = "int64"
    if one.type == "string":
        one.type = element.get("charset", "ascii")
    if one.type not in INTEGERS and one.type not in BYTES and one.type != "decimal":
        raise TemplateError("S1", f"no field is a {one.type}")
    rest = children(element)
    if one.type in ("unicode", "byteVector") and rest and local(rest[0]) == "length":
        if not rest[0].get("name") or children(rest[0]):
            raise TemplateError("S1", "this length is a name")
        rest = rest[1:]
    scope = scope.within(element)
    key = (scope.ns, one.name)
    one.operator = read_operator(rest, scope, one.type, key, one.optional, one.name)


def read_operator(elements, scope, type_, key, optional, name):
    if not elements:
        return Operator(key=key)
    if len(elements) > 1 or local(elements[0]) not in OPERATORS:
        raise TemplateError("S1", f"no operator of {name}")
    element, kind = elements[0], local(elements[0])
    if kind == "increment" and type_ not in SIZED or kind == "tail" and type_ not in BYTES:
        raise TemplateError("S2", name)
    value = element.get("value")
    if value is None and kind == "constant":
        raise TemplateError("S4", name)
    if value is None and kind == "default" and not optional:
        raise TemplateError("S5", name)
    if value is not None:
        value = initial(value, type_)
    if element.get("key"):
        key = (scope.within(element).ns, element.get("key"))
    return Operator(kind, value, scope.within(element).dictionary, scope.inside, key)


def initial(text, type_):
    """Converts an initial value (6.3.2) by section 8.1."""
    if type_ in INTEGERS:
        low, high = INTEGERS[type_]
        if not re.fullmatch("-?[0-9]+" if low else "[0-9]+", text.strip(SPACE)):
            raise TemplateError("S3", text)
        number = int(text.strip(SPACE))
        if not low <= number <= high:
            raise TemplateError("S3", text)
        return number
    if type_ == "decimal":
        return initial_decimal(text)
    if type_ == "byteVector":
        digits = re.sub(f"[{SPACE}]", "", text)
        if len(digits) % 2 or not re.fullmatch("[0-9A-Fa-f]*", digits):
            raise TemplateError("S3", text)
        return bytes.fromhex(digits)
    if type_ == "ascii" and not text.isascii():
        raise TemplateError("S3", text)
    return text.encode()


def initial_decimal(text):
    """Returns (exponent, mantissa), normalised: the mantissa has no trailing zero."""
    match = re.fullmatch(r"(-?)([0-9]*)(?:\.([0-9]+))?", text.strip(SPACE))
    if not match or not (match[2] or match[3]):
        raise TemplateError("S3", text)
    digits, exponent = match[2] + (match[3] or ""), -len(match[3] or "")
    mantissa = int(match[1] + digits)
    while mantissa and mantissa % 10 == 0:
        mantissa, exponent = mantissa // 10, exponent + 1
    if not mantissa:
        exponent = 0
    if not -63 <= exponent <= 63 or not -(1 << 63) <= mantissa < 1 << 63:
        raise TemplateError("S3", text)
    return exponent, mantissa

"""A Python program with types of its own, which nobody at our side has heard of: it writes some
samples of each until its stdin closes. Prints each topic's sample as JSON first."""

import json
import sys
from dataclasses import dataclass

from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlBitmask, IdlEnum, IdlStruct, IdlUnion
from cyclonedds.idl.annotations import appendable, bit_bound, final, key, mutable
from cyclonedds.idl.types import array, bounded_str, case, default, float32, float64, int8
from cyclonedds.idl.types import int16, int32
from cyclonedds.idl.types import int64, sequence, uint8, uint16, uint32, uint64, wchar
from cyclonedds.pub import DataWriter
from cyclonedds.topic import Topic
from cyclonedds.util import duration
from typing import Optional


class Side(IdlEnum, typename="Foreign.Side"):
    Buy = 0
    Sell = 1


@dataclass
@final
class Level(IdlStruct, typename="Foreign.Level"):
    price: float64
    size: int32
    venues: sequence[str]


@dataclass
@final
class Plain(IdlStruct, typename="Foreign.Plain"):
    symbol: str
    key("symbol")
    a: int8
    b: uint16
    c: int64
    d: float32
    yes: bool
    side: Side
    levels: sequence[Level]
    grid: array[uint32, 3]
    raw: sequence[uint8]
    short: bounded_str[5]
    mark: wchar


@dataclass
@appendable
class Grown(IdlStruct, typename="Foreign.Grown"):
    id: uint64
    note: Optional[str]
    best: Level
    gone: Optional[int32]


@dataclass
@mutable
class Loose(IdlStruct, typename="Foreign.Loose"):
    x: int16
    text: str
    more: Optional[float64]
    wide: uint64
    list: sequence[uint32]


class ByNumber(IdlUnion, discriminator=uint8, typename="Foreign.ByNumber"):
    level: case[[1, 7], Level]
    text: case[2, str]
    other: default[float64]


@appendable
class BySide(IdlUnion, discriminator=Side, typename="Foreign.BySide"):
    bought: case[Side.Buy, uint32]
    sold: case[Side.Sell, sequence[int16]]


@dataclass
@appendable
class Chosen(IdlStruct, typename="Foreign.Chosen"):
    first: ByNumber
    second: sequence[ByNumber]
    third: BySide
    last: uint64


@bit_bound(8)
class Tick(IdlEnum, typename="Foreign.Tick"):
    Down = 0
    Up = 1


@bit_bound(8)
@dataclass
class Flags(IdlBitmask, typename="Foreign.Flags"):
    first: bool = False
    last: bool = False


@bit_bound(16)
@dataclass
class Sources(IdlBitmask, typename="Foreign.Sources"):
    one: bool = False
    other: bool = False


@dataclass
@appendable
class Short(IdlStruct, typename="Foreign.Short"):
    tick: Tick
    ticks: sequence[Tick]
    flags: Flags
    all: sequence[Flags]
    pair: array[Sources, 2]
    last: uint64


LEVEL = Level(price=99.5, size=-3, venues=["XPAR", "a\"b"])
SAMPLES = {
    "Plain": Plain("EURUSD", -8, 16, -64, 0.1, True, Side.Sell, [LEVEL, LEVEL], [1, 2, 3],
                   [0, 255], "five5", ord("€")),
    "Grown": Grown(1 << 63, "héllo", LEVEL, None),
    "Loose": Loose(-7, "text", 2.25, 9, [4, 5, 6]),
    "Chosen": Chosen(
        ByNumber(discriminator=7, value=LEVEL),
        [ByNumber(text="two"), ByNumber(discriminator=9, value=-0.5)],
        BySide(sold=[-1, 2]),
        1 << 40,
    ),
    "Short": Short(
        Tick.Up,
        [Tick.Up, Tick.Down, Tick.Up],
        Flags(last=True),
        [Flags(first=True), Flags(first=True, last=True)],
        [Sources(other=True), Sources()],
        9,
    ),
}


MEMBERS = {
    ByNumber: lambda by: {1: "level", 7: "level", 2: "text"}.get(by, "other"),
    BySide: lambda by: {Side.Buy: "bought", Side.Sell: "sold"}[by],
}


def plain(value):
    if isinstance(value, IdlEnum):
        return value.name
    if isinstance(value, IdlBitmask):
        return value.as_mask()
    if isinstance(value, IdlUnion):
        name = MEMBERS[type(value)](value.discriminator)
        return {"discriminator": plain(value.discriminator), name: plain(value.value)}
    if isinstance(value, IdlStruct):
        return {name: plain(v) for name, v in vars(value).items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value


participant = DomainParticipant(0)
qos = Qos(Policy.Reliability.Reliable(duration(seconds=1)), Policy.History.KeepLast(4),
          Policy.Durability.TransientLocal)
writers = []
for name, sample in SAMPLES.items():
    fields = plain(sample)
    if name == "Plain":
        fields["raw"] = {"hex": bytes(sample.raw).hex()}
        fields["mark"] = chr(sample.mark)
    print(name, json.dumps(fields), flush=True)
    writer = DataWriter(participant, Topic(participant, "Foreign_" + name, type(sample)), qos=qos)
    writer.write(sample)
    writers.append(writer)
print("ready", flush=True)
sys.stdin.read()

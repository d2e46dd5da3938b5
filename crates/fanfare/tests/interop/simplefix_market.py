"""A market data client on simplefix, which only encodes and parses messages: session, books and
checks are implemented here.

    simplefix_market.py PORT VERSION

It subscribes to everything, rebuilds each book from W and X by price, and compares it with the
checksums of the plant. It prints "feed" to request more data, and "done" at its end; after each
"feed" it reads a line from stdin. The first deviation ends it with an error."""

import datetime
import socket
import sys

import simplefix

PORT, VERSION = int(sys.argv[1]), sys.argv[2]
APPLICATION = {"FIX.5.0": "7", "FIX.5.0SP1": "8", "FIX.5.0SP2": "9"}.get(VERSION)
BEGIN = "FIXT.1.1" if APPLICATION else VERSION

connection = socket.create_connection(("127.0.0.1", PORT), timeout=120)
parser = simplefix.FixParser()
number = 0
expected = 0


def send(msg_type, *fields):
    global number
    number += 1
    message = simplefix.FixMessage()
    message.append_pair(8, BEGIN, header=True)
    message.append_pair(35, msg_type, header=True)
    message.append_pair(34, number, header=True)
    message.append_pair(49, "SIMPLE", header=True)
    message.append_pair(56, "PLANT", header=True)
    now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
    message.append_utc_timestamp(52, now, precision=3, header=True)
    for tag, value in fields:
        message.append_pair(tag, value)
    connection.sendall(message.encode())


def receive():
    """Returns the next message of the application, as (type, [(tag, value)])."""
    global expected
    while True:
        message = parser.get_message()
        if message is None:
            data = connection.recv(65536)
            if not data:
                sys.exit("the gateway closed the connection")
            parser.append_buffer(data)
            continue
        pairs = [(int(tag), value.decode()) for tag, value in message.pairs]
        kind = first(pairs, 35)
        expected += 1
        if int(first(pairs, 34)) != expected:
            sys.exit(f"number {expected} expected: {pairs}")
        if kind == "1":
            send("0", (112, first(pairs, 112)))
        elif kind != "0":
            return kind, pairs


def first(pairs, tag):
    return next((value for known, value in pairs if known == tag), None)


def groups(pairs, count, delimiter):
    """Returns the entries of a group whose fields extend to the end of the message."""
    start = next((at for at, pair in enumerate(pairs) if pair[0] == count), None)
    if start is None:
        sys.exit(f"no {count} in {pairs}")
    entries = []
    for tag, value in pairs[start + 1:]:
        if tag == delimiter:
            entries.append([])
        if not entries:
            sys.exit(f"{delimiter} does not begin {pairs}")
        entries[-1].append((tag, value))
    if len(entries) != int(pairs[start][1]):
        sys.exit(f"{len(entries)} entries: {pairs}")
    return entries


def units(text):
    """Returns a price in units of 1e-9."""
    sign = -1 if text.startswith("-") else 1
    whole, _, part = text.lstrip("-").partition(".")
    return sign * (int(whole or "0") * 10**9 + int(part.ljust(9, "0") or "0"))


class Book:
    def __init__(self):
        self.sides = {"0": {}, "1": {}}
        self.number = None

    def level(self, entry):
        side, price = first(entry, 269), units(first(entry, 270))
        return side, price, (int(first(entry, 271)), int(first(entry, 346) or 0))

    def snapshot(self, pairs):
        self.sides = {"0": {}, "1": {}}
        for entry in groups(pairs, 268, 269):
            if first(entry, 269) in self.sides:
                side, price, level = self.level(entry)
                self.sides[side][price] = level
            if first(entry, 83):
                self.number = int(first(entry, 83))

    def change(self, pairs):
        for entry in groups(pairs, 268, 279):
            seen = first(entry, 83)
            if APPLICATION and self.number is not None and int(seen) != self.number + 1:
                sys.exit(f"{seen} behind {self.number}: {pairs}")
            self.number = int(seen) if seen else None
            if first(entry, 269) not in self.sides:
                continue
            action, side = first(entry, 279), first(entry, 269)
            price = units(first(entry, 270))
            there = price in self.sides[side]
            if there != (action in "12"):
                sys.exit(f"{price} in {self.sides[side]}: {pairs}")
            if action == "2":
                del self.sides[side][price]
            else:
                self.sides[side][price] = self.level(entry)[2]

    def checksum(self):
        total = 0xCBF29CE484222325
        words = []
        for side in "01":
            levels = sorted(self.sides[side].items(), reverse=side == "0")
            words.append(len(levels))
            for price, (size, orders) in levels:
                words += [price, size, orders]
        for word in words:
            for byte in (word % 2**64).to_bytes(8, "little"):
                total = (total ^ byte) * 0x100000001B3 % 2**64
        return f"{total:016x}"


def request(name, kind, *symbols):
    fields = [(262, name), (263, kind), (264, 5)]
    if kind == "1":
        fields.append((265, 1))
    fields += [(267, 2), (269, 0), (269, 1), (146, len(symbols))]
    fields += [(55, symbol) for symbol in symbols]
    if kind == "1":
        fields.append((20012, 1))
    send("V", *fields)


def expect(wanted, *fields):
    """Reads up to a message of this type, which has these fields; applies market data on the
    way."""
    while True:
        kind, pairs = receive()
        if kind == wanted:
            for field in fields:
                if field not in pairs:
                    sys.exit(f"{field} is not in {pairs}")
            return pairs
        if kind in "WX" and first(pairs, 262) == "r1":
            take(kind, pairs)
        elif kind not in "Bfh":
            sys.exit(f"{kind} in place of {wanted}: {pairs}")


books, checked = {}, 0


def take(kind, pairs):
    global checked
    symbol = first(pairs, 55)
    if symbol == "[N/A]":
        symbol = first(pairs, 48)
    if kind == "W":
        books.setdefault(symbol, Book()).snapshot(pairs)
    else:
        books[symbol].change(pairs)
    told = first(pairs, 20013)
    if told is None or told.lower() != books[symbol].checksum():
        sys.exit(f"checksum {books[symbol].checksum()}: {pairs}")
    checked += 1


def feed():
    print("feed", flush=True)
    sys.stdin.readline()


logon = [(98, 0), (108, 0), (141, "Y")]
send("A", *logon, *([(1137, APPLICATION)] if APPLICATION else []))
expect("A")
request("r1", "1", "*")
for _ in range(3):
    feed()
    # Market data up to the response to a later request, of an unknown instrument.
    request("no", "0", "NOWHERE")
    expect("Y", (262, "no"), (281, "0"))
if not books or checked <= len(books):
    sys.exit(f"{len(books)} books, {checked} checksums")

request("r1", "1", "*")
expect("Y", (262, "r1"), (281, "1"))
request("r1", "2", "*")
request("no", "0", "NOWHERE")
expect("Y", (262, "no"), (281, "0"))
feed()
request("no", "0", "NOWHERE")
kind, pairs = receive()
while kind in "Bfh":
    kind, pairs = receive()
if kind != "Y":
    sys.exit(f"{kind} behind the end of the subscription: {pairs}")
send("5")
expect("5")
print("done", flush=True)

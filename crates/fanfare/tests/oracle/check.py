"""Compares `fanfare fast` with the codec of this folder, on random templates and messages.

    check.py FANFARE FOLDER SEED DOCUMENTS [SECONDS]

makes and checks this many documents, or as many as the time permits. FOLDER keeps the files of a
difference, named after the document's seed: the same SEED with 1 document reproduces them. Ends
with a line of counts, and with exit status 1 after any difference.
"""

import random
import re
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

import lines
from codec import Decoder, Encoder
from convert import converted
from generate import MARK, Documents, Messages, damaged, foreign, miswritten
from templates import BYTES, SIZED, TemplateError, Templates, has_bit
from wire import FastError, Reader, put_unsigned

IN_PACKET = 3
HEADERS = {"u16le": "<H", "u16be": ">H", "u32le": "<I", "u32be": ">I"}
FIELDS = {"ascii": "string", "unicode": 'string charset="unicode"'}


class Difference(Exception):
    """A difference from Fanfare."""


class Barren(Exception):
    """The error of a document of which hardly any message can be encoded."""


class Checker:
    """The checks of documents in sequence, with their counts."""

    def __init__(self, fanfare, folder):
        self.fanfare, self.kept, self.folder = fanfare, Path(folder), Path(folder) / "now"
        names = ("documents", "encoded", "decoded", "damaged", "refused", "converted", "miswritten",
                 "barren", "different")
        self.counts = dict.fromkeys(names, 0)

    def run(self, *args, status=(0, 1)):
        """Runs a command. Returns its output as lines of JSON."""
        command = [self.fanfare, "fast", *map(str, args)]
        done = subprocess.run(command, capture_output=True, timeout=60, check=False)
        if done.returncode not in status:
            raise Difference(f"{command} ends with {done.returncode}: {done.stderr.decode()}")
        try:
            return [lines.read(line) for line in done.stdout.decode().split("\n")[:-1]]
        except ValueError as error:
            raise Difference(f"{command} writes no lines of JSON: {error}") from error

    def one(self, seed):
        """Checks a document; a difference is printed and its files are kept."""
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self.document(random.Random(seed))
        except Barren:
            self.counts["barren"] += 1
        except (Difference, subprocess.TimeoutExpired) as error:
            self.counts["different"] += 1
            print(f"document {seed}: {error}\n", flush=True)
            shutil.rmtree(self.kept / str(seed), ignore_errors=True)
            self.folder.rename(self.kept / str(seed))

    def document(self, pick):
        """Checks one random document in every way."""
        self.pick = pick
        self.header = pick.choice([*HEADERS, "fast"])
        text = Documents(pick).document()
        self.templates = Templates(text)
        (self.folder / "t.xml").write_text(text)
        maker = Messages(pick, self.templates)
        packets = [self.packet(maker) for _ in range(12)]
        self.encodes(packets)
        self.stream([maker.message() for _ in range(25)])
        good = [data for _, data in packets]
        bad = [damaged(pick, pick.choice(good)) for _ in range(40)]
        for strict in (True, False):
            self.decodes(good + bad, strict)
        self.explains()
        self.refuses(text)
        self.converts(pick)
        self.counts["documents"] += 1
        self.counts["decoded"] += len(good) * IN_PACKET
        self.counts["damaged"] += 2 * len(bad)

    def packet(self, maker):
        """Returns encodable messages in order, with their bytes, of a length that fits a header of
        16 bits."""
        encoder, messages, data = Encoder(self.templates), [], b""
        tries = 0
        while len(messages) < IN_PACKET:
            tries += 1
            if tries > 100:
                raise Barren
            message = maker.message()
            try:
                if len(data := data + encoder.encode(message)) > 60000:
                    encoder, messages, data = Encoder(self.templates), [], b""
                    continue
                messages.append(message)
            except FastError:
                self.counts["refused"] += 1
        return messages, data

    def line(self, message):
        return lines.write(lines.of(message, self.templates))

    def encodes(self, packets):
        """Checks that each packet's messages are encoded to its bytes."""
        text = [self.line(message) for messages, _ in packets for message in messages]
        (self.folder / "m.jsonl").write_text("\n".join(text))
        said = self.run("encode", "-t", self.folder / "t.xml", "-f", self.folder / "m.jsonl",
                        "-o", self.folder / "m.dat", "--packet-messages", IN_PACKET,
                        "--header", self.header)
        if said:
            raise Difference(f"encode: {said}")
        for (messages, expected), data in zip(packets, self.packets("m.dat"), strict=True):
            if data != expected:
                shown = fields_of(self.templates, expected, data)
                raise Difference(f"encode\nours {expected.hex(' ')}\n is  {data.hex(' ')}\n{shown}")
            self.counts["encoded"] += len(messages)

    def packets(self, name):
        data, at = (self.folder / name).read_bytes(), 0
        while at < len(data):
            size, at = self.framed(data, at)
            yield data[at : at + size]
            at += size

    def framed(self, data, at):
        """Returns a packet's size, and its start."""
        if self.header == "fast":
            reader = Reader(data)
            reader.at = at
            size = reader.integer(False, False, 0, 1 << 32)
            return size, reader.at
        (size,) = struct.unpack_from(HEADERS[self.header], data, at)
        return size, at + struct.calcsize(HEADERS[self.header])

    def frame(self, data):
        """Returns a packet with its header, which may be overlong (10)."""
        if self.header == "fast":
            return self.pick.choice([b"", b"", b"\0"]) + put_unsigned(len(data)) + data
        return struct.pack(HEADERS[self.header], len(data)) + data

    def stream(self, messages):
        """Checks one stream that keeps its dictionaries, with lines in it that cannot be
        encoded."""
        encoder, expected, errors, states = Encoder(self.templates), [], [], []
        for number, message in enumerate(messages, 1):
            try:
                encoder.identifier = None
                before = encoder.values.copy(), None
                expected.append(encoder.encode(message))
                if len(expected[-1]) > 60000:
                    return
                states.append(before)
            except FastError as error:
                errors.append((number, error))
        (self.folder / "s.jsonl").write_text("\n".join(map(self.line, messages)))
        said = self.run("encode", "-t", self.folder / "t.xml", "-f", self.folder / "s.jsonl", "-o",
                        self.folder / "s.dat", "--keep-dictionary", "--keep-going",
                        "--header", self.header)
        told = [(dict(one)["line"], dict(one)) for one in said]
        if [number for number, _ in told] != [number for number, _ in errors]:
            raise Difference(f"encode refuses {said}, ours {show(errors)}")
        for (_, one), (number, error) in zip(told, errors, strict=True):
            self.same_error(error, one, f"line {number}")
        data = list(self.packets("s.dat"))
        for number, (ours, is_) in enumerate(zip(expected, data, strict=True)):
            if ours != is_:
                shown = fields_of(self.templates, ours, is_, states[number])
                raise Difference(f"stream packet {number} {errors}\n{shown}")
        self.counts["encoded"] += len(expected)
        self.counts["refused"] += len(errors)
        said = self.run("decode", "-t", self.folder / "t.xml", "-f", self.folder / "s.dat",
                        "--sequence", "none", "--format", "json", "--keep-dictionary",
                        "--header", self.header)
        refused = {number for number, _ in errors}
        good = [one for number, one in enumerate(messages, 1) if number not in refused]
        for ours, is_ in zip(good, said, strict=True):
            if lines.of(ours, self.templates) != is_:
                raise Difference(f"stream ours {self.line(ours)}\n is {lines.write(is_)}")
        self.counts["decoded"] += len(good)
        self.piped(good)

    def piped(self, messages):
        """Checks a stream without packets, which arrives in pieces and may end inside a message."""
        encoder, data, ends = Encoder(self.templates), b"", []
        good = []
        for message in messages:
            try:
                data += encoder.encode(message)
            except FastError:
                continue
            good.append(lines.of(message, self.templates))
            ends.append(len(data))
        cut = self.pick.choice([len(data), self.pick.randint(0, len(data))])
        command = [self.fanfare, "fast", "decode", "-t", self.folder / "t.xml", "-f", "-",
                   "--header", "none", "--sequence", "none", "--format", "json"]
        running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, bufsize=0)
        with running:
            at = 0
            while at < cut:
                at += running.stdin.write(data[at : min(cut, at + self.pick.randint(1, 200))])
            said = running.communicate(timeout=60)[0].decode().split("\n")[:-1]
        whole = sum(end <= cut for end in ends)
        if list(map(lines.read, said[:whole])) != good[:whole]:
            raise Difference(f"a pipe says {said}, ours {good[:whole]}")
        left = [dict(lines.read(line))["error"] for line in said[whole:]]
        if left != ([] if cut in (0, *ends) else ["EOF"]):
            raise Difference(f"a pipe that ends at {cut} of {ends} says {left}")

    def decodes(self, packets, strict):
        """Checks that each packet's bytes are decoded to the same messages, or end with the same
        error."""
        out, begins = b"", []
        for number, data in enumerate(packets):
            out += self.frame(data)
            begins.append(len(out) - len(data))
            out += self.frame(b"\xc0" + put_unsigned(MARK) + put_unsigned(number))
        (self.folder / "d.dat").write_bytes(out)
        said = self.run("decode", "-t", self.folder / "t.xml", "-f", self.folder / "d.dat",
                        "--sequence", "none", "--format", "json", "--keep-going",
                        "--header", self.header,
                        *([] if strict else ["--lenient"]))
        for number, data in enumerate(packets):
            mark = lines.Pairs((("template", "Mark"), ("id", MARK),
                                ("fields", lines.Pairs((("N", number),)))))
            if mark not in said:
                raise Difference(f"packet {number} {data.hex(' ')} has no end in {said[:20]}")
            end = said.index(mark)
            try:
                self.packet_is(data, said[:end], strict, begins[number])
            except Difference as error:
                how = "strict" if strict else "lenient"
                raise Difference(f"{how} packet {number}: {data.hex(' ')}\n{error}") from error
            said = said[end + 1 :]

    def converts(self, pick):
        """Checks values for fields of other types (section 8)."""
        types = [*SIZED, "decimal", *BYTES]
        text = "".join(
            f'<template name="F" id="{number}" templateNs="{type_}">'
            f'<{FIELDS.get(type_, type_)} name="V"/></template>'
            for number, type_ in enumerate(types, 1)
        )
        self.templates = Templates(f"<templates>{text}</templates>")
        (self.folder / "c.xml").write_text(f"<templates>{text}</templates>")
        cases = [(pick.randint(1, len(types)), foreign(pick)) for _ in range(60)]
        shown = [lines.write(lines.Pairs((("id", number), ("fields", lines.Pairs((
            ("V", lines.value(value)),)))))) for number, value in cases]
        (self.folder / "c.jsonl").write_text("\n".join(shown))
        said = self.run("encode", "-t", self.folder / "c.xml", "-f", self.folder / "c.jsonl", "-o",
                        self.folder / "c.dat", "--keep-going", "--header", self.header)
        told = {dict(one)["line"]: dict(one) for one in said}
        packets = self.packets("c.dat")
        for line, ((number, value), text) in enumerate(zip(cases, shown, strict=True), 1):
            is_ = told[line]["error"] if line in told else next(packets).hex(" ")
            try:
                template = self.templates.by_id[number]
                one = converted(value, types[number - 1])
                ours = (Encoder(self.templates).encode((template, [one])).hex(" "),)
            except FastError as error:
                ours = error.code, *error.others
            if is_ not in ours:
                raise Difference(f"{types[number - 1]} of {text}\nours {ours}\n is  {is_}")
        self.counts["converted"] += len(cases)

    def refuses(self, text):
        """Checks that the modified document is refused for the same reason, or read."""
        for _ in range(5):
            wrong = miswritten(self.pick, text)
            try:
                Templates(wrong)
                ours = None
            except TemplateError as error:
                ours = error.args[0]
            (self.folder / "w.xml").write_text(wrong)
            command = [self.fanfare, "fast", "templates", "--check", self.folder / "w.xml"]
            done = subprocess.run(command, capture_output=True, timeout=60, check=False)
            told = re.search(rb"w.xml: (S\d) at ", done.stderr)
            is_ = told and told[1].decode()
            if ours != is_ or done.returncode != int(ours is not None):
                said = f"{done.returncode}, {done.stderr.decode()}"
                raise Difference(f"w.xml: ours {ours}, is {said}")
            self.counts["miswritten"] += 1

    def explains(self):
        """Checks that a trace of the same bytes ends without an error, or with one; its text is not
        compared."""
        command = [self.fanfare, "fast", "explain", "-t", self.folder / "t.xml",
                   "-f", self.folder / "d.dat", "--header", self.header]
        done = subprocess.run(command, capture_output=True, timeout=60, check=False)
        if done.returncode not in (0, 1) or b"panicked" in done.stderr:
            raise Difference(f"explain ends with {done.returncode}: {done.stderr.decode()}")

    def packet_is(self, data, said, strict, begin):
        decoder, at, ours, error = Decoder(self.templates, strict), 0, [], None
        while at < len(data) and error is None:
            try:
                message, at = decoder.decode(data, at)
                ours.append(lines.of(message, self.templates))
            except FastError as stopped:
                error = stopped
        told = [dict(one) for one in said if one[0][0] == "error"]
        said = [one for one in said if one[0][0] != "error"]
        if error is not None and "LIMIT" in (error.code, *error.others) and told:
            if told[0]["error"] == "LIMIT":
                return
        for one, other in zip(ours, said, strict=False):
            if one != other:
                raise Difference(f"ours {lines.write(one)}\n is  {lines.write(other)}")
        if len(ours) != len(said) or bool(told) != (error is not None):
            ours = f"{len(ours)} messages, then {show([(0, error)])}"
            raise Difference(f"ours {ours}\n is  {len(said)} messages, then {told}")
        if error is not None:
            self.same_error(error, told[0], "")
            # The subject of an error: an entity, or a field, from begin to end.
            place = (decoder.begin, decoder.stream.at) if error.at is None else (error.at,) * 2
            if told[0]["error"] == error.code != "LIMIT":
                if not place[0] <= told[0]["offset"] - begin <= place[1]:
                    raise Difference(f"ours {show([(place, error)])}, is {told}, from {begin}")

    def same_error(self, error, told, where):
        if told["error"] not in (error.code, *error.others):
            raise Difference(f"{where} ours {show([(0, error)])}, is {told}")
        path = ".".join(error.path).replace(".[", "[")
        if told["error"] == error.code and "templateRef" not in path:
            if path != (told["field"] or ""):
                raise Difference(f"{where} ours {show([(0, error)])}, is {told}")


class Tracer(Decoder):
    """A decoder that records the origin of each field of a stream."""

    steps = ()

    def value(self, bits, operator, app_type, type_, optional, *others):
        start, entry = self.stream.at, self.entry(operator, app_type)
        step = [start, type_, "optional" if optional else "mandatory", operator, entry,
                self.values.get(entry, "undefined"),
                has_bit(operator, optional) and bits.bits[bits.used : bits.used + 1]]
        self.steps = (*self.steps, step)
        value = super().value(bits, operator, app_type, type_, optional, *others)
        step.append(value)
        return value


def fields_of(templates, data, other, keep=None):
    """Returns the first field whose bytes, or whose presence bit, differ, as both decode it."""
    shown = []
    for one in (data, other):
        tracer, at = Tracer(templates, False), 0
        if keep:
            tracer.values, tracer.identifier = keep[0].copy(), keep[1]
        try:
            while at < len(one):
                _, at = tracer.decode(one, at)
        except FastError as error:
            tracer.steps = (*tracer.steps, f"{error.code} {error.path}")
        shown.append(tracer.steps)
    for ours, is_ in zip(*shown, strict=False):
        if str(ours[5:]) != str(is_[5:]) or ours[0] != is_[0]:
            return f"ours {ours}\n is  {is_}"
    return "no field differs"


def show(errors):
    return [(n, e and (e.code, *e.others, ".".join(e.path))) for n, e in errors]


def main():
    fanfare, folder, seed, documents = sys.argv[1:5]
    end = time.monotonic() + float((sys.argv[5:] or ["inf"])[0])
    checker = Checker(fanfare, folder)
    try:
        for number in range(int(seed), int(seed) + int(documents)):
            if time.monotonic() > end:
                break
            checker.one(number)
    except KeyboardInterrupt:
        print("interrupted")
    print(" ".join(f"{name}={count}" for name, count in checker.counts.items()))
    return int(checker.counts["different"] > 0)


if __name__ == "__main__":
    sys.exit(main())

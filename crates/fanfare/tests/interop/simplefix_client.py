"""A FIX.4.4 initiator on simplefix, which only encodes and parses messages: the session layer is
implemented here. It runs a scenario with the acceptor on the port of its first argument, and ends
with an error at the first unexpected response."""

import datetime
import socket
import sys

import simplefix

connection = None
parser = simplefix.FixParser()
number = 0


def connect(first):
    global connection, parser, number
    connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=30)
    parser = simplefix.FixParser()
    number = first


def now():
    return datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)


def send(msg_type, *fields, own=None, again=False):
    """Sends a message with the next number, or with its own."""
    global number
    message = simplefix.FixMessage()
    message.append_pair(8, "FIX.4.4", header=True)
    message.append_pair(35, msg_type, header=True)
    message.append_pair(34, number if own is None else own, header=True)
    message.append_pair(49, "TW", header=True)
    message.append_pair(56, "ISLD", header=True)
    message.append_utc_timestamp(52, now(), precision=3, header=True)
    if again:
        message.append_pair(43, "Y", header=True)
        message.append_utc_timestamp(122, now(), precision=3, header=True)
    for tag, value in fields:
        message.append_pair(tag, value)
    if own is None:
        number += 1
    connection.sendall(message.encode())


def receive():
    while True:
        message = parser.get_message()
        if message is not None:
            return message
        data = connection.recv(4096)
        if not data:
            return None
        parser.append_buffer(data)


def expect(msg_type, sequence, *fields):
    """Checks that the next message has this type and number, and these fields in any place."""
    message = receive()
    if message is None:
        sys.exit(f"closed instead of {msg_type} {sequence}")
    got = [(int(tag), value.decode()) for tag, value in message.pairs]
    wanted = [(35, msg_type), (34, str(sequence)), (49, "ISLD"), (56, "TW")]
    for pair in wanted + [(tag, str(value)) for tag, value in fields]:
        if pair not in got:
            sys.exit(f"{pair} is not in {got}")
    return message


def closed():
    message = receive()
    if message is not None:
        sys.exit(f"{message} instead of the end")


def order(name):
    body = [(11, name), (21, 3), (55, "INTC"), (54, 1)]
    return body + [(60, now().strftime("%Y%m%d-%H:%M:%S")), (38, 100), (40, 1)]


# Logon and traffic.
connect(1)
send("A", (98, 0), (108, 30))
expect("A", 1, (98, 0), (108, 30))
send("D", *order("A"))
expect("D", 2, (11, "A"))
send("1", (112, "HELLO"))
expect("0", 3, (112, "HELLO"))

# The acceptor misses numbers 4 and 5 and requests them; the response is an order and a gap fill.
number = 6
send("D", *order("D"))
expect("2", 4, (7, 4), (16, 0))
send("D", *order("B"), own=4, again=True)
send("4", (123, "Y"), (36, 6), own=5, again=True)
expect("D", 5, (11, "B"))
expect("D", 6, (11, "D"))

# Everything again: session messages are filled, echoes are possible duplicates.
send("2", (7, 1), (16, 0))
expect("4", 1, (43, "Y"), (123, "Y"), (36, 2))
expect("D", 2, (43, "Y"), (11, "A"))
expect("4", 3, (43, "Y"), (123, "Y"), (36, 5))
expect("D", 5, (43, "Y"), (11, "B"))
if expect("D", 6, (43, "Y"), (11, "D")).get(122) is None:
    sys.exit("no OrigSendingTime in a resent message")
send("D", *order("E"))
expect("D", 7, (11, "E"))

# A malformed session message, then a reset upwards, whatever its own number.
send("1")
expect("3", 8, (45, number - 1), (371, 112), (373, 1))
send("4", (36, 50), own=0)
number = 50
send("1", (112, "RESET"))
expect("0", 9, (112, "RESET"))

# Both sides restart at 1 while the session is live.
number = 1
send("A", (98, 0), (108, 30), (141, "Y"))
expect("A", 1, (141, "Y"))
send("D", *order("F"))
expect("D", 2, (11, "F"))

# Numbers survive the logout.
send("5")
expect("5", 3)
closed()
connect(4)
send("A", (98, 0), (108, 30))
expect("A", 4)
send("D", *order("G"))
expect("D", 5, (11, "G"))
send("5")
expect("5", 6)
closed()

# A number that is too low ends the session.
connect(2)
send("A", (98, 0), (108, 30))
expect("5", 7, (58, "MsgSeqNum too low, expecting 7 but received 2"))
closed()
print("done")

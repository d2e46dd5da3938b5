"""The other side of the interoperation test: a Python program that knows our types only from what
we announce of them. It takes each sample into Python objects and writes it back from them on the
topic with _back behind its name; then it says how many there were. Before that, it says when it
has met the other side: what a writer writes before, nobody gets."""

import ctypes
import sys
import time

from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication
from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.dynamic import get_types_for_typeid
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

# PR_SET_PDEATHSIG: it ends with the test that started it, however that ends.
ctypes.CDLL(None).prctl(1, 15)
names, wanted = set(sys.argv[1].split(",")), int(sys.argv[2])
qos = Qos(Policy.Reliability.Reliable(duration(seconds=1)), Policy.History.KeepAll)
participant = DomainParticipant(0)
seen = BuiltinDataReader(participant, BuiltinTopicDcpsPublication)
ends, end = [], time.monotonic() + 60
while names and time.monotonic() < end:
    for writer in seen.take(N=64):
        if writer.topic_name in names:
            kind, _ = get_types_for_typeid(participant, writer.type_id, duration(seconds=10))
            reader = DataReader(participant, Topic(participant, writer.topic_name, kind), qos=qos)
            back = Topic(participant, writer.topic_name + "_back", kind)
            ends.append((reader, DataWriter(participant, back, qos=qos)))
            names.remove(writer.topic_name)
    time.sleep(0.01)
while time.monotonic() < end and not all(
    reader.get_matched_publications() and writer.get_matched_subscriptions()
    for reader, writer in ends
):
    time.sleep(0.001)
print("ready", flush=True)
done, end = 0, time.monotonic() + 60
while done < wanted and time.monotonic() < end:
    for reader, writer in ends:
        for sample in reader.take(N=64):
            writer.write(sample)
            done += 1
    time.sleep(0.001)
print(done, flush=True)
sys.stdin.read()

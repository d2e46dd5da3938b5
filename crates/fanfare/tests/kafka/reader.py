"""Prints the messages of a topic, in the order of its partitions and offsets, a JSON array per
line: partition, number, header, key, value in hexadecimal digits, ID of the log. PyPI's
kafka-python reads them."""
import json
import sys

from kafka import KafkaConsumer, TopicPartition

broker, topic = sys.argv[1:]
reader = KafkaConsumer(
    bootstrap_servers=broker, isolation_level="read_committed", enable_auto_commit=False
)
partitions = [TopicPartition(topic, n) for n in sorted(reader.partitions_for_topic(topic) or ())]
reader.assign(partitions)
reader.seek_to_beginning(*partitions)
ends = reader.end_offsets(partitions)
while any(reader.position(one) < ends[one] for one in partitions):
    for one, messages in reader.poll(timeout_ms=200).items():
        for message in messages:
            headers = dict(message.headers)
            number = int(headers.pop("number"))
            log = headers.pop("log").decode()
            key = message.key.decode() if message.key is not None else None
            line = [one.partition, number, "".join(headers), key, message.value.hex(), log]
            print(json.dumps(line))

"""Removes a topic, and makes it again with three partitions. PyPI's kafka-python asks for it."""
import sys
import time

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

broker, topic = sys.argv[1:]
admin = KafkaAdminClient(bootstrap_servers=broker)
admin.delete_topics([topic])
until = time.monotonic() + 60
while True:
    try:
        admin.create_topics({topic: {"num_partitions": 3, "replication_factor": 1}})
        break
    except KafkaError:
        # Its removal takes some time.
        if time.monotonic() > until:
            raise
        time.sleep(0.05)
admin.close()

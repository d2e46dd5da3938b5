"""Opens a transaction with a message for each partition of some topics, prints a line, and aborts
it at the end of stdin. PyPI's kafka-python writes it."""
import sys

from kafka import KafkaProducer

broker, *topics = sys.argv[1:]
writer = KafkaProducer(
    bootstrap_servers=broker, transactional_id="other", transaction_timeout_ms=60000
)
writer.init_transactions()
writer.begin_transaction()
for topic in topics:
    for partition in writer.partitions_for(topic):
        writer.send(topic, b"other", partition=partition)
writer.flush()
print("open", flush=True)
sys.stdin.read()
writer.abort_transaction()
writer.close()

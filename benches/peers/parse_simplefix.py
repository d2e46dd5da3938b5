"""simplefix as a peer of the benchmarks.

parse_simplefix.py FILE prints "parsed NANOSECONDS", for each parse of the message in the file. The
library checks neither BodyLength(9) nor CheckSum(10).
"""

import statistics
import sys
import time

from simplefix import FixParser

BATCHES, PARSES = 60, 100


def main(file):
    with open(file, "rb") as message:
        text = message.read()
    parser = FixParser()
    fields = text.count(b"\x01")
    took = []
    for _ in range(BATCHES):
        found = 0
        began = time.perf_counter_ns()
        for _ in range(PARSES):
            parser.append_buffer(text)
            found += parser.get_message().count()
        took.append((time.perf_counter_ns() - began) / PARSES)
        assert found == fields * PARSES, f"{found} fields"
    # The first half warms up.
    print("parsed", statistics.median(took[BATCHES // 2 :]), flush=True)


main(sys.argv[1])

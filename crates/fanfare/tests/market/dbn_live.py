"""Subscribes with PyPI's databento, and prints its records as JSON lines: dbn_live.py PORT KEY CHAPTER.

Runs the recipe of the chapter, too."""

import json
import re
import sys
import threading
from pathlib import Path

import databento as db

port, key = int(sys.argv[1]), sys.argv[2]
SCHEMAS = ["trades", "mbp-1", "mbp-10", "tbbo", "bbo-1s", "ohlcv-1s", "definition", "status", "statistics"]


def live(key=key, **options):
    return db.Live(key=key, gateway="127.0.0.1", port=port, **options)


def say(**what):
    print(json.dumps(what), flush=True)


try:
    live(key[:-1] + "!").subscribe(dataset="FANFARE", schema="trades")
    say(wrong_key="let in")
except Exception as error:
    say(wrong_key=str(error))


class Session:
    """A session, with its records by type."""

    def __init__(self, subscriptions, **options):
        self.records, self.texts, self.metadata = [], [], None
        self.changed = threading.Condition()
        self.client = live(**options)
        for schema, symbols, more in subscriptions:
            self.client.subscribe(dataset="FANFARE", schema=schema, symbols=symbols, **more)
        self.client.add_callback(self.take)
        self.client.start()

    def take(self, record):
        with self.changed:
            if isinstance(record, (db.SystemMsg, db.ErrorMsg)):
                text = record.msg if isinstance(record, db.SystemMsg) else record.err
                self.texts.append([type(record).__name__, int(record.code), text])
            else:
                self.records.append(record)
            self.changed.notify_all()

    def wait(self, holds):
        with self.changed:
            if not self.changed.wait_for(lambda: holds(self), timeout=60):
                say(late=len(self.records), texts=self.texts)

    def of(self, kind):
        return [record for record in self.records if isinstance(record, kind)]


def trade(record):
    return [record.instrument_id, record.ts_recv, record.price, record.size, record.sequence]


def accepted(count):
    return lambda own: sum(text[1] == 1 and text[0] == "SystemMsg" for text in own.texts) == count


one = Session([(schema, "ALL_SYMBOLS", {}) for schema in SCHEMAS] + [("mbo", "ALL_SYMBOLS", {"snapshot": True})])
timed = Session([("trades", "ALL_SYMBOLS", {})], ts_out=True, compression=db.Compression.ZSTD, heartbeat_interval_s=5)
unknown = Session([("trades", ["NONE"], {})], slow_reader_behavior="warn")
one.wait(accepted(len(SCHEMAS) + 1))
timed.wait(accepted(1))
unknown.wait(lambda own: any(text[0] == "ErrorMsg" for text in own.texts))
say(unknown=unknown.texts)
unknown.client.terminate()
say(ready=True)

# The number of trades, and the volume.
count, volume = map(int, sys.stdin.readline().split())
for session in (one, timed):
    session.wait(lambda own: len(own.of(db.TradeMsg)) >= count)
one.wait(lambda own: sum(bar.volume for bar in own.of(db.OHLCVMsg)) >= volume)
mbp1 = [record for record in one.of(db.MBP1Msg)]
say(
    trades=[trade(record) for record in one.of(db.TradeMsg)],
    timed=[trade(record) for record in timed.of(db.TradeMsg)],
    late=sum(record.ts_out < record.ts_recv for record in timed.of(db.TradeMsg)),
    tbbo=[trade(record) for record in mbp1 if record.action == "T"],
    mbp1=len(mbp1),
    mbp10=len(one.of(db.MBP10Msg)),
    volume=sum(bar.volume for bar in one.of(db.OHLCVMsg)),
    bars=[[bar.open, bar.high, bar.low, bar.close] for bar in one.of(db.OHLCVMsg)],
    quotes=len(one.of(db.BBOMsg)),
    symbols=one.client.symbology_map,
    errors=[text for text in one.texts + timed.texts if text[0] == "ErrorMsg"],
)
timed.client.terminate()
# A client reconnects with the same key.
again = Session([("trades", "ALL_SYMBOLS", {})])
again.wait(accepted(1))
say(again=True)
for session in (one, again):
    session.client.terminate()

# The recipe of the chapter, with another address and dataset.
code = re.search(r"## From Python\n\n```python\n(.*?)```", Path(sys.argv[3]).read_text(), re.S)[1]
names = list(one.client.symbology_map.values())[:2]
for text, own in [("db-…", key), ("13000", str(port)), ('"RIU3", "SIU3"', json.dumps(names)[1:-1]),
                  ('"2026-11-23T10:31"', "0")]:
    assert text in code, text
    code = code.replace(text, own)
received = []


def take(symbol, record):
    """Replaces print: ends the recipe when it has all trades."""
    if isinstance(record, db.TradeMsg):
        assert symbol, record
        received.append(trade(record))
        if len(received) == count:
            recipe["client"].terminate()


recipe = {"print": take}
exec(code, recipe)
say(recipe=received)

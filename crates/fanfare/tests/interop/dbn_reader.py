"""Prints levels and trades of a DBN file, one per line, with the symbols of the stream."""
import sys
from decimal import Decimal

import databento_dbn as dbn

UNDEFINED = 2**63 - 1


def price(units):
    if units == UNDEFINED:
        return "-"
    text = f"{Decimal(units) / 10**9:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def size(value):
    return "-" if value == 2**32 - 1 else value


with open(sys.argv[1], "rb") as file:
    decoder = dbn.DBNDecoder()
    decoder.write(file.read())
symbols = {}
for record in decoder.decode():
    if isinstance(record, dbn.Metadata):
        assert record.dataset == "FANFARE" and record.schema is None
        continue
    if isinstance(record, dbn.SymbolMappingMsg):
        symbols[record.instrument_id] = record.stype_out_symbol
        continue
    kinds = {dbn.MBP10Msg: "level", dbn.TradeMsg: "trade"}
    kind = kinds.get(type(record))
    if kind:
        symbol = symbols[record.instrument_id]
        print(kind, symbol, record.sequence, price(record.price), size(record.size))

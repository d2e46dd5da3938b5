"""Compares each column of exports of a log with the output of `history cat --json`, and runs the
recipes of docs/history.md."""
import json
import os
import re
import sys
import textwrap
from decimal import Decimal
from pathlib import Path

import databento
import duckdb
import pandas
import polars
import pyarrow.dataset
import pyarrow.parquet

folder = Path(sys.argv[1])
lines = [json.loads(line) for line in open(folder / "cat")]
IDS = ["orders", "order_id", "trade_id", "revision", "status", "id"]
SAME = ["number", "ts_recv", "ts_event", "symbol", "security_id", "kind", "action", "entry",
        "level", "size", "rpt_seq"]


def wanted(line):
    if "lost" in line:
        lost = line["lost"]
        return {"number": lost["first"], "kind": "lost", "lost": lost["last"]}
    row = {name: line.get(name) for name in SAME}
    row["instrument"] = None if line["instrument"] == "all" else line["instrument"]
    row["price"] = Decimal(line["price"]) if "price" in line else None
    row["id"] = next((line[name] for name in IDS if name in line), None)
    row["snapshot"], row["last"] = line.get("snapshot", False), line.get("last", False)
    row["security_id_source"] = line.get("source")
    definition = line.get("definition")
    row["definition"] = definition and json.dumps(definition, separators=(",", ":"))
    return row


ROWS = [wanted(line) for line in lines]
COLUMNS = [*SAME, "instrument", "price", "id", "snapshot", "last", "security_id_source",
           "lost", "definition"]


def same(what, column, values):
    expected = [row.get(column, False if column in ("snapshot", "last") else None)
                for row in ROWS]
    for at, (one, other) in enumerate(zip(values, expected, strict=True)):
        assert one == other, f"{what} {column} of row {at}: {one!r}, not {other!r}"


def plain(value):
    return None if value is pandas.NA or value is pandas.NaT else value


def csv():
    frame = pandas.read_csv(folder / "day.csv", dtype=str, keep_default_na=False)
    numbers = {"number", "ts_recv", "ts_event", "level", "size", "rpt_seq", "instrument", "id",
               "lost"}
    for column in COLUMNS:
        read = int if column in numbers else str
        read = Decimal if column == "price" else read
        read = (lambda text: text == "true") if column in ("snapshot", "last") else read
        same("csv", column, [None if text == "" else read(text) for text in frame[column]])


def parquet():
    file = str(folder / "day.parquet")
    times = ["ts_recv", "ts_event"]
    frame = polars.read_parquet(file)
    assert frame.schema["ts_recv"] == polars.Datetime("ns", "UTC"), frame.schema
    assert frame.schema["price"] == polars.Decimal(19, 9), frame.schema
    frame = frame.with_columns(polars.col(times).cast(polars.Int64))
    for column in COLUMNS:
        same("polars", column, frame[column].to_list())
    frame = pandas.read_parquet(file, dtype_backend="numpy_nullable")
    assert str(frame.dtypes["size"]) == "Int64", frame.dtypes
    assert str(frame.dtypes["ts_recv"]) == "datetime64[ns, UTC]", frame.dtypes
    for column in COLUMNS:
        values = [plain(value) for value in frame[column]]
        if column in times:
            values = [value and value.value for value in values]
        same("pandas", column, values)
    casts = ", ".join(f"epoch_ns({time}) AS {time}" for time in times)
    table = duckdb.sql(f"SELECT * REPLACE ({casts}) FROM '{file}' ORDER BY number")
    names, values = table.columns, table.fetchall()
    for column in COLUMNS:
        same("duckdb", column, [row[names.index(column)] for row in values])
    total = duckdb.sql(f"SELECT sum(size) FROM '{file}' WHERE kind = 'trade'").fetchall()[0][0]
    assert total == sum(row["size"] for row in ROWS if row["kind"] == "trade")
    found = duckdb.sql(
        f"SELECT count(*) FROM parquet_metadata('{file}') WHERE stats_min_value IS NOT NULL "
        "AND path_in_schema IN ('number', 'ts_recv', 'price', 'symbol', 'kind')"
    ).fetchall()[0][0]
    assert found >= 5, found


def row_groups():
    """Checks that row groups are in the order of time, and that readers skip those that they do not
    need."""
    path = folder / "long.parquet"
    file = pyarrow.parquet.ParquetFile(path)
    metadata = file.metadata
    assert metadata.num_rows == 300_000 and metadata.num_row_groups == 3, metadata
    columns = {metadata.schema.column(at).path: at for at in range(metadata.num_columns)}
    for name in ["number", "ts_recv"]:
        chunks = [metadata.row_group(group).column(columns[name]) for group in range(3)]
        assert all(chunk.has_column_index and chunk.has_offset_index for chunk in chunks), name
        values = [chunk.statistics for chunk in chunks]
        for one, other in zip(values, values[1:]):
            assert one.min < one.max < other.min, f"{name}: {one.max} {other.min}"
    for name in ["price", "size", "symbol", "kind"]:
        statistics = metadata.row_group(2).column(columns[name]).statistics
        assert statistics.has_min_max and statistics.null_count == 0, f"{name}: {statistics}"
    assert metadata.row_group(0).sorting_columns[0].column_index == columns["number"]
    # An hour in the middle is in one row group, and an absent level in none.
    noon = pandas.Timestamp("2026-11-23T12:00:00Z")
    begin = noon + pandas.Timedelta(hours=40)
    end = begin + pandas.Timedelta(hours=1)
    [fragment] = pyarrow.dataset.dataset(path).get_fragments()
    time, size = pyarrow.dataset.field("ts_recv"), pyarrow.dataset.field("size")
    is_wanted = (time >= begin) & (time < end)
    assert len(fragment.split_by_row_group(filter=is_wanted)) == 1
    assert len(fragment.split_by_row_group(filter=size > 240_000)) == 0
    frame = pandas.read_parquet(path, filters=is_wanted)
    found = duckdb.sql(f"SELECT count(*), sum(size) FROM '{path}' WHERE ts_recv >= '{begin}' "
                       f"AND ts_recv < '{end}'").fetchall()[0]
    assert (len(frame), frame["size"].sum()) == found and len(frame) == 3_600 + 900, found


def interrupted():
    """Checks that an export ended by Ctrl-C is complete up to its end."""
    def is_begin(what, numbers):
        numbers = list(numbers)
        assert 1_000 < len(numbers) < 300_000, f"{what}: {len(numbers)}"
        assert numbers == list(range(1, len(numbers) + 1)), what

    is_begin("csv", pandas.read_csv(folder / "cut.csv")["number"])
    assert (folder / "cut.csv").read_bytes().endswith(b"\n")
    trades = databento.DBNStore.from_file(folder / "cut.dbn").to_df(schema="trades")
    assert 100 < len(trades) < 60_000, len(trades)
    assert list(trades["size"]) == [4 * at + 1 for at in range(len(trades))]
    if (folder / "cut.parquet").exists():
        rows = duckdb.sql(f"SELECT number FROM '{folder / 'cut.parquet'}'").fetchall()
        is_begin("parquet", (number for number, in rows))


def dbn():
    store = databento.DBNStore.from_file(folder / "day.dbn")
    trades = store.to_df(schema="trades", price_type="decimal")
    expected = [row for row in ROWS if row["kind"] == "trade"]
    assert len(trades) == len(expected) > 100
    for trade, row in zip(trades.itertuples(), expected):
        assert trade.price == row["price"] and trade.size == row["size"], (trade, row)
        assert trade.symbol == row["symbol"], (trade, row)
        assert trade.sequence == row["rpt_seq"], (trade, row)
        assert trade.ts_event.value == row["ts_event"], (trade, row)
        assert trade.Index.value == row["ts_recv"], (trade, row)
    books = store.to_df(schema="mbp-10")
    levels = [row for row in ROWS if row["kind"] == "level"]
    assert len(books) >= len(levels)
    assert list(books["size"][:len(levels)]) == [row["size"] for row in levels]
    values = store.to_df(schema="statistics", price_type="decimal")
    assert list(values["price"])[0] == Decimal("-2.5") and values["quantity"].iloc[1] == 1 << 30


def recipes():
    """Runs the code of the chapter unchanged, on the files that it names."""
    os.chdir(folder)
    text = Path(sys.argv[2]).read_text().replace("RIU3", "ALFA")
    found = re.findall(r"^### (\w+).*\n\n((?:    .*\n|\n)+)", text, re.M)
    blocks = {name: textwrap.dedent(code) for name, code in found}
    trades = [row for row in ROWS if row["kind"] == "trade"]
    results = {}
    if Path("day.parquet").exists():
        exec(blocks["pandas"], results)
        assert results["bars"]["high"].max() == max(float(row["price"]) for row in trades)
        *lines, query = blocks["polars"].strip().split("\n", 1)
        exec("\n".join(lines), results)
        minutes = eval(query, results)
        alfa = [row for row in trades if row["symbol"] == "ALFA"]
        assert minutes["size"].sum() == sum(row["size"] for row in alfa) > 0
        volumes = duckdb.sql(blocks["DuckDB"]).fetchall()
        assert sum(row[1] for row in volumes) == len(trades)
    exec(blocks["databento"], results)
    assert len(results["trades"]) == len(trades) and len(results["books"]) > 0


csv()
if (folder / "day.parquet").exists():
    parquet()
    row_groups()
dbn()
interrupted()
recipes()

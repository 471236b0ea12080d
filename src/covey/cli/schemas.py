"""`covey schema`: the types that attributes of events have, from a sample of them."""

from __future__ import annotations

import json
from itertools import islice

from covey.cli.arguments import SchemaOptions
from covey.events import Schema, read_json_lines
from covey.events import csv_files as csv
from covey.events.files import parquet_file, sources, with_partitions


def run(options: SchemaOptions) -> int:
    """Print the schema as JSON, or write it."""
    text = json.dumps({name: one.type for name, one in _sampled(options).attributes.items()}, indent=2) + "\n"
    if options.output is None:
        print(text, end="")
    else:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text)
    return 0


def _sampled(options: SchemaOptions) -> Schema:
    first, *_ = sources(options.events, options.format)
    with first.open() as (file, _):
        if first.format == "jsonl":
            return Schema.infer(islice(read_json_lines(file, name=first.name, bad=[]), options.sample))
        if first.format == "parquet":
            batches = parquet_file(file, first.name).iter_batches(batch_size=1)
        else:
            batches = csv.batches(file, first.name, {}, lambda _row, _problem: None, "is it CSV?")
        batch = next(batches, None)
        return Schema({}) if batch is None else Schema.infer(with_partitions(batch, first.partitions))

"""`covey schema`: the types that attributes of events have, from a sample of them."""

from __future__ import annotations

import json
from itertools import islice

from covey.cli.arguments import SchemaOptions
from covey.events import BadLine, Schema, read_json_lines
from covey.events import csv_files as csv
from covey.events.files import Source, parquet_file, sources, with_partitions
from covey.events.types import AttributeType, common_type, type_named
from covey.events.xml_lines import read_xml_lines


def run(options: SchemaOptions) -> int:
    """Print the schema as JSON, or write it."""
    text = json.dumps(_types(options), indent=2) + "\n"
    if options.output is None:
        print(text, end="")
    else:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text)
    return 0


def _types(options: SchemaOptions) -> dict[str, str]:
    """The types of attributes by all files; those that files hold in types which don't go together are left out."""
    given = sources(options.events, options.format, xml=True)
    found: dict[str, AttributeType | None] = {}
    for one in given:
        for name, attribute in _sampled(one, max(1, options.sample // len(given))).attributes.items():
            kind = type_named(attribute.type)
            known = found.get(name, kind)
            found[name] = None if known is None else common_type(known, kind)
    return {name: kind.name for name, kind in found.items() if kind is not None}


def _sampled(one: Source, most: int) -> Schema:
    with one.open() as (file, _):
        if one.format == "jsonl":
            return Schema.infer(islice(read_json_lines(file, name=one.name, bad=[]), most))
        if one.format == "xml":
            return Schema.infer(read[1] for read in islice(read_xml_lines(file), most) if not isinstance(read, BadLine))
        if one.format == "parquet":
            batches = parquet_file(file, one.name).iter_batches(batch_size=1)
        else:
            batches = csv.batches(file, one.name, {}, lambda _row, _problem: None, "is it CSV?")
        batch = next(batches, None)
        return Schema({}) if batch is None else Schema.infer(with_partitions(batch, one.partitions))

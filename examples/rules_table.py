"""A table of rules in Parquet, a table of orders, and a table of which rule each order meets. Arrow in, Arrow out."""

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import covey

rules = pa.table(
    {
        "id": ["large", "express-abroad", "watch-list", "no-address"],
        "filter": [
            "total >= 1000",
            "express AND NOT country = 'NL'",
            "customer IN ('c-17', 'c-42') OR email LIKE '%@example.org'",
            "address.street IS NULL",
        ],
    }
)
orders = pa.table(
    {
        "customer": ["c-1", "c-42", "c-3"],
        "total": [1250.0, 80.0, 19.5],
        "express": [False, True, False],
        "country": ["NL", "DE", "NL"],
        "email": ["a@example.com", None, "z@example.org"],
        "address": [{"street": "Dam 1"}, {"street": "Ring 2"}, None],
    }
)

with tempfile.TemporaryDirectory() as directory:
    path = Path(directory) / "rules.parquet"
    pq.write_table(rules, path)

    index = covey.Index()
    stored = pq.read_table(path)
    report = index.add_many(zip(stored["id"].to_pylist(), stored["filter"].to_pylist(), strict=True))
    print(f"{report.added} rules")

    # A saved index opens by mapping the file, so many processes can share one.
    index.save(Path(directory) / "rules.covey")
    index = covey.Index.open(Path(directory) / "rules.covey")
    found = index.match_batch(orders)

print(orders.select(["customer", "total"]).append_column("rules", found.lists()).to_pylist())
print(found.pairs().to_pylist())

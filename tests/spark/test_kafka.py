"""A stream from Kafka, where a broker and Spark's connector are at hand.

Set COVEY_KAFKA to the broker's address (`localhost:9092`) and COVEY_KAFKA_CONNECTOR to the connector
(`org.apache.spark:spark-sql-kafka-0-10_2.13:<Spark's version>`, or paths of jars with commas between). The test runs in
a process of its own, because a session that has started takes no more jars.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BROKER, CONNECTOR = os.environ.get("COVEY_KAFKA"), os.environ.get("COVEY_KAFKA_CONNECTOR")

DRIVER = """
import json, sys, uuid
from pathlib import Path
from covey.spark import local_session, match_stream, read_matches

broker, connector, directory = sys.argv[1], sys.argv[2], Path(sys.argv[3])
jars = "spark.jars" if connector.endswith(".jar") else "spark.jars.packages"
spark = local_session("covey kafka", 2, **{jars: connector})
topic = f"covey-{uuid.uuid4().hex}"
quotes = [(json.dumps({"symbol": f"S{n % 5}", "price": float(n)}),) for n in range(200)]
to_kafka = {"kafka.bootstrap.servers": broker, "topic": topic}
spark.createDataFrame(quotes, "value string").write.format("kafka").options(**to_kafka).save()
from_kafka = {"kafka.bootstrap.servers": broker, "subscribe": topic, "startingOffsets": "earliest"}
raw = spark.readStream.format("kafka").options(**from_kafka).load()
events = raw.selectExpr("from_json(CAST(value AS STRING), 'symbol string, price double') AS quote").select("quote.*")
(directory / "changes").mkdir()
changes = [{"version": 1, "op": "add", "id": "s3", "filter": "symbol = 'S3' AND price < 100"}]
(directory / "changes" / "1.jsonl").write_text("".join(json.dumps(one) + "\\n" for one in changes))
for _ in range(2):  # the second run starts from the checkpoint and finds nothing new
    query = match_stream(events, directory / "changes", checkpoint=directory / "checkpoint",
                         sink=directory / "matches", trigger="availableNow", output="pairs")
    query.awaitTermination(120)
rows = read_matches(spark, directory / "matches").collect()
print(json.dumps(sorted(row.price for row in rows)))
"""


@pytest.mark.skipif(not (BROKER and CONNECTOR), reason="COVEY_KAFKA and COVEY_KAFKA_CONNECTOR name no broker")
def test_events_from_kafka_are_matched_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", DRIVER, str(BROKER), str(CONNECTOR), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [float(n) for n in range(3, 100, 5)]

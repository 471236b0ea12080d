"""Rules that change in a compacted topic: a record's key is an id, its value the filter, and no value removes the rule.

The topic has one partition, so that changes have one order, and a version is the position up to which it was read. A
stream that begins reads from the start what compaction left. One that is started again and finds news reads all of it,
too: while it was down, compaction may have removed a record that removes a rule (Kafka keeps these for a day,
`delete.retention.ms`), so a rule that no record names any more is gone. From then on it reads from its version. Of
several records of one id that come together the last counts, as after compaction.

Whoever may write to the topic may write rules, so they are taken as a broker takes them: by the limits for brokers,
with the functions of the allow list alone. What isn't a rule by these is a bad change; the rule that was there stays.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from covey.errors import CoveyError, FilterError
from covey.language import parse
from covey.limits import BROKER_FILTER_LIMITS, Limits
from covey.matching import Index
from covey.spark.conditions.binding import checked
from covey.spark.kafka.client import SECONDS, failed, kafka_client
from covey.spark.stream.ids import STRING
from covey.spark.stream.sources import BadChange, Change, Fetched, one_line

_ID_BYTES = 1_024
"""Bytes of an id, which every match repeats."""


class RulesTopic:
    """Rules in a topic, for `match_stream`. `most` is how many there may be; `options` are of Kafka's client."""

    def __init__(
        self,
        servers: str,
        topic: str,
        *,
        limits: Limits = BROKER_FILTER_LIMITS,
        most: int = 1_000_000,
        functions: Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.topic = topic
        self._settings = {
            "group.id": f"covey-rules-{topic}", "isolation.level": "read_committed", **(options or {}),
            "bootstrap.servers": servers, "enable.auto.commit": False, "enable.auto.offset.store": False,
            "enable.partition.eof": True, "auto.offset.reset": "error",
        }  # fmt: skip
        self._limits = limits
        self._most = most
        self._functions = tuple(functions)
        self._consumer: Any = None
        self._follows = False
        """Whether all that the topic says was read since this process began."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_consumer": None, "_follows": False}

    def fetch(self, index: Index, version: int, consumed: Collection[str]) -> Fetched:
        """What the topic says since a version."""
        anew = version > 0 and not self._follows and self.newest(version, consumed) > version
        newest, records = self._read(0 if anew else version)
        self._follows |= anew or version == 0
        if newest <= version:
            return Fetched(version)
        fetched = Fetched(newest)
        source = f"{self.topic}-{newest}"
        last = {key: (offset, value) for offset, key, value in records}
        if anew:
            named = {key for key in last if key is not None}
            gone = [id for id in index.ids() if str(id).encode() not in named]
            fetched.changes += [Change(newest, "remove", id, "", source, newest) for id in gone]
        count = len(index) - len(fetched.changes)
        for key, (offset, value) in last.items():
            if offset < version:  # which was taken, or told to be bad, when it came
                continue
            made = self._change(index, newest, source, offset, key, value)
            if isinstance(made, Change) and made.op == "add" and count >= self._most:
                made = BadChange(source, offset, made.id, f"there are {count:,} rules, which is all there may be")
            if isinstance(made, BadChange):
                fetched.bad.append(made)
            elif made is not None:
                fetched.changes.append(made)
                count += {"add": 1, "remove": -1}.get(made.op, 0)
        return fetched

    def newest(self, version: int, consumed: Collection[str]) -> int:  # noqa: ARG002
        """The topic's end."""
        kafka = kafka_client()
        try:
            _, end = self._connected().get_watermark_offsets(kafka.TopicPartition(self.topic, 0), SECONDS)
        except kafka.KafkaException as error:
            raise failed(f"topic {self.topic}", error) from None
        return max(version, int(end))

    def id_type(self) -> str:
        """Keys are texts."""
        return STRING

    def expect(self, id_type: str) -> None:
        """Take ids of this type alone."""
        if id_type != STRING:
            raise CoveyError(f"ids in a topic are strings, and this stream began with ids of type {id_type}")

    def _connected(self) -> Any:
        if self._consumer is None:
            kafka = kafka_client()
            consumer = kafka.Consumer(self._settings)
            try:
                found = consumer.list_topics(self.topic, SECONDS).topics[self.topic]
            except kafka.KafkaException as error:
                raise failed(f"topic {self.topic}", error) from None
            if found.error is not None:
                raise failed(f"topic {self.topic}", found.error)
            if len(found.partitions) != 1:
                raise CoveyError(
                    f"topic {self.topic} has {len(found.partitions)} partitions, between which changes have no order; "
                    "rules need a topic with one"
                )
            self._consumer = consumer
        return self._consumer

    def _read(self, version: int) -> tuple[int, list[tuple[int, bytes | None, bytes | None]]]:
        """The position of the topic's end, and the records before it, from a version on."""
        kafka = kafka_client()
        consumer = self._connected()
        start = version or kafka.OFFSET_BEGINNING
        consumer.assign([kafka.TopicPartition(self.topic, 0, start)])
        records: list[tuple[int, bytes | None, bytes | None]] = []
        while True:
            record = consumer.poll(SECONDS)
            if record is None:
                raise CoveyError(f"Kafka, topic {self.topic}: no answer within {SECONDS:.0f} s")
            error = record.error()
            if error is None:
                records.append((record.offset(), record.key(), record.value()))
            elif error.code() == kafka.KafkaError._PARTITION_EOF:
                return max(version, record.offset()), records
            else:
                raise failed(f"topic {self.topic}", error)

    def _change(
        self, index: Index, version: int, source: str, offset: int, key: bytes | None, value: bytes | None
    ) -> Change | BadChange | None:
        try:
            id = "" if key is None else key.decode()
            text = None if value is None else value.decode()
        except UnicodeDecodeError:
            return BadChange(source, offset, None, "key and value of a record are texts in UTF-8")
        if not id or len(key or b"") > _ID_BYTES:
            return BadChange(source, offset, None, f"a record's key is the rule's id, of 1 to {_ID_BYTES:,} bytes")
        known = id in index
        if text is None:
            return Change(version, "remove", id, "", source, offset) if known else None
        wrong = self._wrong(text, index.dialect)
        if wrong is not None:
            return BadChange(source, offset, id, one_line(wrong))
        if known and index.text(id) == text:
            return None
        return Change(version, "replace" if known else "add", id, text, source, offset)

    def _wrong(self, text: str, dialect: str) -> CoveyError | None:
        try:
            parse(text, dialect, limits=self._limits)
        except FilterError as error:
            if dialect != "sql":
                return error
            try:  # what only Spark reads
                checked(text, self._functions, self._limits)
            except (CoveyError, RecursionError):
                return error
        except CoveyError as error:
            return error
        return None

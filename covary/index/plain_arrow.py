"""Arrow as an index holds it: one batch, as large in memory as it is in its file.

An index may come from somebody else, and Arrow can hold much in little: batches that are compressed, that
repeat one text a million times, or that come one after the other. A file of ours holds none of these, so
whatever else it might be is refused before it is read. What was looked at is what is read: the same message.
"""

import struct
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.ipc

MESSAGE_HEADER, BATCH_COMPRESSION = 2, 3  # fields by their numbers in Arrow's format
LARGEST_FOOTER = 1 << 16  # bytes after the batch
PIECE = 1 << 22  # bytes unpacked at a time
UNPACKED_AT_MOST, UNPACKED_TIMES = 1 << 28, 100  # bytes of what is packed, and more if it is large
MAY_BE_NULL = {"problem", "member", "checksum", "missing", "not_understood"}


class NotPlainArrow(ValueError):
    """This is not Arrow as an index holds it."""


def read_batch(content: pa.Buffer, schema: pa.Schema | None = None) -> pa.RecordBatch:
    """Read the one batch of an Arrow stream where it lies; after it may come what ends an Arrow file.

    Without a schema that it must have, it holds numbers of any kind.
    """
    try:
        stream = pa.BufferReader(content)
        messages = _messages(stream)
        described = next(messages)
        if described.type != "schema":
            raise NotPlainArrow("it does not begin with a schema")
        own = pa.ipc.read_schema(described)
        if schema is None and not all(map(pa.types.is_primitive, own.types)):
            raise NotPlainArrow("it holds more than numbers")
        if schema is not None and not own.equals(schema):
            raise NotPlainArrow("its columns are not those of an index")
        message = next(messages)
        if message.type != "record batch" or message.metadata_version != pa.ipc.MetadataVersion.V5:
            raise NotPlainArrow("what follows its schema is no batch of today's format")
        if _is_compressed(message.metadata):
            raise NotPlainArrow("it is compressed, as no file of ours is")
        if next(messages, None) is not None or content.size - stream.tell() > LARGEST_FOOTER:
            raise NotPlainArrow("more follows its batch than ends a file")
        batch = pa.ipc.read_record_batch(message, own)
        batch.validate(full=schema is not None)  # of numbers there is nothing more to see
    except (pa.ArrowException, OSError, struct.error, StopIteration, NotImplementedError) as problem:
        raise NotPlainArrow(str(problem).split("\n")[0] or "it ends too soon") from problem
    return batch


def _messages(stream: pa.BufferReader) -> Iterator[pa.ipc.Message]:
    reader = pa.ipc.MessageReader.open_stream(stream)
    while True:
        try:
            yield reader.read_next_message()
        except StopIteration:
            return


def _is_compressed(metadata: pa.Buffer) -> bool:
    """Tell whether a batch of today's format is compressed, by its header.

    Arrow tells only by unpacking, so the header is read here. It is a FlatBuffers table: how far from its
    start a field lies, if it is there, another part of it says.
    """
    data = metadata.to_pybytes()

    def distance(table: int, field: int) -> int:
        distances = table - struct.unpack_from("<i", data, table)[0]
        (size,) = struct.unpack_from("<H", data, distances)
        entry = 4 + 2 * field
        return int(struct.unpack_from("<H", data, distances + entry)[0]) if entry < size else 0

    (start,) = struct.unpack_from("<I", data)
    batch = start + distance(start, MESSAGE_HEADER)
    batch += struct.unpack_from("<I", data, batch)[0]
    return distance(batch, BATCH_COMPRESSION) != 0


def pack_table(table: pa.Table) -> bytes:
    """Write a table as one compressed batch: equal tables give equal bytes."""
    sink = pa.BufferOutputStream()
    columns = [_without_remains(column.combine_chunks()) for column in table.columns]
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_batch(pa.record_batch(columns, schema=table.schema))
    packed: bytes = pa.compress(sink.getvalue(), codec="zstd", asbytes=True)
    return packed


def _without_remains(column: pa.Array) -> pa.Array:
    """Write cells anew where some are missing: what lies in their place, and after the last, is by chance."""
    kind = column.type
    if column.null_count:
        return pa.array(column.to_pylist(), kind)
    if pa.types.is_struct(kind):
        parts = [_without_remains(part) for part in column.flatten()]
        return pa.StructArray.from_arrays(parts, fields=list(kind))
    if pa.types.is_large_list(kind):
        offsets = column.offsets
        starts = np.frombuffer(offsets.buffers()[1], np.int64, len(offsets), 8 * offsets.offset)
        begins = pa.Array.from_buffers(pa.int64(), len(offsets), [None, pa.py_buffer(starts - starts[0])])
        return pa.LargeListArray.from_arrays(begins, _without_remains(column.flatten()), type=kind)
    return column


def unpack_table(packed: pa.Buffer, schema: pa.Schema) -> pa.Table:
    """Read a table that was packed, and no more of it than a table of ours would take."""
    limit = UNPACKED_AT_MOST + UNPACKED_TIMES * packed.size
    stream, pieces, size = pa.CompressedInputStream(pa.BufferReader(packed), "zstd"), [], 0
    try:
        while piece := stream.read(PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise NotPlainArrow(f"its {packed.size:,} bytes would take more than {limit:,} in memory")
    except (pa.ArrowException, OSError) as problem:
        raise NotPlainArrow(str(problem).split("\n")[0]) from problem
    batch = read_batch(pa.py_buffer(b"".join(pieces)), schema)
    for field, column in zip(schema, batch.columns, strict=True):
        _require_cells(field, column)
    return pa.Table.from_batches([batch])


def _require_cells(field: pa.Field, column: pa.Array) -> None:
    """Refuse cells that are missing where covary always writes one."""
    if column.null_count and field.name not in MAY_BE_NULL:
        raise NotPlainArrow(f"cells of {field.name} are missing")
    if pa.types.is_struct(field.type):
        for number, part in enumerate(field.type):
            _require_cells(part, column.field(number))
    elif pa.types.is_large_list(field.type) or pa.types.is_fixed_size_list(field.type):
        _require_cells(field.type.value_field, column.values)

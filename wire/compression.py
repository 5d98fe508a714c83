"""Compresses and decompresses the records of a batch: none, gzip, snappy, lz4 and zstd, as Kafka frames them.

lz4 is the frame format; zstd is one frame without the size of its content. snappy is raw when librdkafka and other C
clients wrote it; Java clients cut it into blocks behind a 16-byte header ("xerial"). ``DECOMPRESSED_BYTES_MAX`` bounds
decompression, so that a few bytes cannot ask for all memory.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from enum import IntEnum

from wire.errors import CodecError

# Brokers accept 1 MiB per batch by default; no real client writes a batch that decompresses to more than this.
DECOMPRESSED_BYTES_MAX = 256 << 20

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_BLOCK_BYTES = 32 << 10


class Compression(IntEnum):
    """The codecs by the number that a batch's attributes hold."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: Compression, data: bytes, *, xerial: bool = True) -> bytes:
    """Compress as a client does; ``xerial`` chooses between the two ways of snappy."""
    if codec is Compression.SNAPPY:
        return _compress_xerial(data) if xerial else _snappy_raw(data)
    return _COMPRESSORS[codec](data)


def decompress(codec: Compression, data: bytes, what: str) -> bytes:
    """Decompress; raises CodecError naming ``what`` when that fails or the result exceeds the bound."""
    if codec is Compression.NONE:
        return data
    try:
        result = _DECOMPRESSORS[codec](data)
    except ImportError as error:
        raise CodecError(f"{what}: {codec.name.lower()} needs the package {error.name}") from error
    except Exception as error:
        raise CodecError(f"{what}: {codec.name.lower()} cannot read it: {error}") from error
    if len(result) > DECOMPRESSED_BYTES_MAX:
        raise CodecError(f"{what}: more than {DECOMPRESSED_BYTES_MAX} bytes decompressed")
    return result


def _gzip(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return packer.compress(data) + packer.flush()


def _gunzip(data: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    result = unpacker.decompress(data, DECOMPRESSED_BYTES_MAX + 1)
    if not unpacker.eof and len(result) <= DECOMPRESSED_BYTES_MAX:
        raise ValueError("the stream is cut off")
    return result


def _lz4(data: bytes) -> bytes:
    import lz4.frame

    # Independent blocks of 64 KiB, as Java's clients write them.
    packed: bytes = lz4.frame.compress(data, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False)
    return packed


def _unlz4(data: bytes) -> bytes:
    import lz4.frame

    unpacker = lz4.frame.LZ4FrameDecompressor()
    result: bytes = unpacker.decompress(data, max_length=DECOMPRESSED_BYTES_MAX + 1)
    if not unpacker.eof and len(result) <= DECOMPRESSED_BYTES_MAX:
        raise ValueError("the stream is cut off")
    return result


def _zstd(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(data)


def _unzstd(data: bytes) -> bytes:
    import zstandard

    with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True) as source:
        return source.read(DECOMPRESSED_BYTES_MAX + 1)


def _snappy_raw(data: bytes) -> bytes:
    import cramjam

    return bytes(cramjam.snappy.compress_raw(data))


def _compress_xerial(data: bytes) -> bytes:
    out = bytearray(XERIAL_MAGIC + struct.pack(">ii", 1, 1))
    for start in range(0, len(data), XERIAL_BLOCK_BYTES):
        block = _snappy_raw(data[start : start + XERIAL_BLOCK_BYTES])
        out += struct.pack(">i", len(block)) + block
    return bytes(out)


def _unsnappy(data: bytes) -> bytes:
    if not data.startswith(XERIAL_MAGIC):
        return _unsnappy_block(data, DECOMPRESSED_BYTES_MAX)
    out, position = bytearray(), 16
    while position < len(data):
        (length,) = struct.unpack_from(">i", data, position)
        position += 4
        if not 0 <= length <= len(data) - position:
            raise ValueError(f"a block of {length} bytes declared at byte {position}, {len(data) - position} are left")
        out += _unsnappy_block(data[position : position + length], DECOMPRESSED_BYTES_MAX - len(out))
        position += length
    return bytes(out)


def _unsnappy_block(data: bytes, bytes_max: int) -> bytes:
    import cramjam

    length = cramjam.snappy.decompress_raw_len(data)
    if length > bytes_max:
        raise ValueError(f"a block of {length} bytes decompressed")
    return bytes(cramjam.snappy.decompress_raw(data))


_COMPRESSORS: dict[Compression, Callable[[bytes], bytes]] = {
    Compression.NONE: bytes,
    Compression.GZIP: _gzip,
    Compression.LZ4: _lz4,
    Compression.ZSTD: _zstd,
}
_DECOMPRESSORS: dict[Compression, Callable[[bytes], bytes]] = {
    Compression.GZIP: _gunzip,
    Compression.SNAPPY: _unsnappy,
    Compression.LZ4: _unlz4,
    Compression.ZSTD: _unzstd,
}

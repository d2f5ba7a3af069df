"""Z85 text and CRC-32, compared with the documents that define them and with implementations of a few
lines."""

from __future__ import annotations

import uuid
import zlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaic._core import crc32, z85_decode, z85_decode_values, z85_encode, z85_encode_values
from deltaic.errors import InvalidArgumentError, ProtocolError

ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def naive_encode(data: bytes) -> str:
    data += b"\0" * (-len(data) % 4)
    groups = [int.from_bytes(data[i : i + 4], "big") for i in range(0, len(data), 4)]
    return "".join(ALPHABET[group // 85**i % 85] for group in groups for i in (4, 3, 2, 1, 0))


def test_rfc_32() -> None:
    """ZeroMQ RFC 32, "Test case"."""
    data = bytes([0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B])
    assert z85_encode(data) == "HelloWorld"
    assert z85_decode("HelloWorld") == data


def test_uuid_of_a_vector_file() -> None:
    """Deletion Vectors High Level Design, JSON 1."""
    assert uuid.UUID(bytes=z85_decode("^-aqEH.-t@S}K{vb[*k^")) == uuid.UUID(
        "d2c639aa-8816-431a-aaf6-d3fe2512ff61"
    )


@given(st.binary(max_size=300))
def test_round_trip(data: bytes) -> None:
    text = z85_encode(data)
    assert text == naive_encode(data)
    assert z85_decode(text) == data + b"\0" * (-len(data) % 4)


@given(st.text(max_size=30))
def test_any_text_is_decoded_or_refused(text: str) -> None:
    try:
        data = z85_decode(text)
    except ProtocolError:
        return
    assert naive_encode(data) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Hello!", "wrong length; found 6 letters; expected a multiple of 5"),
        ("Hell Worl~", "outside the alphabet at position 4; found ' '"),
        ("Helloabcdé", "wrong length; found 11 letters"),
        ("Helloab\u00e9c", "outside the alphabet at position 7"),
        ("00000%nSc1", "Z85 group at position 5 is larger than 4 bytes; found %nSc1"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(ProtocolError) as error:
        z85_decode(text)
    assert message in str(error.value)


@given(st.binary(max_size=1000))
def test_crc32(data: bytes) -> None:
    assert crc32(data) == zlib.crc32(data)


def test_columns() -> None:
    values = pa.array([b"\x86\x4f\xd2\x6f\xb5\x59\xf7\x5b", None, b""], pa.large_binary())
    assert z85_encode_values(values).to_pylist() == ["HelloWorld", None, ""]
    assert z85_decode_values(z85_encode_values(values)).to_pylist() == values.to_pylist()
    with pytest.raises(InvalidArgumentError):
        z85_encode_values(pa.array(["text"]))

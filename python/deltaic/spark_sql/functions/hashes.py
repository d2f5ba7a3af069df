"""Hash functions, codes of bytes as text, and how alike two texts are."""

from __future__ import annotations

import hashlib

from deltaic.protocol.schema import Array, DataType, Struct
from deltaic.spark_sql import values as v
from deltaic.spark_sql.casts import Zone, literal
from deltaic.spark_sql.functions.kernels import kernel_sql
from deltaic.spark_sql.functions.registry import Build, constant_text, form, register
from deltaic.spark_sql.values import Value

form("crc32", "binary", "long", kernel="crc32")


def _is_hashed(kind: DataType) -> bool:
    if isinstance(kind, Array):
        return _is_hashed(kind.element)
    if isinstance(kind, Struct):
        return all(_is_hashed(field.type) for field in kind.fields)
    return isinstance(kind, str) and kind not in (v.DAY_TIME, v.DAYS, v.YEAR_MONTH, "variant")


def _hash(name: str, result: str) -> Build:
    """The hash of all arguments; a null changes nothing."""

    def build(arguments: list[Value], zone: Zone) -> Value:
        if not all(_is_hashed(argument.type) for argument in arguments):
            raise v.unsupported(f"function {name}", *(argument.type for argument in arguments))
        sql = kernel_sql(name, result, *(argument.sql for argument in arguments))
        return v.combine(sql, result, arguments, nullable=False)

    return build


register("hash", "any, any...", "integer", _hash("hash", "integer"))
register("xxhash64", "any, any...", "long", _hash("xxhash64", "long"))


def _hmac(arguments: list[Value], zone: Zone) -> Value:
    """A hash of the message between two paddings, which a literal key makes."""
    algorithm = constant_text(arguments[2], "the algorithm of hmac") if len(arguments) > 2 else "SHA-256"
    function = {"sha256": "sha256", "sha1": "sha1", "md5": "md5"}.get(algorithm.lower().replace("sha-", "sha"))
    key, message = arguments[:2]
    if function is None:
        raise v.unsupported(f"hmac with the algorithm {algorithm!r}")
    if key.is_constant and key.constant is None:
        return v.combine("CAST(NULL AS BLOB)", "binary", arguments, nullable=True)
    if not isinstance(key.constant, (bytes, str)):
        raise v.unsupported("hmac with a key that is not a literal")
    raw = key.constant.encode() if isinstance(key.constant, str) else key.constant
    if not raw:
        empty = v.failure("INVALID_PARAMETER_VALUE.HMAC_CRYPTO_ERROR", "'the key of hmac is empty'")
        return v.combine(f"(CASE WHEN {message.sql} IS NOT NULL THEN {empty} END)", "binary", [message], raises=True)
    block = (raw if len(raw) <= 64 else hashlib.new(function, raw).digest()).ljust(64, b"\0")
    inner, outer = (literal(bytes(byte ^ pad for byte in block), "binary").sql for pad in (0x36, 0x5C))
    sql = f"unhex({function}({outer} || unhex({function}({inner} || {message.sql}))))"
    return v.combine(sql, "binary", [message], nullable=message.nullable)


register("hmac", "any, binary", "binary", _hmac)
register("hmac", "any, binary, string", "binary", _hmac)
form("to_base32", "binary", "string", kernel="to_base32")
form("from_base32", "string", "binary", kernel="from_base32")
form("jaro_winkler_similarity", "string, string", "double", kernel="jaro_winkler")

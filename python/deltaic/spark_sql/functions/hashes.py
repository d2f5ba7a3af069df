"""Hash functions, encryption, encodings of bytes as text such as base64, and the similarity of two texts."""

from __future__ import annotations

from deltaic.protocol.schema import Array, DataType, Struct, is_shape
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
    return isinstance(kind, str) and kind not in (v.CALENDAR, "variant") and not is_shape(kind)


def _hash(name: str, result: str) -> Build:
    """Builds a hash function over all arguments; a null argument leaves the hash as it is."""

    def build(arguments: list[Value], zone: Zone) -> Value:
        if not all(_is_hashed(argument.type) for argument in arguments):
            raise v.unsupported(f"function {name}", *(argument.type for argument in arguments))
        sql = kernel_sql(name, result, *(argument.sql for argument in arguments))
        return v.combine(sql, result, arguments, nullable=False)

    return build


register("hash", "any, any...", "integer", _hash("hash", "integer"))
register("xxhash64", "any, any...", "long", _hash("xxhash64", "long"))


_HMAC = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")


def _hmac(arguments: list[Value], zone: Zone) -> Value:
    algorithm = constant_text(arguments[2], "the algorithm of hmac") if len(arguments) > 2 else "SHA-256"
    function = algorithm.lower().replace("sha-", "sha")
    if function not in _HMAC:
        raise v.unsupported(f"hmac with the algorithm {algorithm!r}")
    key, message = arguments[:2]
    sql = kernel_sql("hmac", "binary", key.sql, message.sql, v.text(function))
    return v.combine(sql, "binary", [key, message], raises=True)


_CIPHER = (("string", "GCM"), ("string", "DEFAULT"))
_NOTHING = ("binary", b"")


def _aes(kernel: str, defaults: tuple[tuple[str, str | bytes], ...], *, safe: bool | None) -> Build:
    """Builds aes_encrypt, aes_decrypt and try_aes_decrypt: a text and a key, then mode, padding and further
    arguments of the kernel.
    `defaults`: type and value of each argument that may be missing. `safe`: whether a failed decryption gives
    null; None for encryption."""

    def build(arguments: list[Value], zone: Zone) -> Value:
        values = [*arguments, *(literal(constant, kind) for kind, constant in defaults[len(arguments) - 2 :])]
        more = [] if safe is None else [str(int(safe))]
        sql = kernel_sql(kernel, "binary", *(value.sql for value in values), *more)
        return v.combine(sql, "binary", arguments, nullable=True if safe else None, raises=not safe)

    return build


_ENCRYPTS, _DECRYPTS = (*_CIPHER, _NOTHING, _NOTHING), (*_CIPHER, _NOTHING)
for _given in range(len(_ENCRYPTS) + 1):
    _parameters = ", ".join(["binary", "binary", *(kind for kind, _ in _ENCRYPTS[:_given])])
    register("aes_encrypt", _parameters, "binary", _aes("aes_encrypt", _ENCRYPTS, safe=None))
    if _given <= len(_DECRYPTS):
        register("aes_decrypt", _parameters, "binary", _aes("aes_decrypt", _DECRYPTS, safe=False))
        register("try_aes_decrypt", _parameters, "binary", _aes("aes_decrypt", _DECRYPTS, safe=True))
register("hmac", "binary, binary", "binary", _hmac)
register("hmac", "binary, binary, string", "binary", _hmac)
form("to_base32", "binary", "string", kernel="to_base32")
form("from_base32", "string", "binary", kernel="from_base32")
form("jaro_winkler_similarity", "string, string", "double", kernel="jaro_winkler")

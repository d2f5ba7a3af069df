"""Paths of files in the log: they are URIs, so percent-encoded (PROTOCOL.md, "Add File and Remove File").

Stores take decoded paths. Names of folders such as `city=New%20York` are escaped as in Hive, which is another
encoding: where such a folder is part of a path in the log, it is encoded once more.
"""

from __future__ import annotations

import os
import re
from urllib.parse import quote, unquote

_OF_PATHS = "/=:@!$&'()*+,;-._~"
"""Characters that RFC 2396 allows in a path, in addition to letters and digits."""
_OF_HIVE = frozenset("\"#%'*/:=?\\\x7f{[]^") | {chr(code) for code in range(32)}
_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
"""Hive's text of null in the name of a folder."""
_IS_WINDOWS = os.name == "nt"
_DRIVE = re.compile(r"/?[A-Za-z]:/")


def local_path(url: str) -> str:
    """Returns the path of a `file:` URL, which may have one slash or three: `/data/t`; on Windows `C:/data/t`
    for `file:///C:/data/t`."""
    path = "/" + url[len("file:") :].lstrip("/")
    return path[1:] if _IS_WINDOWS and _DRIVE.match(path) else path


def url_path(path: str) -> str:
    """Returns the path that the `file:` URL of a local path has: `/C:/data/t` for `C:/data/t` on Windows."""
    return f"/{path}" if _IS_WINDOWS and _DRIVE.match(path) else path


def encoded_path(path: str) -> str:
    """Percent-encodes a path for the log: one relative to the table, an absolute one or a URL. A colon in the
    first part of a relative path is encoded, too: what stands before it would be the scheme of a URL (RFC
    3986, section 4.2)."""
    encoded = quote(path, safe=_OF_PATHS)
    if _ABSOLUTE.match(path):
        return encoded
    first, slash, rest = encoded.partition("/")
    return first.replace(":", "%3A") + slash + rest


def decoded_path(path: str) -> str:
    """Decodes the path of an action, or of a URL, once: `a%20b` becomes `a b`."""
    return unquote(path)


def escaped_in_folder(text: str) -> str:
    """Escapes a name or a partition value as Hive does in names of folders: `a/b` becomes `a%2Fb`."""
    return "".join(f"%{ord(letter):02X}" if letter in _OF_HIVE else letter for letter in text)


def unescaped_in_folder(text: str) -> str:
    """Returns the name or the value that was escaped in the name of a folder."""
    return unquote(text)

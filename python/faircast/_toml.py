"""Values of Python as TOML text. Python has a reader of TOML, but no writer."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Mapping

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def text_of(value: Any) -> str:
    """Return a value as TOML on one line.

    >>> text_of({"rate": "2 Mbit/s", "leaves": 4, "at": [1.5, True]})
    '{ rate = "2 Mbit/s", leaves = 4, at = [1.5, true] }'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # The escapes of JSON are escapes of TOML. DEL must be escaped in TOML only.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key_of(key)} = {text_of(item)}" for key, item in value.items()) + " }"
    if hasattr(value, "tolist") and not isinstance(value, (list, tuple)):
        return text_of(value.tolist())  # arrays and numbers of NumPy
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return repr(value) if math.isfinite(value) else "nan"
    if isinstance(value, (list, tuple, range)):
        return "[" + ", ".join(text_of(item) for item in value) + "]"
    raise TypeError(f"a scenario cannot contain {value!r}: a value is a text, a number, a truth value, a list or a dictionary")


def key_of(key: Any) -> str:
    """Return a key as TOML."""
    if not isinstance(key, str):
        raise TypeError(f"the keys of a scenario are texts, not {key!r}")
    return key if _BARE.fullmatch(key) else text_of(key)


def document_of(content: Mapping[str, Any]) -> str:
    """Return a dictionary as a TOML document, with one line for each key or table of a list.

    >>> print(document_of({"duration": "10 s", "flow": [{"name": "a"}, {"name": "b"}]}))
    duration = "10 s"
    flow = [
        { name = "a" },
        { name = "b" },
    ]
    <BLANKLINE>
    """
    lines = []
    for key, value in content.items():
        if isinstance(value, (list, tuple)) and value and all(isinstance(item, Mapping) for item in value):
            lines.append(f"{key_of(key)} = [")
            lines.extend(f"    {text_of(item)}," for item in value)
            lines.append("]")
        else:
            lines.append(f"{key_of(key)} = {text_of(value)}")
    return "\n".join(lines) + "\n"

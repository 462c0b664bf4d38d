"""JSON is read strictly: what two readers may understand differently is refused."""

import pytest

from ldptree import serialize
from ldptree.errors import DataError

TEXT = '{"a": "\u00e9"}\r\n'


@pytest.mark.parametrize("text", [TEXT, TEXT.encode(), "\ufeff" + TEXT, TEXT.encode("utf-8-sig")])
def test_a_text_is_utf_8_with_or_without_a_byte_order_mark(text):
    assert serialize.read(text, of="it") == {"a": "\u00e9"}


@pytest.mark.parametrize(
    "text",
    [
        *(TEXT.encode(encoding) for encoding in ("utf-16", "utf-16-le", "utf-32", "latin-1")),
        b'{"a": "\xed\xa0\x80"}',
        "\ufeff\ufeff" + TEXT,
        "\ufeff",
    ],
)
def test_another_encoding_is_not_guessed(text):
    with pytest.raises(DataError, match="it: not JSON; mend it"):
        serialize.read(text, of="it", remedy="mend it")

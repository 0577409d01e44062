"""Ids by the reference library. Asked as JSON on standard input: paths of tokenizer.json files, and texts. Answers one
line for each file: a list of ids for each text."""

import json
import sys

from tokenizers import Tokenizer


def well_formed(text: str) -> str:
    """The library takes UTF-8 only: half a surrogate pair counts as U+FFFD, as everywhere in mlxcel."""
    return "".join("\ufffd" if 0xD800 <= ord(c) <= 0xDFFF else c for c in text)


asked = json.load(sys.stdin)
texts = [well_formed(text) for text in asked["texts"]]
for path in asked["tokenizers"]:
    tokenizer = Tokenizer.from_file(path)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    print(json.dumps([tokenizer.encode(text).ids for text in texts]))

"""The calls of openai-python whose answers openai-python.test.ts checks."""

import json
import sys

from failure import failure
from openai import OpenAI

asked = json.load(sys.stdin)
model, one, many, ids = (asked[name] for name in ("model", "one", "many", "ids"))


def connected(key):
    return OpenAI(base_url=asked["url"] + "/v1", api_key=key, max_retries=0)


client = connected(asked["key"])
create = client.embeddings.create


def vectors(answer):
    return [entry.embedding for entry in answer.data]


def without_numpy(call):
    """The client decodes base64 in another way where numpy is not installed."""
    import numpy

    sys.modules["numpy"] = None
    try:
        return call()
    finally:
        sys.modules["numpy"] = numpy


whole = create(model=model, input=one)
answers = {
    "one": {
        "vectors": vectors(whole),
        "model": whole.model,
        "tokens": [whole.usage.prompt_tokens, whole.usage.total_tokens],
    },
    "base64": vectors(create(model=model, input=many)),
    "base64_without_numpy": without_numpy(lambda: vectors(create(model=model, input=many))),
    "float": vectors(create(model=model, input=many, encoding_format="float")),
    "raw": create(model=model, input=one, encoding_format="base64").data[0].embedding,
    "ids": vectors(create(model=model, input=ids)),
    "dimensions": vectors(create(model=model, input=one, dimensions=16)),
    "models": [entry.id for entry in client.models.list()],
    "wrong_model": failure(lambda: create(model="text-embedding-3-small", input=one)),
    "unknown_model": failure(lambda: client.models.retrieve("nope")),
    "wrong_key": failure(lambda: connected("sk-wrong").embeddings.create(model=model, input=one)),
    "empty_text": failure(lambda: create(model=model, input=["fine", ""])),
}
json.dump(answers, sys.stdout)

"""The requests with httpx whose answers httpx.test.ts checks."""

import json
import sys

import httpx
from failure import failure

asked = json.load(sys.stdin)
one, many = asked["one"], asked["many"]

with httpx.Client(base_url=asked["url"]) as client:

    def post(path, **body):
        return client.post(path, json=body).raise_for_status().json()

    def vectors(answer):
        return [entry["embedding"] for entry in answer["data"]]

    refused = client.post("/v1/embeddings", json={"input": []})
    # Outside of a pool each request has a connection of its own.
    separate = httpx.post(asked["url"] + "/v1/embeddings", content=json.dumps({"input": one}))
    answers = {
        "one": vectors(post("/v1/embeddings", input=one)),
        "many": vectors(post("/v1/embeddings", input=many)),
        "without_content_type": vectors(separate.raise_for_status().json()),
        "refused": refused.json(),
        "raised": failure(refused.raise_for_status),
    }
json.dump(answers, sys.stdout)

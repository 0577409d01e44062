"""The calls of langchain-openai whose answers langchain.test.ts checks."""

import json
import sys

import tiktoken
from failure import failure
from langchain_openai import OpenAIEmbeddings

asked = json.load(sys.stdin)
small, real = asked["small"], asked["real"]


def embeddings(server, **options):
    return OpenAIEmbeddings(
        model=server["model"],
        base_url=server["url"] + "/v1",
        api_key="unused",
        max_retries=0,
        **options,
    )


text_mode = embeddings(small, check_embedding_ctx_length=False)
default_mode = embeddings(real)
encode = tiktoken.get_encoding("cl100k_base").encode
answers = {
    "query": text_mode.embed_query(small["one"]),
    "documents": text_mode.embed_documents(small["many"]),
    "refused": failure(lambda: text_mode.embed_query("")),
    "in_range": {
        "ids": [encode(text) for text in real["in_range"]],
        "query": default_mode.embed_query(real["in_range"][0]),
        "documents": default_mode.embed_documents(real["in_range"]),
    },
    "out_of_range": {
        "ids": encode(real["out_of_range"]),
        "query": failure(lambda: default_mode.embed_query(real["out_of_range"])),
        "documents": failure(
            lambda: default_mode.embed_documents([*real["in_range"], real["out_of_range"]])
        ),
    },
    "real_texts": embeddings(real, check_embedding_ctx_length=False).embed_documents(real["texts"]),
}
json.dump(answers, sys.stdout)

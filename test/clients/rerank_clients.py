"""The calls of reranking clients whose answers rerank-clients.test.ts checks."""

import json
import sys

import cohere
import httpx
from failure import failure
from langchain_cohere import CohereRerank
from langchain_core.documents import Document
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.postprocessor.tei_rerank import TextEmbeddingInference

asked = json.load(sys.stdin)
url, key, model, query, documents = (
    asked[name] for name in ("url", "key", "model", "query", "documents")
)


def cohere_ranks(response):
    return [[entry.index, entry.relevance_score] for entry in response.results]


def cohere_v1(key=key):
    return cohere.Client(key, base_url=url)


def cohere_v2(key=key):
    return cohere.ClientV2(key, base_url=url)


def v1_echo():
    objects = [{"text": text, "id": str(i)} for i, text in enumerate(documents)]
    response = cohere_v1().rerank(
        model=model, query=query, documents=objects, return_documents=True
    )
    return [[entry.index, entry.document.text] for entry in response.results]


def langchain(top_n=None):
    compressor = CohereRerank(model=model, cohere_api_key=key, base_url=url, top_n=top_n)
    pages = [Document(text, metadata={"page": i}) for i, text in enumerate(documents)]
    ranked = compressor.compress_documents(pages, query)
    return [[page.metadata["page"], page.metadata["relevance_score"]] for page in ranked]


def langchain_error():
    return CohereRerank(model="rerank-v3.5", cohere_api_key=key, base_url=url).rerank(
        documents, query
    )


def llama_index(token="Bearer " + key, top_n=10, texts=documents):
    reranker = TextEmbeddingInference(base_url=url, auth_token=token, top_n=top_n)
    nodes = [NodeWithScore(node=TextNode(id_=str(i), text=t)) for i, t in enumerate(texts)]
    ranked = reranker.postprocess_nodes(nodes, query_bundle=QueryBundle(query))
    return [[int(node.node_id), node.score] for node in ranked]


def post(path, body, key=key):
    return httpx.post(url + path, json=body, headers={"Authorization": "Bearer " + key})


def raised(path, body):
    return failure(lambda: post(path, body).raise_for_status())


def haystack_body(raw_scores=False, **extra):
    return {"query": query, "texts": documents, "raw_scores": raw_scores, **extra}


def jina_body(**extra):
    return {"model": model, "query": query, "documents": documents, **extra}


answers = {
    "cohere_v1": {
        "ranks": cohere_ranks(cohere_v1().rerank(model=model, query=query, documents=documents)),
        "top": cohere_ranks(
            cohere_v1().rerank(model=model, query=query, documents=documents, top_n=1)
        ),
        "echo": v1_echo(),
        "unknown_model": failure(
            lambda: cohere_v1().rerank(model="rerank-v3.5", query=query, documents=documents)
        ),
        "wrong_key": failure(
            lambda: cohere_v1("wrong").rerank(model=model, query=query, documents=documents)
        ),
    },
    "cohere_v2": {
        "ranks": cohere_ranks(
            cohere_v2().rerank(
                model=model, query=query, documents=documents, max_tokens_per_doc=4096
            )
        ),
        "top": cohere_ranks(
            cohere_v2().rerank(model=model, query=query, documents=documents, top_n=1)
        ),
        "empty_document": failure(
            lambda: cohere_v2().rerank(model=model, query=query, documents=["a", ""])
        ),
        "wrong_key": failure(
            lambda: cohere_v2("wrong").rerank(model=model, query=query, documents=documents)
        ),
    },
    "langchain": {
        "ranks": langchain(),
        "top": langchain(top_n=1),
        "unknown_model": failure(langchain_error),
    },
    "llama_index": {
        "ranks": llama_index(),
        "top": llama_index(top_n=1),
        "bare_token": llama_index(token=key),
        "by_token_function": llama_index(token=lambda base_url: "Bearer " + key),
        "empty_text": failure(lambda: llama_index(texts=["a", ""])),
        "wrong_token": failure(lambda: llama_index(token="wrong")),
    },
    "haystack": {
        "ranks": post("/rerank", haystack_body()).json(),
        "truncated": post(
            "/rerank", haystack_body(truncate=True, truncation_direction="Right")
        ).json(),
        "raw": post("/rerank", haystack_body(raw_scores=True)).json(),
        "raised": raised("/rerank", {**haystack_body(), "query": ""}),
        "refused": post("/rerank", {**haystack_body(), "query": ""}).json(),
    },
    "jina": {
        "ranks": post("/v1/rerank", jina_body(top_n=len(documents))).json(),
        "echo": post("/v1/rerank", jina_body(return_documents=True, top_n=1)).json(),
        "raised": raised("/v1/rerank", jina_body(top_n=0)),
        "refused": post("/v1/rerank", jina_body(top_n=0)).json(),
    },
}
json.dump(answers, sys.stdout)

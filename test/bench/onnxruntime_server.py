"""A peer: onnxruntime behind FastAPI, one inference at a time, rows of similar length together.

    python onnxruntime_server.py PORT EMBEDDER.onnx RERANKER.onnx TOKENIZER.json
"""

import os
import sys
import threading

import numpy as np
import onnxruntime
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from tokenizers import Encoding, Tokenizer

MAX_TOKENS = 512
# small: padding costs more than larger batches gain
BATCH_ROWS = 8

port = int(sys.argv[1])
cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
tokenizer = Tokenizer.from_file(sys.argv[4])
tokenizer.no_padding()
tokenizer.enable_truncation(MAX_TOKENS)
one_at_a_time = threading.Lock()
app = FastAPI()


def open_session(path: str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = cores
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


embedder, reranker = open_session(sys.argv[2]), open_session(sys.argv[3])


def run(session: onnxruntime.InferenceSession, rows: list[Encoding]) -> tuple[np.ndarray, np.ndarray]:
    """The output of padded rows, and their mask."""
    shape = (len(rows), max(len(row.ids) for row in rows))
    ids, mask, types = (np.zeros(shape, np.int64) for _ in range(3))
    for i, row in enumerate(rows):
        length = len(row.ids)
        ids[i, :length], mask[i, :length], types[i, :length] = row.ids, 1, row.type_ids
    feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
    return session.run(None, feed)[0], mask


def mean_vectors(rows: list[Encoding]) -> np.ndarray:
    states, mask = run(embedder, rows)
    vectors = (states * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def scores(rows: list[Encoding]) -> np.ndarray:
    logits, _ = run(reranker, rows)
    return 1 / (1 + np.exp(-logits[:, 0]))


def in_batches(compute, items: list) -> list[np.ndarray]:
    rows = tokenizer.encode_batch(items)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i].ids))
    answers: list = [None] * len(rows)
    with one_at_a_time:
        for start in range(0, len(order), BATCH_ROWS):
            batch = order[start : start + BATCH_ROWS]
            for i, answer in zip(batch, compute([rows[i] for i in batch])):
                answers[i] = answer
    return answers


class EmbeddingsRequest(BaseModel):
    input: str | list[str]


class RerankRequest(BaseModel):
    query: str
    documents: list[str]


@app.post("/v1/embeddings")
def embeddings(request: EmbeddingsRequest) -> dict:
    texts = [request.input] if isinstance(request.input, str) else request.input
    entries = [
        {"object": "embedding", "index": i, "embedding": vector.tolist()}
        for i, vector in enumerate(in_batches(mean_vectors, texts))
    ]
    return {"object": "list", "data": entries, "model": sys.argv[2], "usage": {}}


@app.post("/v1/rerank")
def rerank(request: RerankRequest) -> dict:
    answers = in_batches(scores, [(request.query, document) for document in request.documents])
    order = sorted(range(len(answers)), key=lambda i: -answers[i])
    results = [{"index": i, "relevance_score": float(answers[i])} for i in order]
    return {"model": sys.argv[3], "results": results}


uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)

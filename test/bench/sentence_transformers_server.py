"""A peer: what a Python user would write around sentence-transformers to serve /v1/embeddings and /v1/rerank.

    python sentence_transformers_server.py PORT EMBEDDER_DIRECTORY RERANKER_DIRECTORY
"""

import os
import sys

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import CrossEncoder, SentenceTransformer

port, embedder_directory, reranker_directory = int(sys.argv[1]), sys.argv[2], sys.argv[3]
torch.set_num_threads(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
embedder = SentenceTransformer(embedder_directory, device="cpu")
reranker = CrossEncoder(reranker_directory, device="cpu", max_length=512)
app = FastAPI()


class EmbeddingsRequest(BaseModel):
    input: str | list[str]


class RerankRequest(BaseModel):
    query: str
    documents: list[str]


# plain functions: FastAPI runs them in its thread pool, so that requests overlap
@app.post("/v1/embeddings")
def embeddings(request: EmbeddingsRequest) -> dict:
    texts = [request.input] if isinstance(request.input, str) else request.input
    vectors = embedder.encode(texts, batch_size=32, show_progress_bar=False)
    entries = [
        {"object": "embedding", "index": i, "embedding": vector.tolist()}
        for i, vector in enumerate(vectors)
    ]
    return {"object": "list", "data": entries, "model": embedder_directory, "usage": {}}


@app.post("/v1/rerank")
def rerank(request: RerankRequest) -> dict:
    pairs = [(request.query, document) for document in request.documents]
    scores = reranker.predict(pairs, batch_size=32, show_progress_bar=False)
    order = sorted(range(len(pairs)), key=lambda i: -scores[i])
    results = [{"index": i, "relevance_score": float(scores[i])} for i in order]
    return {"model": reranker_directory, "results": results}


uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)

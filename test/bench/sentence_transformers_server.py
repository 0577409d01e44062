"""The peer: what a Python user would write around sentence-transformers to serve /v1/embeddings.

    python sentence_transformers_server.py PORT MODEL_DIRECTORY
"""

import sys

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer

port, directory = int(sys.argv[1]), sys.argv[2]
model = SentenceTransformer(directory, device="cpu")
app = FastAPI()


class EmbeddingsRequest(BaseModel):
    input: str | list[str]


@app.get("/health")
def health() -> dict[str, str]:
    return {"status": "ok"}


# a plain def: FastAPI runs it in its thread pool, so that requests overlap
@app.post("/v1/embeddings")
def embeddings(request: EmbeddingsRequest) -> dict:
    texts = [request.input] if isinstance(request.input, str) else request.input
    vectors = model.encode(texts, batch_size=32, show_progress_bar=False)
    entries = [
        {"object": "embedding", "index": i, "embedding": vector.tolist()}
        for i, vector in enumerate(vectors)
    ]
    return {"object": "list", "data": entries, "model": directory, "usage": {}}


uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)

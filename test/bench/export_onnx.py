"""Writes a checkpoint's ONNX graph, f32, with free batch and length, and checks it against torch.

    python export_onnx.py MODEL_DIRECTORY OUT.onnx embedder|reranker

The output is last_hidden_state of an embedder, the logits of a reranker.
"""

import sys

import numpy as np
import onnxruntime
import torch
from transformers import AutoModel, AutoModelForSequenceClassification

directory, path, kind = sys.argv[1:4]
INPUTS = ["input_ids", "attention_mask", "token_type_ids"]
MAX_DIFFERENCE = 2e-5

auto = AutoModel if kind == "embedder" else AutoModelForSequenceClassification
output = "last_hidden_state" if kind == "embedder" else "logits"
# eager: plain operations, which onnxruntime fuses by itself
model = auto.from_pretrained(directory, attn_implementation="eager", dtype=torch.float32).eval()


class OneOutput(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, token_type_ids):
        answer = self.model(input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
        return answer[output]


graph = OneOutput().eval()


def example(rows: int, length: int) -> tuple[torch.Tensor, ...]:
    ids = torch.randint(100, 1000, (rows, length), generator=torch.Generator().manual_seed(rows))
    mask = torch.ones_like(ids)
    mask[0, length // 2 :] = 0
    return ids, mask, torch.zeros_like(ids)


batch = torch.export.Dim("batch", min=1, max=4096)
length = torch.export.Dim("length", min=2, max=512)
torch.onnx.export(
    graph,
    example(3, 16),
    path,
    input_names=INPUTS,
    output_names=[output],
    dynamic_shapes={name: {0: batch, 1: length} for name in INPUTS},
    external_data=False,
    dynamo=True,
)

session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
for rows, tokens in [(1, 7), (5, 130), (2, 512)]:
    tensors = example(rows, tokens)
    with torch.no_grad():
        wanted = graph(*tensors).numpy()
    feed = dict(zip(INPUTS, (tensor.numpy() for tensor in tensors)))
    difference = np.abs(session.run([output], feed)[0] - wanted).max()
    if not difference < MAX_DIFFERENCE:
        sys.exit(f"the ONNX graph differs from torch by {difference} for {rows} rows of {tokens} tokens")

"""The calls of clients of text-embeddings-inference whose answers tei.test.ts checks."""

import json
import sys

from failure import failure
from huggingface_hub import InferenceClient
from llama_index.embeddings.text_embeddings_inference import TextEmbeddingsInference

asked = json.load(sys.stdin)
url, key, one, many, pair = (asked[name] for name in ("url", "key", "one", "many", "pair"))


def llama_index(token=key, **options):
    return TextEmbeddingsInference(
        model_name=asked["model"], base_url=url, auth_token=token, **options
    )


whole_only = llama_index(truncate_text=False)
hub = InferenceClient(model=url + "/embed", token=key)
info = InferenceClient(model=url, token=key, provider="hf-inference").get_endpoint_info()
instructed = llama_index(query_instruction=pair["before"], text_instruction=pair["before"])
answers = {
    "llama_index": {
        "query": llama_index().get_query_embedding(one),
        "text": llama_index().get_text_embedding(one),
        "texts": llama_index(embed_batch_size=4).get_text_embedding_batch(many),
        "by_token_function": llama_index(lambda base_url: key).get_text_embedding(one),
        "instructed_query": instructed.get_query_embedding(pair["after"]),
        "instructed_text": instructed.get_text_embedding(pair["after"]),
        "too_long": failure(lambda: whole_only.get_text_embedding(asked["long"])),
        "wrong_token": failure(lambda: llama_index("wrong").get_text_embedding(one)),
    },
    "hub": {
        "one": hub.feature_extraction(one).tolist(),
        "many": hub.feature_extraction(many).tolist(),
        "unnormalized": hub.feature_extraction(one, normalize=False).tolist(),
        "empty_text": failure(lambda: hub.feature_extraction(["fine", ""])),
        "wrong_prompt": failure(lambda: hub.feature_extraction(one, prompt_name="nope")),
        "wrong_token": failure(
            lambda: InferenceClient(model=url + "/embed", token="wrong").feature_extraction(one)
        ),
        "info": info,
    },
}
json.dump(answers, sys.stdout)

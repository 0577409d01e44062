/** LoRA adapters of sentence-transformers, merged into their base, against peft's own forward. */
import { fixture } from "../fixtures/fixtures.ts";
import { describeEmbedders } from "./embedder.ts";

describeEmbedders("bert", ["bert-lora-patterns", "bert-lora-dora"], { base: fixture("bert-mean") });

import { architectures } from "../checkpoint/gguf/model.ts";
import type { ModelFamily } from "./family.ts";
import { families } from "./registry.ts";

/** What people ask about a family before they try a checkpoint. */
export interface FamilyDescription {
  readonly modelType: string;
  readonly publishedAs: string;
  readonly kinds: readonly string[];
  readonly defaultPooling: string;
  readonly formats: readonly string[];
  readonly lengthLimit: string;
  /** Weights that MLX quantised, or GGUF files with quantised tensors. */
  readonly quantised: boolean;
  readonly images: boolean;
}

/** All of them, in the order of the registry. */
export function describeFamilies(): readonly FamilyDescription[] {
  return families.map((family) => {
    const { modelType, publishedAs, defaultPooling, lengthLimit } = family;
    const files = architectures.filter((architecture) => architecture.modelType === modelType);
    return {
      modelType,
      publishedAs,
      kinds: kindsOf(family),
      defaultPooling,
      formats: ["safetensors", ...(files.length > 0 ? ["GGUF"] : [])],
      lengthLimit,
      // every layer decides from its own tensors, whatever the family
      quantised: true,
      images: false,
    };
  });
}

function kindsOf({ loadClassifier, answersYesOrNo }: ModelFamily): string[] {
  return [
    "embedding",
    ...(loadClassifier ? ["classifier"] : []),
    ...(answersYesOrNo ? ["yes/no reranker"] : []),
  ];
}

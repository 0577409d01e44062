/** From the flags that name models to the models that are loaded, and what each of them is for. */
import { realpathSync } from "node:fs";
import { type Checkpoint, readCheckpoint } from "../checkpoint/checkpoint.ts";
import { classifierLabels } from "../checkpoint/classifier-labels.ts";
import { kindOf, type CheckpointKind } from "../checkpoint/kind.ts";
import { DEFAULT_MODEL, type ResolvedModel } from "../hub/resolve.ts";
import type { Environment } from "../native/environment.ts";
import type { Flags } from "./flags.ts";
import { namedModel } from "./named-model.ts";
import { UsageError } from "./usage-error.ts";

export interface ChosenModel {
  readonly directory: string;
  /** The directory of the model that it is a LoRA adapter of. */
  readonly base?: string | undefined;
  /** The name that answers carry. */
  readonly id: string;
  /** Every name that requests may use: the id, the path or repository as given, aliases. */
  readonly names: readonly string[];
  /** No flag named a model. */
  readonly isDefault: boolean;
}

interface ModelChoice {
  readonly embedder?: ChosenModel | undefined;
  readonly reranker?: ChosenModel | undefined;
  /** The embedder answers rerank requests, too. */
  readonly embedderRanks: boolean;
  /** What was asked for in vain. */
  readonly notices: readonly string[];
}

/** A model with the flag that named it. */
interface NamedModel extends ResolvedModel {
  readonly flag: "-m" | "--embedding-model" | "--reranker-model" | "default";
}

/** One model, once per flag that names it. */
type Mentions = readonly [NamedModel, ...NamedModel[]];

/**
 * @throws UsageError for flags that contradict each other
 * @throws Error for models that are missing or of the wrong kind
 */
export async function chooseModels(flags: Flags, env: Environment): Promise<ModelChoice> {
  const named = await namedModels(flags, env);
  const ranks = flags.rerank || flags.pooling === "rank";
  if (flags.embedding && !named.embedder) {
    throw new Error("--embedding needs an embedding model: name one with --embedding-model");
  }
  const embedder = ranks && !flags.embedding && named.reranker ? undefined : named.embedder;
  const reranker = flags.embedding && !ranks ? undefined : named.reranker;
  const aliased = aliasedModel(embedder, reranker);
  const chosen = (model: Mentions | undefined) =>
    model && chosenModel(model, model === aliased ? flags.alias : []);
  return {
    embedder: chosen(embedder),
    reranker: chosen(reranker),
    embedderRanks: ranks && !reranker,
    notices: [
      ...unused(
        named.embedder,
        embedder,
        "--rerank serves ranking only (add --embedding for both)",
      ),
      ...unused(named.reranker, reranker, "--embedding serves embeddings only"),
    ],
  };
}

function unused(
  [named]: Mentions | readonly [] = [],
  loaded: Mentions | undefined,
  why: string,
): string[] {
  return named && !loaded ? [`${why}: ${named.flag} ${named.name} is not loaded`] : [];
}

/** The model of -m, else the only model, else the embedder. */
function aliasedModel(
  embedder: Mentions | undefined,
  reranker: Mentions | undefined,
): Mentions | undefined {
  const main = [embedder, reranker].find((model) => model?.some(({ flag }) => flag === "-m"));
  return main ?? embedder ?? reranker;
}

function chosenModel(mentions: Mentions, aliases: readonly string[] = []): ChosenModel {
  const [{ directory, base, id, flag }] = mentions;
  const names = new Set([...mentions.flatMap((model) => [model.id, model.name]), ...aliases]);
  return { directory, base, id, names: [...names], isDefault: flag === "default" };
}

async function namedModels(flags: Flags, env: Environment) {
  const { model, embeddingModel, rerankerModel } = flags;
  const find = async (
    name: string | undefined,
    flag: NamedModel["flag"],
  ): Promise<NamedModel | undefined> =>
    name === undefined ? undefined : { ...(await namedModel(name, flags, env)), flag };
  // one after the other, each with its own progress
  const main = await find(model, "-m");
  const embedding = await find(embeddingModel, "--embedding-model");
  const reranking = await find(rerankerModel, "--reranker-model");
  const isDefault = !main && !embedding && !reranking;
  const mainRole = main && roleOfMain(main, reranking);
  if (embedding) requireEmbedder(embedding);
  if (reranking) requireReranker(reranking);
  return {
    embedder: isDefault
      ? defaultEmbedder(await find(DEFAULT_MODEL, "default"))
      : oneModel(mainRole === "embedding" ? main : undefined, embedding, "embedding models"),
    reranker: oneModel(mainRole === "reranker" ? main : undefined, reranking, "rerankers"),
  };
}

function checkpointOf({ directory, base }: ResolvedModel): Checkpoint {
  return readCheckpoint(directory, base);
}

function kindOfModel(model: ResolvedModel): CheckpointKind {
  return kindOf(checkpointOf(model));
}

/** Generative rerankers look like chat models: only --reranker-model can tell. */
function roleOfMain(main: NamedModel, reranking: NamedModel | undefined): "embedding" | "reranker" {
  const kind = kindOfModel(main);
  if (kind !== "chat") return kind;
  if (reranking && isSame(main, reranking)) return "reranker";
  throw new Error(
    `${main.name} is a chat model; this version serves embeddings and reranking: ` +
      "drop -m, or pass it as --reranker-model if it is a Qwen3 reranker",
  );
}

function requireEmbedder(model: NamedModel): void {
  const kind = kindOfModel(model);
  if (kind === "embedding") return;
  const labels = kind === "reranker" ? classifierLabels(checkpointOf(model)) : undefined;
  if (labels !== undefined && labels !== 1) {
    throw new Error(
      `${model.flag} ${model.name} is a classifier of ${labels} labels, neither an embedding model nor a reranker (of exactly 1)`,
    );
  }
  const advice = kind === "reranker" ? "serve it with --reranker-model" : "name an embedding model";
  throw new Error(
    `${model.flag} ${model.name} is a ${noun(kind)}, not an embedding model: ${advice}`,
  );
}

function requireReranker(model: NamedModel): void {
  if (kindOfModel(model) !== "embedding") return;
  throw new Error(
    `${model.flag} ${model.name} is an embedding model, not a reranker: ` +
      `to rank with it, give --embedding-model ${model.name} --rerank`,
  );
}

function defaultEmbedder(model: NamedModel | undefined): Mentions | undefined {
  if (!model) return undefined;
  const kind = kindOfModel(model);
  if (kind === "embedding") return [model];
  throw new Error(
    `the default model ${model.name} is a ${noun(kind)} in this store; name another with -m`,
  );
}

function oneModel(
  main: NamedModel | undefined,
  own: NamedModel | undefined,
  nouns: string,
): Mentions | undefined {
  if (!main || !own) return main ? [main] : own && [own];
  if (isSame(main, own)) return [main, own];
  throw new UsageError(`-m ${main.name} and ${own.flag} ${own.name} are two ${nouns}; name one`);
}

function isSame(one: ResolvedModel, other: ResolvedModel): boolean {
  return realpathSync(one.directory) === realpathSync(other.directory);
}

function noun(kind: CheckpointKind): string {
  return kind === "chat" ? "chat model" : kind;
}

import { z } from "zod";
import { Failure } from "../worker/failure.ts";
import type { EmbedderInfo } from "../worker/job.ts";
import type { ParseContext, ServedModel } from "./dialect.ts";

/** A request field that counts as absent when it is null. */
export const optional = {
  string: z.string("must be a string").nullish(),
  boolean: z.boolean("must be true or false").nullish(),
  integer: z.int("must be an integer").nullish(),
};

/**
 * The body in the schema's terms. Unknown fields are dropped.
 * @throws Failure("invalid") naming the first field that does not fit
 */
export function validate<S extends z.ZodObject>(schema: S, body: unknown): z.output<S> {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new Failure("invalid", "the request body must be a JSON object");
  }
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const field = issue?.path.join(".") || null;
  throw new Failure("invalid", `${field ?? "the request"} ${issue?.message ?? "is wrong"}`, field);
}

/** Names from requests are echoed in messages; this keeps them to one readable line. */
export function quote(name: string): string {
  return JSON.stringify(name.length > 100 ? `${name.slice(0, 100)}…` : name);
}

/** @throws Failure("model_not_found") when `name` is given and is none of the model's names */
export function checkModel(name: string | null | undefined, model: ServedModel): void {
  chooseModel(name, { model });
}

/**
 * The model that answers a request which names `name`, or none.
 * @throws Failure("model_not_found") when it is no name of any of them
 */
export function chooseModel(
  name: string | null | undefined,
  { model, alternatives = [] }: Pick<ParseContext, "model" | "alternatives">,
): ServedModel {
  if (name === null || name === undefined) return model;
  const models = [model, ...alternatives];
  const named = models.find(({ id, names }) => name === id || names.includes(name));
  if (named) return named;
  const known = models.map(({ id }) => quote(id)).join(" or ");
  throw new Failure(
    "model_not_found",
    `model ${quote(name)} does not answer here: use ${known} or leave the field out`,
    "model",
  );
}

/** The facts about a model that gives vectors. Routes hand embedding requests to no other. */
export function embedderInfo({ id, info }: ServedModel): EmbedderInfo {
  if (info.kind === "embedding") return info;
  throw new Failure("internal", `${id} is not an embedding model`);
}

import { z } from "zod";
import { Failure } from "../worker/failure.ts";
import type { ServedModel } from "./dialect.ts";

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
  if (name === null || name === undefined) return;
  if (name === model.id || model.names.includes(name)) return;
  throw new Failure(
    "model_not_found",
    `model ${quote(name)} is not served here: use ${quote(model.id)} or leave the field out`,
    "model",
  );
}

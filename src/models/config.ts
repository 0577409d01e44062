import { z } from "zod";
import { CheckpointError } from "../checkpoint/error.ts";

/** Parses a JSON file of a checkpoint. Throws CheckpointError naming the file, the key and its value. */
export function parseConfig<Schema extends z.ZodType>(
  schema: Schema,
  config: unknown,
  file: string,
): z.output<Schema> {
  const parsed = schema.safeParse(config);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new CheckpointError(`${file}: ${problems.join("; ")}`);
}

/** Weights packed by MLX need other layers than this version has: stop before a missing tensor confuses. */
export function refuseQuantised(config: Readonly<Record<string, unknown>>): void {
  const key = ["quantization", "quantization_config"].find((name) => config[name] != null);
  if (key === undefined) return;
  throw new CheckpointError(
    `config.json: "${key}": quantised weights are not supported; use the checkpoint in f32, f16 or bf16`,
  );
}

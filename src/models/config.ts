import { z } from "zod";
import { checkJson } from "../checkpoint/json-file.ts";

/** More than any network has of anything; tables as large as a file claims would be made before its tensors are seen. */
const MOST = 2 ** 24;

/** A count in config.json: tokens, layers, components. */
export const size = z.int().positive().max(MOST);

/** Base of rotary frequencies, or a factor that they are divided by. Those below 1 soon exceed what a number holds. */
export const rotaryFactor = z.number().min(1);

/** Checks that the heads divide the hidden size, rotary ones into parts of even size; the keys are those of the file. */
export function headsDivide<Key extends string>(
  headsKey: Key,
  widthKey: Key,
  { even = false } = {},
) {
  return ({ value, issues }: z.core.ParsePayload<Readonly<Record<Key, number>>>): void => {
    const [heads, width] = [value[headsKey], value[widthKey]];
    if (width % (even ? 2 * heads : heads) === 0) return;
    const message = `${heads} does not divide ${widthKey} ${width}${even ? " into even parts" : ""}`;
    issues.push({ code: "custom", input: heads, path: [headsKey], message });
  };
}

/** Checks config.json, or the part of it that `place` names. Throws CheckpointError naming the keys that do not fit. */
export function parseConfig<Schema extends z.ZodType>(
  schema: Schema,
  config: unknown,
  place = "config.json",
): z.output<Schema> {
  return checkJson(place, config, schema);
}

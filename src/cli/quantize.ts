/** `mlxcel quantize`: a copy of a model with smaller weights. */
import { z } from "zod";
import { packing } from "../checkpoint/quantization.ts";
import { byteText } from "../hub/byte-text.ts";
import type { Environment } from "../native/environment.ts";
import { hubFlags, resourceFlags } from "./command-flags.ts";
import { flag, flagsOf, type FlagTable } from "./flag-table.ts";
import { commandHelp } from "./help.ts";
import { namedModel } from "./named-model.ts";
import { countOf, Progress } from "./progress.ts";
import { readCommandLine } from "./parse.ts";
import { UsageError } from "./usage-error.ts";
import { oneOf, text, wholeNumber } from "./values.ts";

const schema = z.object({
  model: flag(text("a directory or a repository name").optional(), {
    group: "Model",
    placeholder: "NAME",
    aliases: ["-m"],
    noEnv: true,
    help: "What to quantise: a directory, or a repository <owner>/<name>, downloaded where it is not here yet.",
  }),
  ...hubFlags,
  output: flag(text("a directory").optional(), {
    group: "Output",
    placeholder: "DIR",
    aliases: ["-o"],
    noEnv: true,
    help: "Directory to make.",
  }),
  bits: flag(wholeNumber(1).optional(), {
    group: "Packing",
    placeholder: "N",
    noEnv: true,
    help: "Bits per number: 2, 3, 4, 5, 6 or 8. Default: 4, or what the mode has.",
  }),
  group: flag(wholeNumber(1).optional(), {
    group: "Packing",
    placeholder: "N",
    aliases: ["--group-size"],
    noEnv: true,
    help: "Numbers that share a scale: 32, 64 or 128. Default: 64, or what the mode has.",
  }),
  mode: flag(oneOf(["affine", "mxfp4", "nvfp4", "mxfp8"]), {
    group: "Packing",
    placeholder: "affine|mxfp4|nvfp4|mxfp8",
    noEnv: true,
    default: "affine",
    help: "What a packed number is: a whole one (affine), or a small float, whose bits and group are fixed.",
  }),
  help: resourceFlags.help,
});

type QuantizeFlags = z.output<typeof schema>;

/** The table of its flags. */
export const QUANTIZE: FlagTable<typeof schema> = {
  command: "mlxcel quantize",
  schema,
  flags: flagsOf(schema),
  bareWord: "the model comes behind -m, the directory to make behind -o",
};

export function quantizeHelp(colour: boolean): string {
  return commandHelp(
    QUANTIZE,
    {
      title: "writes a copy of a model with smaller weights",
      usage: [["mlxcel quantize -m MODEL --bits 4 --group 64 -o DIR", ""]],
      closing:
        "The copy has the layout of mlx-community: MLX and this program read it. Matrices whose width the group size " +
        "does not divide, and heads of one row, stay as they are.",
    },
    colour,
  );
}

/** The command. Returns the exit code. */
export async function quantize(args: readonly string[], env: Environment): Promise<number> {
  const { flags } = readCommandLine(QUANTIZE, args, env);
  const { model, output } = flags;
  if (model === undefined) throw new UsageError("nothing to quantise: give -m MODEL");
  if (output === undefined) throw new UsageError("nowhere to write to: give -o DIR");
  const wanted = packingOf(flags);
  const { directory } = await namedModel(model, flags, env);
  const { quantizeCheckpoint } = await import("../models/quantize.ts");
  let progress: Progress | undefined;
  const report = quantizeCheckpoint({
    source: directory,
    target: output,
    packing: wanted,
    onProgress: (done, total) => {
      progress ??= new Progress({ stream: process.stderr, unit: countOf("tensors"), total });
      progress.update(done);
    },
  });
  progress?.end();
  const { quantized, leftDense, bytesBefore, bytesAfter } = report;
  const dense = leftDense.length === 0 ? "" : `; left dense: ${leftDense.join(", ")}`;
  const sizes = `${byteText(bytesBefore)} -> ${byteText(bytesAfter)}`;
  process.stdout.write(`${output}: ${quantized} matrices quantised, ${sizes}${dense}\n`);
  return 0;
}

const FLAG_OF: Readonly<Record<string, string>> = { group_size: "--group", bits: "--bits" };

function packingOf({ mode, bits, group }: QuantizeFlags) {
  const parsed = packing.safeParse({ mode, bits, group_size: group });
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(
    ({ path, message }) => `${FLAG_OF[String(path[0])] ?? "--mode"} ${message}`,
  );
  throw new UsageError(problems.join("; "));
}

/** `mlxcel pull`: models from the hub into the local store. */
import { z } from "zod";
import { pullModel } from "../hub/resolve.ts";
import type { Environment } from "../native/environment.ts";
import { hubFlags } from "./command-flags.ts";
import { flagsOf, type FlagTable } from "./flag-table.ts";
import { flagsSchema } from "./flags.ts";
import { commandHelp } from "./help.ts";
import { withDownloads } from "./named-model.ts";
import { writeAnswer } from "./output.ts";
import { readCommandLine } from "./parse.ts";
import { UsageError } from "./usage-error.ts";

const schema = z.object({ ...hubFlags, help: flagsSchema.shape.help });

/** The table of its flags. */
export const PULL: FlagTable<typeof schema> = {
  command: "mlxcel pull",
  schema,
  flags: flagsOf(schema),
  takesWords: true,
};

export function pullHelp(colour: boolean): string {
  return commandHelp(
    PULL,
    {
      title: "downloads models, or brings them up to date",
      usage: [
        ["mlxcel pull OWNER/NAME...", "what the model needs, no more"],
        ["mlxcel pull OWNER/NAME:Q8_0", "one GGUF file of a repository"],
        ["mlxcel pull OWNER/NAME --revision V", "a branch, a tag or a commit"],
      ],
      closing:
        "A download that was stopped goes on where it stopped. Every file is checked against the hub's checksum. " +
        "Where the model lies is printed. HF_ENDPOINT names another hub, HTTPS_PROXY and NO_PROXY a proxy.",
    },
    colour,
  );
}

/** The command. Returns the exit code. */
export async function pull(args: readonly string[], env: Environment): Promise<number> {
  const { flags, words } = readCommandLine(PULL, args, env);
  if (words.length === 0) throw new UsageError("nothing to pull: give the name of a repository");
  for (const name of words) {
    const { directory } = await withDownloads(flags, env, (options) => pullModel(name, options));
    await writeAnswer(`${directory}\n`, undefined);
  }
  return 0;
}

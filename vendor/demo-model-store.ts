import { parseFlags, readCommandLine } from "../src/cli/parse.ts";
import { UsageError } from "../src/cli/usage-error.ts";
import { localStore } from "../src/hub/places.ts";
import type { Environment } from "../src/native/environment.ts";

interface ModelWish {
  readonly modelsDir?: string | undefined;
  /** It runs without a model, with one that the user named, or may not use the network. */
  readonly needsNoDemo: boolean;
}

async function wishOf(args: readonly string[], env: Environment): Promise<ModelWish> {
  const [command = "serve", ...rest] = args;
  if (command === "embed" || command === "rerank") {
    const flags =
      command === "embed"
        ? readCommandLine((await import("../src/cli/embed.ts")).EMBED, rest, env).flags
        : readCommandLine((await import("../src/cli/rerank.ts")).RERANK, rest, env).flags;
    return { ...flags, needsNoDemo: flags.help || flags.offline || flags.model !== undefined };
  }
  if (command !== "serve" && !command.startsWith("-")) return { needsNoDemo: true };
  const { flags } = parseFlags(command === "serve" ? rest : args, env);
  const named = flags.model ?? flags.embeddingModel ?? flags.rerankerModel;
  return {
    ...flags,
    needsNoDemo: flags.help || flags.version || flags.offline || named !== undefined,
  };
}

/**
 * The store that must hold the demo model before the program can run with these arguments; an absolute
 * path, or undefined when the model is not needed. Reads the arguments as the program itself does.
 */
export async function demoModelStore(
  args: readonly string[],
  env: Environment,
): Promise<string | undefined> {
  try {
    const { modelsDir, needsNoDemo } = await wishOf(args, env);
    return needsNoDemo ? undefined : localStore({ modelsDir, env });
  } catch (error) {
    // The program itself tells what is wrong with its command line.
    if (error instanceof UsageError) return undefined;
    throw error;
  }
}

import type { Environment } from "../native/environment.ts";
import type { FlagTable } from "./flag-table.ts";

/** A command that was loaded. */
interface Command {
  /** Returns the exit code. */
  readonly run: (args: readonly string[], env: Environment) => Promise<number>;
  /** The text of `--help`. */
  readonly help: (colour: boolean) => string;
  readonly table: FlagTable;
}

interface CommandEntry {
  /** What it does, in a few words. */
  readonly remark: string;
  /** Its module is imported when the command is called, and no other. */
  readonly load: () => Promise<Command>;
}

/** Every command with flags, by the word that calls it. */
export const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  serve: {
    remark: "start the server",
    async load() {
      const { helpText } = await import("./help.ts");
      const { SERVE } = await import("./flags.ts");
      return { run: startServer, help: helpText, table: SERVE };
    },
  },
  embed: {
    remark: "print the vectors of texts",
    async load() {
      const { embed, embedHelp, EMBED } = await import("./embed.ts");
      return { run: embed, help: embedHelp, table: EMBED };
    },
  },
  rerank: {
    remark: "print documents, best first",
    async load() {
      const { rerank, rerankHelp, RERANK } = await import("./rerank.ts");
      return { run: rerank, help: rerankHelp, table: RERANK };
    },
  },
  bench: {
    remark: "measure servers under load",
    async load() {
      const { bench, benchHelp, BENCH } = await import("./bench.ts");
      return { run: bench, help: benchHelp, table: BENCH };
    },
  },
  quantize: {
    remark: "write a model with quantised weights",
    async load() {
      const { quantize, quantizeHelp, QUANTIZE } = await import("./quantize.ts");
      return { run: quantize, help: quantizeHelp, table: QUANTIZE };
    },
  },
  pull: {
    remark: "download a model into the local store",
    async load() {
      const { pull, pullHelp, PULL } = await import("./pull.ts");
      return { run: pull, help: pullHelp, table: PULL };
    },
  },
  list: {
    remark: "list the models in the local store",
    async load() {
      const { list, listHelp, LIST } = await import("./list.ts");
      return { run: list, help: listHelp, table: LIST };
    },
  },
  show: {
    remark: "tell what a model is",
    async load() {
      const { show, showHelp, SHOW } = await import("./show.ts");
      return { run: show, help: showHelp, table: SHOW };
    },
  },
  rm: {
    remark: "delete a model from the local store",
    async load() {
      const { rm, rmHelp, RM } = await import("./rm.ts");
      return { run: rm, help: rmHelp, table: RM };
    },
  },
  arch: {
    remark: "list the families of models that load",
    async load() {
      const { arch, archHelp, ARCH } = await import("./arch.ts");
      return { run: arch, help: archHelp, table: ARCH };
    },
  },
  doctor: {
    remark: "check this machine and the native libraries",
    async load() {
      const { runDoctor, doctorHelp, DOCTOR } = await import("./doctor.ts");
      return { run: runDoctor, help: doctorHelp, table: DOCTOR };
    },
  },
  completions: {
    remark: "print completions for a shell",
    async load() {
      const { completions, completionsHelp, COMPLETIONS } =
        await import("./completions/completions.ts");
      return { run: completions, help: completionsHelp, table: COMPLETIONS };
    },
  },
};

async function startServer(args: readonly string[], env: Environment): Promise<number> {
  const { parseFlags } = await import("./parse.ts");
  const { resolveSettings } = await import("./settings.ts");
  const settings = await resolveSettings(parseFlags(args, env), env);
  const { serve } = await import("./serve.ts");
  return serve(settings);
}

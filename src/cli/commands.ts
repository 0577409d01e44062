import type { Environment } from "../native/environment.ts";
import { type FlagTable, spellings } from "./flag-table.ts";
import { UsageError } from "./usage-error.ts";

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

/** Every command, by the word that calls it. */
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
  help: {
    remark: "print the help of a command",
    async load() {
      const { printHelp, helpOfHelp, HELP } = await import("./help-command.ts");
      return { run: printHelp, help: helpOfHelp, table: HELP };
    },
  },
  version: {
    remark: "print the version",
    async load() {
      const { version, versionHelp, VERSION_COMMAND } = await import("./version-command.ts");
      return { run: version, help: versionHelp, table: VERSION_COMMAND };
    },
  },
  licenses: {
    remark: "print the licences of everything inside",
    async load() {
      const { licenses, licensesHelp, LICENSES } = await import("./licenses.ts");
      return { run: licenses, help: licensesHelp, table: LICENSES };
    },
  },
};

/** What users of other tools type. */
const OTHER_NAMES: Readonly<Record<string, string>> = { ls: "list", remove: "rm" };

/**
 * The command that `word` calls.
 *
 * @throws UsageError where there is none, with what was probably meant
 */
export async function loadCommand(word: string): Promise<Command> {
  const name = OTHER_NAMES[word] ?? word;
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!command) throw new UsageError(await unknownCommand(word));
  return command.load();
}

async function unknownCommand(word: string): Promise<string> {
  const { nearest } = await import("./nearest.ts");
  const guess = nearest(word, Object.keys(COMMANDS));
  if (!guess && (await npmTookFlags(process.env))) {
    return `unknown command ${word}; flags of npm start come behind --, as in npm start -- --port 8080`;
  }
  const advice = guess ? `did you mean ${guess}?` : "to serve a model, name it with -m;";
  return `unknown command ${word}; ${advice} mlxcel --help lists the commands`;
}

/** npm takes flags that do not stand behind `--` for its own settings and leaves their values as words. */
async function npmTookFlags(env: Environment): Promise<boolean> {
  if (env["npm_lifecycle_event"] !== "start") return false;
  const { FLAGS } = await import("./flags.ts");
  const names = FLAGS.filter(({ placeholder }) => placeholder).flatMap(spellings);
  return names.some((name) => {
    const setting = name.replace(/^-+/, "").replaceAll("-", "_");
    return env[`npm_config_${setting}`] === "true";
  });
}

async function startServer(args: readonly string[], env: Environment): Promise<number> {
  const { parseFlags } = await import("./parse.ts");
  const { resolveSettings } = await import("./settings.ts");
  const settings = await resolveSettings(parseFlags(args, env), env);
  const { serve } = await import("./serve.ts");
  return serve(settings);
}

/** Variables that no flag stands for. */
import type { Environment } from "../native/environment.ts";
import { UsageError } from "./usage-error.ts";

const ON = ["1", "true"];
const SWITCH = [...ON, "0", "false"];

/** A variable that no flag stands for. */
export interface Variable {
  readonly name: string;
  readonly help: string;
  /** What it may be; absent: any text. */
  readonly values?: readonly string[];
}

/** What is read where flags do not reach: before the command line, or deep in a thread. */
export const VARIABLES: readonly Variable[] = [
  {
    name: "MLXCEL_CACHE_DIR",
    help: "Where the executable unpacks its native libraries at its first start. Default: ~/Library/Caches/mlxcel on a Mac, else mlxcel in $XDG_CACHE_HOME or ~/.cache.",
  },
  {
    name: "MLXCEL_MLXC_PATH",
    help: "Another build of libmlxc: the file, or the directory that holds it.",
  },
  {
    name: "MLXCEL_KERNELS",
    values: ["off", "avx512", "avx2", "baseline"],
    help: "off computes with MLX's own operations on the CPU; avx2 or baseline choose older instructions.",
  },
  {
    name: "MLXCEL_PROFILE",
    values: SWITCH,
    help: "1 runs every operation alone and prints at the end where the time went; for the server, embed and rerank.",
  },
  {
    name: "MLXCEL_DEBUG",
    values: SWITCH,
    help: "1 shows the stack of an error that ends the program.",
  },
];

/** @throws UsageError one line that names the variable and what it takes */
export function checkVariables(env: Environment): void {
  for (const { name, values } of VARIABLES) {
    const text = env[name];
    if (!values || !text || values.includes(text)) continue;
    const accepted = `${values.slice(0, -1).join(", ")} or ${values.at(-1)}`;
    throw new UsageError(`${name} takes ${accepted}, not "${text}"`);
  }
}

/** Whether one of them that is a switch is on. */
export function isOn(name: "MLXCEL_PROFILE" | "MLXCEL_DEBUG", env: Environment): boolean {
  return ON.includes(env[name] ?? "");
}

/** From the name that a flag gives to the model, downloaded in the sight of the user if need be. */
import { type ResolvedModel, resolveModel, type ResolveOptions } from "../hub/resolve.ts";
import type { Environment } from "../native/environment.ts";
import { createLogger, type LoggerOptions } from "../serving/log.ts";
import { DownloadDisplay } from "./download-display.ts";

export interface HubFlags {
  readonly modelsDir?: string | undefined;
  readonly revision?: string | undefined;
  readonly hfToken?: string | undefined;
  readonly offline: boolean;
  /** With json, downloads are told in the log, for programs to read. Absent: commands without a log. */
  readonly logFormat?: LoggerOptions["format"];
  readonly logLevel?: LoggerOptions["level"];
}

/** @throws Error one line, when it is neither on this machine nor can be downloaded */
export function namedModel(
  name: string,
  flags: HubFlags,
  env: Environment,
): Promise<ResolvedModel> {
  return withDownloads(flags, env, (options) => resolveModel(name, options));
}

/** Runs something that may download, with its progress on stderr. */
export async function withDownloads<T>(
  { modelsDir, revision, hfToken: token, offline, logFormat, logLevel = "info" }: HubFlags,
  env: Environment,
  run: (options: ResolveOptions) => Promise<T>,
): Promise<T> {
  const log =
    logFormat === "json" ? createLogger({ format: logFormat, level: logLevel }) : undefined;
  using listener = new DownloadDisplay(process.stderr, log);
  return await run({ modelsDir, revision, token, offline, env, listener });
}

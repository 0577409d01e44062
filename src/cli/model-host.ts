import { modelWorkerUrl } from "../entries.ts";
import { findLibrary } from "../native/library.ts";
import type { Logger } from "../serving/log.ts";
import { WorkerHost } from "../serving/worker-host.ts";
import type { TimeAccount } from "../worker/time-account.ts";
import type { ModelSettings } from "./settings.ts";

/**
 * The host of a model, not loaded yet.
 *
 * @throws LibraryError when its worker would find no native library
 */
export function hostOf(
  { id, names, queueDepth, requestTimeoutMs, worker }: ModelSettings,
  logger: Logger,
  profile?: TimeAccount,
): WorkerHost {
  // Here, so that workers that start together do not unpack it together.
  findLibrary(process.env);
  return new WorkerHost({
    id,
    names,
    queueDepth,
    requestTimeoutMs,
    worker: { ...worker, profile: profile !== undefined },
    logger,
    workerUrl: modelWorkerUrl,
    profile,
  });
}

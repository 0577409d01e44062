import type { Logger } from "../serving/log.ts";
import { WorkerHost } from "../serving/worker-host.ts";
import type { TimeAccount } from "../worker/time-account.ts";
import type { ModelSettings } from "./settings.ts";

/** The host of a model, not loaded yet. */
export function hostOf(
  { id, names, queueDepth, requestTimeoutMs, worker }: ModelSettings,
  logger: Logger,
  profile?: TimeAccount,
): WorkerHost {
  const workerUrl = new URL("../worker/model-worker.ts", import.meta.url);
  return new WorkerHost({
    id,
    names,
    queueDepth,
    requestTimeoutMs,
    worker: { ...worker, profile: profile !== undefined },
    logger,
    workerUrl,
    profile,
  });
}

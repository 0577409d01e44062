import { startServer } from "../http/server.ts";
import { colourWanted, createLogger } from "../serving/log.ts";
import { WorkerHost } from "../serving/worker-host.ts";
import type { ModelInfo } from "../worker/job.ts";
import { banner } from "./banner.ts";
import type { ServeSettings } from "./settings.ts";
import { VERSION } from "./version.ts";

/**
 * Serves until SIGINT or SIGTERM, then finishes what runs; a second signal ends it at once. Returns the exit code.
 * It listens before the model is loaded, so that `/health` can say so and a taken port is reported at once.
 *
 * @throws Error one line, when the address can't be listened on or the model can't be loaded
 */
export async function serve(settings: ServeSettings): Promise<number> {
  for (const notice of settings.notices) process.stderr.write(`mlxcel: ${notice}\n`);
  const stopSignal = nextStopSignal();
  const logger = createLogger({ format: settings.logFormat, level: settings.logLevel });
  const embedder = new WorkerHost({
    ...settings.embedder,
    logger,
    workerUrl: new URL("../worker/model-worker.ts", import.meta.url),
  });
  const server = await startServer({
    ...settings,
    providers: { embedder },
    version: VERSION,
    logger,
  });
  try {
    const loaded = await Promise.race([embedder.load(), stopSignal]);
    if (loaded) {
      const colour = colourWanted(process.stdout);
      warnOfCappedLength(settings, loaded);
      process.stdout.write(banner(settings, loaded, server.url, colour));
      await stopSignal;
    }
    logger.info("finishing the requests that run; a second signal ends them");
    await Promise.race([server.stop(), nextStopSignal()]);
    return 0;
  } finally {
    embedder.close();
  }
}

function warnOfCappedLength({ embedder }: ServeSettings, { maxLength }: ModelInfo): void {
  const asked = embedder.worker.maxLength;
  if (asked === undefined || asked <= maxLength) return;
  process.stderr.write(
    `mlxcel: --embedding-max-length ${asked} is capped to ${maxLength}, the limit of ${embedder.id}\n`,
  );
}

/** Resolves to undefined when the process is told to stop. */
function nextStopSignal(): Promise<undefined> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => resolve(undefined));
  });
}

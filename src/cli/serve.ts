import { startServer, type RunningServer } from "../http/server.ts";
import { colourWanted, createLogger, surviveLostOutput, type Logger } from "../serving/log.ts";
import { RankingEmbedder } from "../serving/ranking-embedder.ts";
import { WorkerHost } from "../serving/worker-host.ts";
import type { ModelInfo } from "../worker/job.ts";
import { TimeAccount } from "../worker/time-account.ts";
import { banner, type LoadedModels } from "./banner.ts";
import { exposureWarning } from "./exposure.ts";
import { hostOf } from "./model-host.ts";
import { profileReport } from "./profile-report.ts";
import type { ModelSettings, ServeSettings } from "./settings.ts";
import { VERSION } from "./version.ts";

/**
 * Serves until SIGINT or SIGTERM, then finishes what runs; after a second signal what still runs is answered with 503.
 * Returns the exit code.
 * It listens before the models are loaded, so that `/health` can say so and a taken port is reported at once.
 *
 * @throws Error one line, when the address can't be listened on or a model can't be loaded
 */
export async function serve(settings: ServeSettings): Promise<number> {
  surviveLostOutput();
  const stopSignal = nextStopSignal();
  const logger = createLogger({ format: settings.logFormat, level: settings.logLevel });
  for (const notice of settings.notices) logger.warn(notice);
  const profile = settings.profile ? new TimeAccount() : undefined;
  const hosts = startHosts(settings, logger, profile);
  const { embedder } = hosts;
  const ranker =
    hosts.reranker ??
    (embedder && settings.embedderRanks ? new RankingEmbedder(embedder) : undefined);
  const server = await startServer({
    ...settings,
    providers: { embedder, ranker },
    version: VERSION,
    logger,
    profile,
  });
  try {
    const loaded = await Promise.race([loadAll(hosts), stopSignal]);
    if (loaded) {
      const colour = colourWanted(process.stdout);
      warnOfCappedLength(settings.embedder, loaded.embedder, logger);
      warnOfCappedLength(settings.reranker, loaded.reranker, logger);
      logNotes(settings.embedder, loaded.embedder, logger);
      logNotes(settings.reranker, loaded.reranker, logger);
      const exposed = exposureWarning(settings);
      if (exposed) logger.warn(exposed);
      process.stdout.write(banner(settings, loaded, server.url, colour));
      await stopSignal;
    }
    await stop(server, hosts, logger);
    if (profile) {
      process.stderr.write(profileReport(profile.entries(), colourWanted(process.stderr)));
    }
    return 0;
  } finally {
    close(hosts);
  }
}

/** A supervisor that signals a whole group reaches this process twice: directly and through `npm start`. */
const ONE_STOP_MS = 300;

/** Long enough for the answers to leave that a second signal brings about. */
const LAST_ANSWERS_MS = 500;

async function stop(server: RunningServer, hosts: Hosts, logger: Logger): Promise<void> {
  if (server.running > 0) {
    logger.info("finishing the requests that run; a second signal ends them");
  }
  const stopped = server.stop();
  await Promise.race([stopped, nextStopSignal(ONE_STOP_MS)]);
  close(hosts);
  await Promise.race([stopped, Bun.sleep(LAST_ANSWERS_MS)]);
  logger.info("stopped");
}

function close({ embedder, reranker }: Hosts): void {
  embedder?.close();
  reranker?.close();
}

interface Hosts {
  readonly embedder?: WorkerHost | undefined;
  readonly reranker?: WorkerHost | undefined;
}

function startHosts(
  { embedder, reranker }: ServeSettings,
  logger: Logger,
  profile: TimeAccount | undefined,
): Hosts {
  return {
    embedder: embedder && hostOf(embedder, logger, profile),
    reranker: reranker && hostOf(reranker, logger, profile),
  };
}

/** Loads both at the same time; the first that fails ends the start. */
async function loadAll({ embedder, reranker }: Hosts): Promise<LoadedModels> {
  const [vectors, scores] = await Promise.all([embedder?.load(), reranker?.load()]);
  return {
    embedder: vectors?.kind === "embedding" ? vectors : undefined,
    reranker: scores?.kind === "reranker" ? scores : undefined,
  };
}

function warnOfCappedLength(
  settings: ModelSettings | undefined,
  info: ModelInfo | undefined,
  logger: Logger,
): void {
  const asked = settings?.worker.maxLength;
  if (!settings || !info || asked === undefined || asked <= info.maxLength) return;
  logger.warn(
    `--embedding-max-length ${asked} is capped to ${info.maxLength}, the limit of ${settings.id}`,
  );
}

function logNotes(
  settings: ModelSettings | undefined,
  info: ModelInfo | undefined,
  logger: Logger,
): void {
  for (const note of info?.loadNotes ?? []) logger.info(note, { model: settings?.id });
}

/** Resolves to undefined when the process is told to stop, from `ignoredMs` from now on. */
function nextStopSignal(ignoredMs = 0): Promise<undefined> {
  const fromMs = performance.now() + ignoredMs;
  return new Promise((resolve) => {
    const onSignal = () => {
      if (performance.now() >= fromMs) resolve(undefined);
    };
    for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, onSignal);
  });
}

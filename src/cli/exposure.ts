import { isIP } from "node:net";
import type { ServeSettings } from "./settings.ts";

/** A line for the user when other machines can reach a server that asks for no key. */
export function exposureWarning({
  listen,
  apiKeys,
}: Pick<ServeSettings, "listen" | "apiKeys">): string | undefined {
  if ("socketPath" in listen || apiKeys.length > 0 || isLoopback(listen.host)) return undefined;
  return `whoever can reach ${listen.host} port ${listen.port} may use this server: --api-key asks for a key, --host 127.0.0.1 keeps it to this machine`;
}

function isLoopback(host: string): boolean {
  if (isIP(host) === 4) return host.startsWith("127.");
  return host === "localhost" || host === "::1";
}

import type { ModelInfo } from "../worker/job.ts";
import type { ServeSettings } from "./settings.ts";
import { VERSION } from "./version.ts";

/** What the user sees once the model answers: what is served, where, and a line to try it with. */
export function banner(
  settings: ServeSettings,
  info: ModelInfo,
  url: string,
  colour: boolean,
): string {
  const bold = (text: string) => (colour ? `\u001b[1m${text}\u001b[0m` : text);
  const { id, isDefault } = settings.embedder;
  const rows = [
    ["model", `${id} (${info.family}${isDefault ? ", the default" : ""})`],
    ["dim", String(info.dim)],
    ["max length", `${info.maxLength} tokens`],
    ["pooling", `${info.pooling}, normalization ${info.normalization}`],
    ["device", info.device],
    ["url", url],
  ];
  const table = rows.map(([name = "", value = ""]) => `  ${name.padEnd(12)}${value}`);
  const lines = [`mlxcel ${VERSION}`, ...table, "", `  ${curlLine(settings, url)}`, ""];
  return `${bold(lines[0] ?? "")}\n${lines.slice(1).join("\n")}\n`;
}

/** A command that can be pasted; a key is left to the reader. */
function curlLine({ listen, apiKeys, tls }: ServeSettings, url: string): string {
  const options = [
    ...("socketPath" in listen ? [`--unix-socket ${listen.socketPath}`] : []),
    // -k: a certificate made for testing is signed by nobody that curl knows
    ...(tls ? ["-k"] : []),
    ...(apiKeys.length > 0 ? ["-H 'Authorization: Bearer YOUR_KEY'"] : []),
  ];
  const target = "socketPath" in listen ? "http://localhost" : url;
  return ["curl", ...options, `${target}/v1/embeddings`, `-d '{"input": "Hello, world"}'`].join(
    " ",
  );
}

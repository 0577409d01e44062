import type { Answer } from "../answer.ts";
import pageFile from "./page.html" with { type: "text" };
import scriptFile from "./script.js" with { type: "text" };
import styleFile from "./style.css" with { type: "text" };

/** Where the page asks for what it shows, every second. */
export const STATUS_PATH = "/status";

/** The page for people who open the server's address in a browser. It needs nothing from anywhere else. */
export function statusPage(): Answer {
  return {
    status: 200,
    body: html,
    contentType: "text/html; charset=utf-8",
    headers: {
      "content-security-policy": policy,
      "cache-control": "no-cache",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
      vary: "accept",
    },
  };
}

/** Whether a client would rather read HTML than JSON: browsers name it first. */
export function prefersHtml(headers: Headers): boolean {
  const accepted = headers.get("accept") ?? "";
  const position = (type: string) => {
    const index = accepted.indexOf(type);
    return index < 0 ? Infinity : index;
  };
  return position("text/html") < position("application/json");
}

const script = text(scriptFile);

const html = text(pageFile)
  // a function: the texts hold `$`
  .replace("<style></style>", () => `<style>${text(styleFile)}</style>`)
  .replace('<script type="module"></script>', () => `<script type="module">${script}</script>`);

/** Only what was built in may run; styles set by the script are allowed, foreign addresses are not. */
const policy = [
  "default-src 'none'",
  `script-src 'sha256-${sha256(script)}'`,
  "style-src 'unsafe-inline'",
  "img-src data:",
  "connect-src 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join("; ");

/** The types of such imports go by the name of the file: they do not know what it is imported as. */
function text(file: unknown): string {
  if (typeof file === "string") return file;
  throw new Error("a file of the status page is not text");
}

function sha256(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("base64");
}

/** Why a server could not listen, in one line that says what to change. */
import { isIP } from "node:net";
import { codeOf } from "../native/thrown.ts";
import type { Listen, Tls } from "./server.ts";

/** @param error as thrown by the runtime or by the file system */
export function bindMessage(error: unknown, listen: Listen, tls: Tls | undefined): string {
  const code = codeOf(error);
  if (tls && code.includes("OSSL")) return tlsMessage(code, tls);
  if ("socketPath" in listen) {
    const why = SOCKET_PROBLEMS.get(code) ?? String(error);
    return `cannot listen on the socket ${listen.socketPath}: ${why}`;
  }
  const { host, port } = listen;
  if (code !== "EADDRINUSE") {
    return `cannot listen on ${host}, port ${port}: ${ADDRESS_PROBLEMS.get(code) ?? String(error)}`;
  }
  if (isIP(host) === 0 && host !== "localhost") {
    return `cannot listen on ${host}, port ${port}: the port is in use, or the host has no address here`;
  }
  return `port ${port} on ${host} is in use: stop what listens there or choose another --port`;
}

const SOCKET_PROBLEMS: ReadonlyMap<string, string> = new Map([
  ["ENOENT", "no such directory"],
  ["ENOTDIR", "a part of the path is a file, not a directory"],
  ["EACCES", "this user may not create it there"],
  ["EPERM", "this user may not create it there"],
  ["EROFS", "the file system is read-only"],
  ["ENAMETOOLONG", "the path is too long for a socket; about 100 bytes are the limit"],
]);

const ADDRESS_PROBLEMS: ReadonlyMap<string, string> = new Map([
  ["EADDRNOTAVAIL", "no such address on this machine; --host takes one of its own"],
  ["ENOTFOUND", "unknown host; --host takes a name or an address, without a port"],
  ["EACCES", "this user may not use that port; choose one from 1024 on with --port"],
  ["EINVAL", "not an address to listen on; --host takes one of this machine"],
]);

function tlsMessage(code: string, { certFile, keyFile }: Tls): string {
  if (code.includes("KEY_VALUES_MISMATCH")) {
    return `the key in ${keyFile} is not the key of the certificate in ${certFile}`;
  }
  return `${certFile} and ${keyFile} are not a PEM certificate and its key (${code})`;
}

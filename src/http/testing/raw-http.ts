import { connect } from "node:net";

/**
 * Sends bytes as they are, piece by piece, and collects what comes back until `done` says enough or the server
 * closes the connection.
 *
 * @param address a port of loopback, or the path of a unix socket
 */
export async function rawExchange(
  address: number | string,
  pieces: readonly (string | Uint8Array)[],
  done: (received: string) => boolean,
): Promise<{ received: string; closed: boolean }> {
  const { promise, resolve, reject } = Promise.withResolvers<{
    received: string;
    closed: boolean;
  }>();
  let received = "";
  const target = typeof address === "number" ? { port: address } : { path: address };
  const socket = connect({ host: "127.0.0.1", ...target }, async () => {
    for (const piece of pieces) {
      socket.write(piece);
      await Bun.sleep(5); // so that pieces arrive apart
    }
  });
  socket.on("data", (chunk) => {
    received += chunk.toString();
    if (!done(received)) return;
    resolve({ received, closed: false });
    socket.destroy();
  });
  socket.on("close", () => resolve({ received, closed: true }));
  socket.on("error", reject);
  return promise;
}

/** How many whole responses with this status line are in `received`. */
export function statusCount(received: string, status: number): number {
  return received.split(`HTTP/1.1 ${status} `).length - 1;
}

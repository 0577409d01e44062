/** A plain TCP connection, to send exactly the bytes that a test is about. */
import { connect, type Socket } from "node:net";

interface RawAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

const TIMEOUT_MS = 30_000;

export class Connection {
  #received = Buffer.alloc(0);
  #ended = false;
  #wake: () => void = () => {};
  readonly #socket: Socket;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (bytes: Uint8Array) => {
      this.#received = Buffer.concat([this.#received, bytes]);
      this.#wake();
    });
    for (const event of ["close", "error"]) {
      socket.on(event, () => {
        this.#ended = true;
        this.#wake();
      });
    }
  }

  static open(port: number): Promise<Connection> {
    const { promise, resolve, reject } = Promise.withResolvers<Connection>();
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    const connection = new Connection(socket);
    socket.once("connect", () => resolve(connection));
    socket.once("error", reject);
    return promise;
  }

  send(bytes: string | Uint8Array): void {
    this.#socket.write(bytes);
  }

  /** A POST with the length announced. */
  post(path: string, body: string | Uint8Array, headers: readonly string[] = []): void {
    const lines = [`content-length: ${Buffer.byteLength(body)}`, ...headers];
    this.head("POST", path, lines);
    this.send(body);
  }

  head(method: string, path: string, headers: readonly string[]): void {
    this.send([`${method} ${path} HTTP/1.1`, "host: test", ...headers, "", ""].join("\r\n"));
  }

  /** One part of a body sent with `transfer-encoding: chunked`. */
  chunk(bytes: Uint8Array): void {
    this.send(`${bytes.length.toString(16)}\r\n`);
    this.send(bytes);
    this.send("\r\n");
  }

  lastChunk(): void {
    this.send("0\r\n\r\n");
  }

  /** The next answer on this connection; throws if it ends first. Answers to HEAD have no body. */
  async answer({ toHead = false } = {}): Promise<RawAnswer> {
    const head = await this.#until((bytes) => bytes.indexOf("\r\n\r\n"));
    const [statusLine = "", ...lines] = this.#take(head, 4).split("\r\n");
    const headers = new Headers();
    for (const line of lines) {
      const colon = line.indexOf(":");
      headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
    }
    const status = Number(statusLine.split(" ")[1]);
    if (status === 100) return this.answer();
    const length = toHead ? 0 : Number(headers.get("content-length") ?? 0);
    await this.#until((bytes) => (bytes.length >= length ? length : -1));
    return { status, headers, body: this.#take(length, 0) };
  }

  /** Reads nothing from now on. */
  pause(): void {
    this.#socket.pause();
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(length: number, separator: number): string {
    const text = this.#received.toString("utf8", 0, length);
    this.#received = this.#received.subarray(length + separator);
    return text;
  }

  /** Waits until `find` gives a position. */
  async #until(find: (bytes: Buffer) => number): Promise<number> {
    const deadline = Date.now() + TIMEOUT_MS;
    for (;;) {
      const found = find(this.#received);
      if (found >= 0) return found;
      if (this.#ended) throw new Error("the server closed the connection");
      if (Date.now() > deadline) throw new Error("no answer on the connection");
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await Promise.race([promise, Bun.sleep(deadline - Date.now())]);
    }
  }
}

/** Twenty clients that send a request at once and leave before it is answered. */
export async function abandonedBurst(port: number, path: string, body: string): Promise<void> {
  const connections = await Promise.all(Array.from({ length: 20 }, () => Connection.open(port)));
  for (const connection of connections) connection.post(path, body);
  await Bun.sleep(30);
  for (const connection of connections) connection.close();
}

import { expect, test } from "bun:test";
import { exposureWarning } from "./exposure.ts";

const open = (host: string) => exposureWarning({ listen: { host, port: 8080 }, apiKeys: [] });

test("a server that other machines can reach without a key is warned of", () => {
  for (const host of ["0.0.0.0", "::", "192.168.1.7", "mac.local"]) {
    expect(open(host)).toContain(`can reach ${host} port 8080`);
    expect(open(host)).toContain("--api-key");
  }
});

test("one that only this machine reaches, or that asks for a key, is not", () => {
  for (const host of ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
    expect(open(host)).toBeUndefined();
  expect(exposureWarning({ listen: { host: "0.0.0.0", port: 1 }, apiKeys: ["k"] })).toBeUndefined();
  expect(exposureWarning({ listen: { socketPath: "m.sock" }, apiKeys: [] })).toBeUndefined();
});

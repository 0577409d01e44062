import { z } from "zod";
import type { Server } from "../server.ts";
import { okJson } from "./answers.ts";

const Ids = z.strictObject({ tokens: z.array(z.number()) });

/** Token ids of a text, without special tokens unless asked for. */
export async function tokenize(server: Server, content: string, options = {}): Promise<number[]> {
  const response = await server.post("/tokenize", { content, ...options });
  return Ids.parse(await okJson(response)).tokens;
}

// Judges messages as the extension does: one JSON array [kind, text] a line in, one answer a line out.

import { createInterface } from "node:readline";
import { check } from "../../extension/protocol.js";

for await (const line of createInterface({ input: process.stdin })) {
  const [kind, text] = JSON.parse(line);
  process.stdout.write(`${JSON.stringify(check(kind, JSON.parse(text)))}\n`);
}

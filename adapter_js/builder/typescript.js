/**
 * Loads TypeScript where Node cannot do so itself: before 22.18. A module loader hook, as
 * `node --experimental-loader` takes it.
 */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { transform } from "esbuild";

const TYPESCRIPT = /^file:.*\.ts$/;

/** @type {import("node:module").LoadHook} */
export async function load(url, context, nextLoad) {
  if (!TYPESCRIPT.test(url)) {
    return nextLoad(url, context);
  }
  const file = fileURLToPath(url);
  const { code } = await transform(await readFile(file, "utf8"), {
    loader: "ts",
    sourcefile: file,
    sourcemap: "inline",
    target: "node20",
  });
  return { format: "module", source: code, shortCircuit: true };
}

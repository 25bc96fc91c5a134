/**
 * A client of the official TypeScript SDK that follows instructions, line by line.
 *
 *     node client.mjs v1|v2 legacy|auto TARGET
 *
 * TARGET is the server's URL, or its command as a JSON list. Each line on stdin is a JSON list of
 * calls to make concurrently; the answer is one line with the list of their outcomes. The first line on
 * stdout says that the client is connected. It ends with stdin.
 */
import { createInterface } from "node:readline";

/**
 * @typedef {object} Call
 * @property {string} name
 * @property {Record<string, unknown>} arguments
 * @property {{timeout?: number, resetTimeoutOnProgress?: boolean, maxTotalTimeout?: number}} options
 * @property {boolean} abort - Abort it when its first report comes.
 *
 * @typedef {object} Outcome
 * @property {unknown} [result]
 * @property {{code: unknown, message: string}} [error]
 * @property {unknown[]} reports
 */

const SDKS = {
  v1: async () => ({
    ...(await import("@modelcontextprotocol/sdk/client/index.js")),
    ...(await import("@modelcontextprotocol/sdk/client/stdio.js")),
    ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
  }),
  v2: async () => ({
    ...(await import("@modelcontextprotocol/client")),
    ...(await import("@modelcontextprotocol/client/stdio")),
  }),
};

/** @param {string[]} argv */
async function connect([version = "", era, target = ""]) {
  const sdk = await SDKS[/** @type {keyof typeof SDKS} */ (version)]();
  const mode = /** @type {"legacy" | "auto"} */ (era);
  const client = new sdk.Client(
    { name: `e2e-${version}`, version: "1" },
    { versionNegotiation: { mode } }, // v1 knows one era, and does not look at it
  );
  if (target.startsWith("http")) {
    await client.connect(new sdk.StreamableHTTPClientTransport(new URL(target)));
  } else {
    const [command, ...args] = JSON.parse(target);
    const env = /** @type {Record<string, string>} */ (process.env);
    await client.connect(new sdk.StdioClientTransport({ command, args, env, stderr: "ignore" }));
  }
  return client;
}

/**
 * @param {any} client - Of either version; they differ in the parameters of `callTool`.
 * @param {boolean} takesSchema
 * @param {Call} call
 * @returns {Promise<Outcome>}
 */
async function make(client, takesSchema, call) {
  const { name, arguments: given, options, abort } = call;
  const aborted = new AbortController();
  /** @type {unknown[]} */
  const reports = [];
  const onprogress = (/** @type {unknown} */ report) => {
    reports.push(report);
    if (abort) aborted.abort("enough");
  };
  const params = { name, arguments: given };
  const all = { ...options, onprogress, signal: aborted.signal };
  try {
    const result = await (takesSchema
      ? client.callTool(params, undefined, all)
      : client.callTool(params, all));
    return { result, reports };
  } catch (error) {
    const { code, message } = /** @type {Error & {code: unknown}} */ (error);
    return { error: { code, message: message ?? String(error) }, reports };
  }
}

const client = await connect(process.argv.slice(2));
const takesSchema = process.argv[2] === "v1";
const say = (/** @type {unknown} */ value) => process.stdout.write(`${JSON.stringify(value)}\n`);
const { tools } = await client.listTools();
say({ tools: tools.map((/** @type {{name: string}} */ tool) => tool.name) });
for await (const line of createInterface({ input: process.stdin })) {
  /** @type {Call[]} */
  const calls = JSON.parse(line);
  const outcomes = await Promise.all(calls.map((call) => make(client, takesSchema, call)));
  say({ outcomes });
}
await client.close();

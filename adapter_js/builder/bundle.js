/**
 * Bundles a plugin's sources with esbuild: once for the page, and once to describe it here.
 */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { isBuiltin } from "node:module";
import { extname, relative, resolve, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import * as esbuild from "esbuild";

/** @import { BuildContext, Loader, Message, Plugin } from "esbuild" */

/**
 * An error in the sources, as reported by esbuild.
 * @typedef {object} SourceProblem
 * @property {string} file relative to the plugin's directory
 * @property {number | null} line from 1
 * @property {string} why
 */

/**
 * @typedef {object} Sources
 * @property {string} root the plugin's directory, absolute
 * @property {string} entry relative to it
 * @property {string | null} preScript relative to it
 * @property {string} plugin its id
 */

const HERE = fileURLToPath(new URL(".", import.meta.url));
const TOOLS = resolve(HERE, "..");
const SDK = resolve(TOOLS, "sdk");
/** A placeholder of the same length for the adapter's own hash, until that is known. */
const HASH_PLACEHOLDER = "opentabs:adapter-hash".padEnd(64, "-");
/** The advice for the author of a module without a plugin. */
export const EXPORT = "write export default new MyPlugin(), a class that extends OpenTabsPlugin";
const TOP_LEVEL_AWAIT =
  "uses await at the top level of a module, but a plugin is one classic script, which cannot wait; " +
  "await in isReady(), in a hook or in handle()";
const STYLES =
  'A plugin cannot load style sheets; import its text, with { type: "text" }, and write that into ' +
  "a <style> element of the page";
const URLS =
  "A plugin is one script, which imports nothing from a URL; install the package with npm, or copy it";
const AS_TEXT = 'import it with { type: "text" }, or with { type: "bytes" }';
/** What npm accepts as a name; a path alias, such as `@/lib`, is none. */
const PACKAGE = /^(?:@[a-z0-9][\w.-]*\/)?[a-z0-9][\w.-]*$/;
const ALIAS = 'import a file of the plugin by its relative path, or see "paths" of tsconfig.json';
const ADAPTER_FILE = "adapter.iife.js";
const PRE_SCRIPT_FILE = "pre-script.iife.js";

/** How esbuild defines a module's exports; and the same, of the same length, without `for…in`. */
const EXPORTS =
  "(target,all)=>{for(var name in all)__defProp(target,name,{get:all[name],enumerable:true})}";
const OWN_EXPORTS =
  "(to,all)=>{for(let n of Object.keys(all))__defProp(to,n,{get:all[n],enumerable:true})}";

const FOUND = Symbol("zod is already being resolved");

/** The parts of the SDK that can be imported besides its main file. */
const PARTS = /** @type {Record<string, string>} */ ({
  register: "register.js",
  "pre-script": "pre_script.js",
});

/** Zod's compiled validators violate Trusted Types, which a page may require. Runs before schemas. */
const PRELUDE = 'import { config } from "zod"; config({ jitless: true });';

/**
 * Keeps the esbuild contexts, so that the next build reads only what has changed.
 */
export class Bundler {
  /** @type {Promise<BuildContext[]>} */
  #contexts;

  /** @param {Sources} sources */
  constructor({ root, entry, preScript, plugin }) {
    const from = JSON.stringify(`./${entry.split(sep).join("/")}`);
    const define = { __OPENTABS_PLUGIN__: JSON.stringify(plugin) };
    const common = /** @type {const} */ ({
      bundle: true,
      write: false,
      outdir: "dist",
      absWorkingDir: root,
      platform: "browser",
      target: "chrome120",
      charset: "utf8",
      logLevel: "silent",
      metafile: true,
    });
    // Names are kept, so that stack traces in the page are readable. Syntax is kept, because merged
    // statements and inlined constants would point at the wrong line; it costs 4 % of the size.
    const page = /** @type {const} */ ({
      ...common,
      format: "iife",
      sourcemap: "linked",
      minifyWhitespace: true,
      legalComments: "eof",
      define,
    });
    this.root = root;
    this.#contexts = Promise.all([
      esbuild.context({
        ...page,
        entryPoints: { [ADAPTER_FILE.replace(/\.js$/, "")]: "opentabs:adapter" },
        plugins: [
          entries(root, {
            prelude: PRELUDE,
            adapter: `
              import "opentabs:prelude";
              import plugin from ${from};
              import { register } from "@opentabs-dev/plugin-sdk/register";
              register(plugin, ${JSON.stringify({ name: plugin, hash: HASH_PLACEHOLDER })});`,
          }),
          packages(resolve(SDK, "index.js"), { bundleZod: true }),
        ],
      }),
      esbuild.context({
        ...common,
        format: "esm",
        sourcemap: "inline",
        sourceRoot: `${resolve(root, "dist")}/`, // it runs from another directory
        entryPoints: { describe: "opentabs:describe" },
        define,
        plugins: [
          entries(root, {
            describe: `
              import * as module from ${from};
              import * as zod from "zod";
              export { calls } from "@opentabs-dev/plugin-sdk";
              export { module, zod };`,
          }),
          packages(resolve(HERE, "recording-sdk.js"), { bundleZod: false }),
        ],
      }),
      ...(preScript === null
        ? []
        : [
            esbuild.context({
              ...page,
              entryPoints: { [PRE_SCRIPT_FILE.replace(/\.js$/, "")]: preScript },
              plugins: [packages(resolve(SDK, "index.js"), { bundleZod: true })],
            }),
          ]),
    ]);
  }

  /**
   * @returns {Promise<{problems: SourceProblem[], files: Record<string, string>, describe: string, warnings: SourceProblem[]}>}
   *   `files` by their names in `dist`
   */
  async build() {
    const results = await Promise.all(
      (await this.#contexts).map((context) =>
        context.rebuild().catch((error) => {
          if (Array.isArray(error?.errors)) {
            return /** @type {esbuild.BuildFailure} */ (error);
          }
          throw error;
        }),
      ),
    );
    /** @type {Record<string, string>} */
    const files = {};
    let describe = "";
    for (const result of results) {
      for (const file of ("outputFiles" in result && result.outputFiles) || []) {
        const name = relative(resolve(this.root, "dist"), file.path);
        if (name === "describe.js") {
          describe = file.text;
        } else {
          files[name] = name.endsWith(".map")
            ? this.#withStableSources(file.text)
            : withOwnExports(file.text);
        }
      }
    }
    return {
      problems: unique(results.flatMap((result) => result.errors.map(this.#toProblem))),
      warnings: unique(results.flatMap((result) => result.warnings.map(this.#toProblem))),
      files,
      describe,
    };
  }

  /**
   * @param {Message} message
   * @returns {SourceProblem}
   */
  #toProblem = ({ text, location }) => {
    if (location === null || location.file.startsWith("opentabs:")) {
      const why = text.endsWith('for import "default"')
        ? `has no default export of a plugin; ${EXPORT}`
        : text;
      return { file: "", line: null, why };
    }
    return { file: location.file, line: location.line, why: explain(this.root, text) };
  };

  async dispose() {
    await Promise.all((await this.#contexts).map((context) => context.dispose()));
  }

  /**
   * Makes a source map independent of where the plugin and these tools are installed.
   * @param {string} text
   */
  #withStableSources(text) {
    const map = JSON.parse(text);
    const dist = resolve(this.root, "dist");
    map.sources = map.sources.map((/** @type {string} */ source) => {
      const inside = source.split(/(?:^|\/)node_modules\//).pop();
      if (inside !== source) {
        return inside;
      }
      const path = resolve(dist, source);
      return path.startsWith(SDK + sep)
        ? `@opentabs-dev/plugin-sdk/${relative(SDK, path).split(sep).join("/")}`
        : source;
    });
    return `${JSON.stringify(map)}\n`;
  }
}

/**
 * Provides virtual modules, imported as `opentabs:NAME`.
 * @param {string} root the directory in which their imports are resolved
 * @param {Record<string, string>} modules
 * @returns {Plugin}
 */
function entries(root, modules) {
  return {
    name: "entries",
    setup(build) {
      build.onResolve({ filter: /^opentabs:/ }, ({ path }) => ({
        path: path.slice("opentabs:".length),
        namespace: "opentabs",
      }));
      build.onLoad({ filter: /.*/, namespace: "opentabs" }, ({ path }) => ({
        contents: modules[path] ?? "",
        resolveDir: root,
      }));
    },
  };
}

/**
 * Resolves the two packages that every plugin imports, rewrites imports of Zod, and refuses style
 * sheets, for which esbuild would write files that nothing loads.
 * @param {string} sdk the SDK's main file, or its substitute
 * @param {{bundleZod: boolean}} options whether to bundle Zod or import it from where it is
 * @returns {Plugin}
 */
function packages(sdk, { bundleZod }) {
  return {
    name: "packages",
    setup(build) {
      build.onResolve({ filter: /^@opentabs-dev\/plugin-sdk(\/|$)/ }, ({ path }) => {
        const part = path.slice("@opentabs-dev/plugin-sdk".length + 1);
        if (part === "") {
          return { path: sdk, sideEffects: false };
        }
        const file = PARTS[part];
        return file === undefined
          ? {
              errors: [
                { text: `The SDK has no "${part}"; import from "@opentabs-dev/plugin-sdk"` },
              ],
            }
          : { path: resolve(SDK, file), sideEffects: false };
      });
      build.onResolve({ filter: /\.css$/ }, ({ path, importer, with: attributes }) => {
        if (attributes.type !== undefined) {
          return null;
        }
        const why = [{ text: STYLES }];
        // What a package imports is not the author's to change, and its code may work without.
        return isOfPackage(importer)
          ? { path, namespace: "style", warnings: why }
          : { errors: why };
      });
      build.onResolve({ filter: /^(?:https?:)?\/\// }, ({ kind }) =>
        kind === "dynamic-import" ? null : { errors: [{ text: URLS }] },
      );
      build.onLoad({ filter: /.*/, namespace: "style" }, () => ({ contents: "" }));
      build.onResolve(
        { filter: /^zod(\/|$)/ },
        async ({ path, resolveDir, pluginData, ...from }) => {
          if (pluginData === FOUND) {
            return null;
          }
          const { importer, namespace } = from;
          const isRequired = from.kind === "require-call";
          if (isRequired && !bundleZod) {
            return { path, namespace: "required", pluginData: resolveDir }; // cannot be external
          }
          // The plugin's own Zod, or else ours; where it is required, too, what an import finds, so
          // that there is one of it.
          const kind = isRequired ? "import-statement" : from.kind;
          const again = { kind, importer, namespace, pluginData: FOUND };
          const own = await build.resolve(path, { ...again, resolveDir });
          const found =
            own.errors.length === 0
              ? own
              : await build.resolve(path, { ...again, resolveDir: TOOLS });
          return bundleZod || found.errors.length > 0
            ? found
            : { path: pathToFileURL(found.path).href, external: true };
        },
      );
      build.onLoad({ filter: /.*/, namespace: "required" }, ({ path, pluginData }) => ({
        contents: `export * from ${JSON.stringify(path)};`,
        resolveDir: pluginData,
      }));
      build.onLoad({ filter: /\.[cm]?[jt]sx?$/ }, async ({ path }) => {
        if (path.includes(`${sep}node_modules${sep}zod${sep}`)) {
          return { contents: withOwnKeys(await readFile(path, "utf8")), loader: loaderOf(path) };
        }
        if (isOfPackage(path) || path.startsWith(SDK + sep)) {
          return null;
        }
        return { contents: asNamespace(await readFile(path, "utf8")), loader: loaderOf(path) };
      });
    },
  };
}

/** @param {string} path */
function isOfPackage(path) {
  return path.includes(`${sep}node_modules${sep}`);
}

/**
 * `import { z }` bundles all of Zod, including its languages: 580 KB. `import * as z` is equivalent
 * for its users, and bundles only what is used: 120 KB. So is `import z`. Every line keeps its number.
 * @param {string} source
 */
function asNamespace(source) {
  return source.replace(
    /^([ \t]*)import\b\s*(?:(?!type\b)(\w+)\b\s*)?(?:,\s*)?(?:\{([^{}]*)\}\s*)?from\s*(["'])(zod(?:\/v4)?)\4/gm,
    (found, indent, byDefault, list = "", quote, path, at) => {
      const from = `from ${quote}${path}${quote}`;
      const names = byDefault === undefined ? [] : [byDefault];
      const others = [];
      let lines = ""; // the ends of lines that go with what is taken out
      for (const part of list.split(",")) {
        const name = /^\s*z(?:\s+as\s+(\w+))?\s*$/.exec(part);
        if (name === null) {
          others.push(lines + part);
          lines = "";
        } else {
          names.push(name[1] ?? "z");
          lines += part.replace(/[^\n]/g, "");
        }
      }
      if (names.length === 0 || isInTemplate(source.slice(0, at))) {
        return found;
      }
      const imports = names.map((name) => `import * as ${name} ${from}`).join("; ");
      const rest = others.join(",") + lines;
      return rest.trim() === ""
        ? `${indent}${found.replace(/[^\n]/g, "")}${imports}`
        : `${indent}${imports}; import {${rest}} ${from}`;
    },
  );
}

/**
 * Whether code may be within a template literal, which may hold anything.
 * @param {string} before the code before it
 */
function isInTemplate(before) {
  return before
    .replace(/\/\/.*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/g, "")
    .includes("`");
}

/**
 * Makes Zod visit only an object's own members. `for…in` also visits what the page, or an old library
 * in it, has added to `Object.prototype`.
 * @param {string} source of a module of Zod
 */
function withOwnKeys(source) {
  return source.replace(
    /\bfor \((const|let|var) (\w+) in ([\w.]+)\)/g,
    "for ($1 $2 of Object.keys($3))",
  );
}

/**
 * Does the same for the exports of modules. The text keeps its length, so that the source map stays
 * right.
 * @param {string} code a minified bundle
 */
function withOwnExports(code) {
  return code.replace(EXPORTS, OWN_EXPORTS.padEnd(EXPORTS.length));
}

/**
 * @param {string} path
 * @returns {Loader}
 */
function loaderOf(path) {
  const kind = extname(path).replace(/^\.[cm]?/, "");
  return /** @type {Loader} */ (kind);
}

/**
 * Says what to do about an error of esbuild, and names packages instead of where they are installed.
 * @param {string} root
 * @param {string} text
 */
function explain(root, text) {
  if (text.startsWith("Top-level await")) {
    return TOP_LEVEL_AWAIT;
  }
  const wanted = /^Could not resolve "([^"./][^"]*)"$/.exec(text)?.[1];
  if (wanted !== undefined) {
    if (isBuiltin(wanted)) {
      return `${text}, which only Node has; a plugin runs in a page`;
    }
    const [name] = /^(?:@[^/]*\/)?[^/]+/.exec(wanted) ?? [wanted];
    const isFile = !PACKAGE.test(name) || existsSync(resolve(root, wanted));
    return `${text}; ${isFile ? ALIAS : `install it: npm install ${name}`}`;
  }
  if (text.startsWith("No loader is configured")) {
    return `${text}; ${AS_TEXT}`;
  }
  const named = text.replace(/(?<= in )"([^"]+)"/, (_, path) => `"${nameOf(resolve(root, path))}"`);
  const missing = /^No matching export in (.+) for import (".+")$/.exec(named);
  return missing === null ? named : `${missing[1]} does not export ${missing[2]}`;

  /** @param {string} file absolute */
  function nameOf(file) {
    const isSdk = file.startsWith(SDK + sep) || file.startsWith(HERE);
    const inside = file.split(`${sep}node_modules${sep}`);
    return isSdk ? "@opentabs-dev/plugin-sdk" : inside[1] ? inside.pop() : relative(root, file);
  }
}

/**
 * @param {SourceProblem[]} problems the errors of several bundles of one source
 * @returns {SourceProblem[]}
 */
function unique(problems) {
  const seen = new Map(problems.map((problem) => [JSON.stringify(problem), problem]));
  return [...seen.values()];
}

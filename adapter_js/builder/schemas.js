/**
 * Converts a tool's Zod schemas to JSON Schema, and finds what JSON Schema cannot express.
 */

/**
 * The parts of a Zod 4 schema that are read here; other builds of Zod have other classes.
 * @typedef {object} Schema
 * @property {{def: any}} _zod
 * @property {(value: unknown) => unknown} safeParse
 */

/** @typedef {{zodSchema: any, jsonSchema: any}} Converted a nested schema that Zod has converted */

/**
 * @typedef {object} SchemaProblem
 * @property {string} path as in `input.channel.name`
 * @property {string} why what is wrong, and what to write instead
 */

const PROBES = 12; // values tried on each schema that has a callback
const DEPTH = 6; // of the generated values

/** Kinds of schema without a JSON value, or whose value does not survive conversion to JSON. */
const NOT_EXPRESSIBLE = /** @type {Record<string, string>} */ ({
  transform: "uses .transform()",
  promise:
    "uses z.promise(), and no JSON value is a promise; write the schema of the resolved value",
  date: "uses z.date(), and JSON has no dates; write z.iso.datetime() and call new Date() in handle()",
  bigint: "uses z.bigint(), and JSON has no such numbers; write z.string() or z.number()",
  symbol: "uses z.symbol(), which JSON has none of; leave it out",
  undefined: "uses z.undefined(), which JSON has none of; write .optional(), or z.null()",
  void: "uses z.void(), and a tool returns a JSON value; write z.null() or z.object({})",
  nan: "uses z.nan(), and JSON has no NaN; write z.null()",
  map: "uses z.map(), and JSON has no maps; write z.record(z.string(), …)",
  set: "uses z.set(), and JSON has no sets; write z.array(…)",
  file: "uses z.file(), and JSON has no files; write z.base64() or the file's URL",
  function: "uses z.function(), and JSON has no functions; leave it out",
  custom:
    "uses z.custom() or z.instanceof(), which JSON Schema cannot express; write what the value holds, as in z.object({…})",
});

/** The flags without which a regular expression matches other texts; JSON Schema has no flags. */
const FLAGS = /[ims]/;

/** What `z.coerce` sensibly makes another of. */
const SCALARS = ["string", "number", "boolean", "null"];

/** A step to any item, or to one. */
const ITEM = /^\[\d*\]$/;

const NO_SCHEMA = "is not a schema of Zod 4";

const CONVERT = {
  input:
    "JSON Schema cannot express its result; write the schema of what the caller sends, and convert it in handle()",
  output:
    "JSON Schema cannot express its result; write the schema of what the tool returns, and convert it in handle()",
};

/**
 * @param {any} zod the plugin's own Zod
 * @param {unknown} schema
 * @param {"input" | "output"} side
 * @returns {{json: object | null, problems: SchemaProblem[]}} `json` is null if there are problems
 */
export function toJsonSchema(zod, schema, side) {
  if (!isSchema(schema)) {
    const why = schema === undefined ? "is missing" : NO_SCHEMA;
    const what = side === "input" ? "z.object({})" : "z.object({ ok: z.boolean() })";
    return { json: null, problems: [{ path: side, why: `${why}; write one, as in ${what}` }] };
  }
  /** @type {SchemaProblem[]} */
  const problems = [];
  inspect(schema, side, side, problems, new Set());
  if (problems.length > 0) {
    return { json: null, problems };
  }
  try {
    // A handler's return value is sent unparsed. So both sides use the "input" form of the schema,
    // in which unnamed members are allowed and members with defaults may be absent.
    const refuse = side === "input" ? refuseUnknown(schema) : () => undefined;
    /** @param {Converted} found */
    const override = (found) => {
      refuse(found);
      dropOverwritten(found, zod);
      dropFlagged(found);
      if (side === "input") {
        allowCoerced(found);
      }
      allowAbsent(found);
    };
    const json = JSON.parse(JSON.stringify(zod.toJSONSchema(schema, { io: "input", override })));
    if (side === "input" && json.type !== "object") {
      const why = "is not an object, but a tool's arguments are named; wrap it in z.object({…})";
      problems.push({ path: side, why });
    }
    inspectReferences(json, side, problems);
    return { json: problems.length > 0 ? null : json, problems };
  } catch (error) {
    const why = `cannot be written as JSON Schema: ${messageOf(error)}; use another kind of schema`;
    return { json: null, problems: [{ path: side, why }] };
  }
}

/**
 * Makes each object of an input reject additional members, because Zod drops them and a misspelled
 * one would go unnoticed. Objects at one place in both parts of an intersection accept each other's
 * members.
 * @param {Schema} root
 * @returns {(found: Converted) => void}
 */
function refuseUnknown(root) {
  /** @type {Set<Schema>} */
  const parts = new Set();
  for (const { _zod } of within(root, () => true)) {
    if (_zod.def.type === "intersection") {
      collectShared(_zod.def.left, _zod.def.right, parts, new Map());
    }
  }
  return ({ zodSchema, jsonSchema }) => {
    const { def } = zodSchema._zod;
    if (def.type === "object" && def.catchall === undefined && !parts.has(zodSchema)) {
      jsonSchema.additionalProperties = false;
    }
  };
}

/**
 * Collects the schemas of the places that two schemas of one value both describe.
 * @param {Schema} left
 * @param {Schema} right
 * @param {Set<Schema>} parts
 * @param {Map<Schema, Set<Schema>>} seen pairs: schemas may contain themselves
 */
function collectShared(left, right, parts, seen) {
  const known = seen.get(left) ?? new Set();
  if (known.has(right)) {
    return;
  }
  seen.set(left, known.add(right));
  /** @param {Schema} side */
  const membersOf = (side) =>
    [...within(side, (step) => step === "")].flatMap((schema) => {
      parts.add(schema);
      return children(schema._zod.def).filter(([step]) => step !== "");
    });
  const others = membersOf(right);
  for (const [step, child] of membersOf(left)) {
    for (const [other, its] of others) {
      if (overlaps(step, other)) {
        collectShared(child, its, parts, seen);
      }
    }
  }
}

/**
 * @param {string} step of `children`
 * @param {string} other
 */
function overlaps(step, other) {
  const isItem = ITEM.test(step);
  const any = isItem ? "[]" : ".*";
  return isItem === ITEM.test(other) && (step === other || step === any || other === any);
}

/**
 * Leaves out the patterns that would match other texts without their flags, and so refuse valid
 * values. Like a `.refine()`, they are checked only in the page.
 * @param {Converted} found
 */
function dropFlagged({ zodSchema, jsonSchema }) {
  const { def } = zodSchema._zod;
  const checks = [def, ...(def.checks ?? []).map((/** @type {Schema} */ each) => each._zod.def)];
  const flagged = checks.flatMap(({ pattern }) =>
    pattern instanceof RegExp && FLAGS.test(pattern.flags) ? [pattern.source] : [],
  );
  if (flagged.length === 0) {
    return;
  }
  if (flagged.includes(jsonSchema.pattern)) {
    delete jsonSchema.pattern;
  }
  if (jsonSchema.allOf !== undefined) {
    jsonSchema.allOf = jsonSchema.allOf.filter(
      (/** @type {{pattern?: string}} */ each) => !flagged.includes(each.pattern ?? ""),
    );
  }
}

/**
 * Leaves out the checks of a value that the schema changes first, as `.trim()` does. The server would
 * make them of the value before, so they are made only in the page.
 * @param {Converted} found
 * @param {any} zod
 */
function dropOverwritten({ zodSchema, jsonSchema }, zod) {
  const { def } = zodSchema._zod;
  const { checks = [] } = def;
  const first = checks.findIndex((/** @type {Schema} */ it) => it._zod.def.check === "overwrite");
  if (first === -1) {
    return;
  }
  const [all, before] = [checks, checks.slice(0, first)].map((some) =>
    zod.toJSONSchema(zodSchema.clone({ ...def, checks: some }), { io: "input" }),
  );
  for (const keyword of Object.keys({ ...all, ...before })) {
    if (!(keyword in before)) {
      delete jsonSchema[keyword];
    } else if (JSON.stringify(all[keyword]) !== JSON.stringify(before[keyword])) {
      jsonSchema[keyword] = before[keyword];
    }
  }
}

/**
 * Lets a value that Zod coerces be any that it can sensibly coerce. What it becomes comes first.
 * @param {Converted} found
 */
function allowCoerced({ zodSchema, jsonSchema }) {
  if (zodSchema._zod.def.coerce === true && typeof jsonSchema.type === "string") {
    const { type } = jsonSchema;
    const result = type === "integer" ? "number" : type;
    jsonSchema.type = [type, ...SCALARS.filter((each) => each !== result)];
  }
}

/**
 * Lets the members with a `.catch()` be absent, as those with defaults may be: Zod replaces an absent
 * one too, but says that it is required.
 * @param {Converted} found
 */
function allowAbsent({ zodSchema, jsonSchema }) {
  const { def } = zodSchema._zod;
  if (def.type !== "object" || jsonSchema.required === undefined) {
    return;
  }
  jsonSchema.required = jsonSchema.required.filter(
    (/** @type {string} */ name) => def.shape[name]._zod.def.type !== "catch",
  );
  if (jsonSchema.required.length === 0) {
    delete jsonSchema.required;
  }
}

/**
 * @param {Schema} schema
 * @param {(step: string) => boolean} follows whether to take a step of `children`
 * @param {Set<Schema>} [found]
 * @returns {Set<Schema>} the schema and those that these steps lead to
 */
function within(schema, follows, found = new Set()) {
  if (!found.has(schema)) {
    found.add(schema);
    for (const [step, child] of children(schema._zod.def)) {
      if (follows(step)) {
        within(child, follows, found);
      }
    }
  }
  return found;
}

/**
 * Records each nested schema that JSON Schema cannot express, or whose callback throws, by the path
 * of its value.
 * @param {unknown} schema
 * @param {string} path
 * @param {"input" | "output"} side
 * @param {SchemaProblem[]} problems
 * @param {Set<Schema>} seen schemas may contain themselves
 */
function inspect(schema, path, side, problems, seen) {
  if (!isSchema(schema)) {
    const why = schema === undefined ? "is undefined, as an import in a circle is" : NO_SCHEMA;
    problems.push({ path, why: `${why}; write one, as in z.string()` });
    return;
  }
  if (seen.has(schema)) {
    return;
  }
  seen.add(schema);
  const { def } = schema._zod;
  const before = problems.length;
  if (def.type === "pipe") {
    problems.push({ path, why: `uses ${pipeName(def)}, and ${CONVERT[side]}` });
    return;
  }
  const why = NOT_EXPRESSIBLE[def.type];
  if (why !== undefined) {
    problems.push({ path, why });
    return;
  }
  if (def.type === "literal" && def.values.some((/** @type {unknown} */ each) => !isJson(each))) {
    const why = "has a literal that JSON cannot express; use strings, numbers, booleans or null";
    problems.push({ path, why });
    return;
  }
  let nested;
  try {
    nested = children(def);
  } catch (error) {
    const why = `cannot be read (${messageOf(error)}); a getter, or the function of a z.lazy(), throws`;
    problems.push({ path, why });
    return;
  }
  for (const [step, child] of nested) {
    inspect(child, path + step, side, problems, seen);
  }
  if (problems.length === before && hasCallback(def)) {
    probe(schema, path, problems);
  }
}

/**
 * Records references to other documents, because readers of the schema may not follow them.
 * @param {any} json
 * @param {string} path
 * @param {SchemaProblem[]} problems
 */
function inspectReferences(json, path, problems) {
  if (typeof json !== "object" || json === null) {
    return;
  }
  for (const [key, value] of Object.entries(json)) {
    if (/^\$(dynamic)?ref$/i.test(key) && typeof value === "string" && !value.startsWith("#")) {
      const why = `refers to ${JSON.stringify(value)}, which is another document; write that schema here`;
      problems.push({ path, why });
    } else if (key === "properties" || key === "$defs") {
      for (const [name, child] of Object.entries(value ?? {})) {
        inspectReferences(child, path + member(name), problems);
      }
    } else {
      inspectReferences(value, key === "items" ? `${path}[]` : path, problems);
    }
  }
}

/** @param {any} def the definition of a pipe */
function pipeName(def) {
  if (def.transform !== undefined && def.reverseTransform !== undefined) {
    return "a codec, such as z.stringbool()";
  }
  if (def.in?._zod?.def.type === "transform") {
    return "z.preprocess()";
  }
  return def.out?._zod?.def.type === "transform" ? ".transform()" : ".pipe()";
}

/**
 * @param {any} def
 * @returns {[step: string, child: Schema][]} in a plugin without types, any of them may be no schema
 */
function children(def) {
  switch (def.type) {
    case "object":
      return [
        .../** @type {[string, Schema][]} */ (Object.entries(def.shape)).map(
          ([key, child]) => /** @type {[string, Schema]} */ ([member(key), child]),
        ),
        ...(def.catchall ? [/** @type {[string, Schema]} */ ([".*", def.catchall])] : []),
      ].filter(([, child]) => child?._zod?.def.type !== "never");
    case "array":
      return [["[]", def.element]];
    case "tuple":
      return [
        ...def.items.map((/** @type {Schema} */ item, /** @type {number} */ i) => [`[${i}]`, item]),
        ...(def.rest ? [["[]", def.rest]] : []),
      ];
    case "record":
      return [
        [".*", def.keyType],
        [".*", def.valueType],
      ];
    case "union":
      return def.options.map((/** @type {Schema} */ option) => ["", option]);
    case "intersection":
      return [
        ["", def.left],
        ["", def.right],
      ];
    case "lazy":
      return [["", def.getter()]];
    case "template_literal":
      return [];
    default:
      return "innerType" in def ? [["", def.innerType]] : [];
  }
}

/** @param {string} key */
function member(key) {
  return /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

/** @param {any} def */
function hasCallback(def) {
  return def.checks?.some((/** @type {Schema} */ check) => check._zod.def.check === "custom");
}

/**
 * Zod calls a `.refine()` even if an earlier check of the value failed. A callback that relies on
 * that check, as in `z.url().refine((url) => new URL(url).host)`, then throws in the middle of a
 * call.
 * @param {Schema} schema
 * @param {string} path
 * @param {SchemaProblem[]} problems
 */
function probe(schema, path, problems) {
  for (let variant = 0; variant < PROBES; variant++) {
    const value = sample(schema, variant, DEPTH);
    try {
      schema.safeParse(value);
    } catch (error) {
      // Globals of a page are not missing in the page, and promises are awaited in the page.
      if (error instanceof ReferenceError || /Async/.test(nameOf(error))) {
        continue;
      }
      const given = JSON.stringify(value)?.slice(0, 60) ?? "undefined";
      const why =
        `has a .refine() that throws when it is called with ${given} (${messageOf(error)}), ` +
        "and Zod calls it with values that failed an earlier check; return false for them instead";
      problems.push({ path, why });
      return;
    }
  }
}

/**
 * Generates a value of the right type that may fail the checks on it.
 * @param {Schema} schema
 * @param {number} variant
 * @param {number} depth
 * @returns {unknown}
 */
function sample(schema, variant, depth) {
  const { def } = schema._zod;
  if (depth === 0) {
    return undefined;
  }
  const strings = [
    "",
    "x",
    "not valid",
    "0",
    "-1",
    "null",
    "{",
    "[]",
    "https://",
    "a@b",
    " ",
    "é😀".repeat(200),
  ];
  const numbers = [0, -1, 1.5, 1, 1e21, -1e21, 2 ** 53, 1e-7];
  /** @param {unknown[]} list */
  const pick = (list) => list[variant % list.length];
  switch (def.type) {
    case "string":
    case "template_literal":
      return pick(strings);
    case "number":
    case "int":
      return pick(numbers);
    case "boolean":
      return variant % 2 === 1;
    case "null":
      return null;
    case "enum":
      return pick(Object.values(def.entries));
    case "literal":
      return pick(def.values);
    case "object": {
      const entries = /** @type {[string, Schema][]} */ (Object.entries(def.shape));
      return Object.fromEntries(
        entries.map(([key, child]) => [key, sample(child, variant, depth - 1)]),
      );
    }
    case "array":
      return Array.from({ length: variant % 3 }, (_, i) =>
        sample(def.element, variant + i, depth - 1),
      );
    case "tuple":
      return def.items.map((/** @type {Schema} */ item) => sample(item, variant, depth - 1));
    case "record":
      return variant % 2 === 0 ? {} : { x: sample(def.valueType, variant, depth - 1) };
    case "union":
      return sample(
        /** @type {Schema} */ (pick(def.options)),
        Math.floor(variant / def.options.length),
        depth,
      );
    case "intersection":
      return Object.assign(
        {},
        sample(def.left, variant, depth - 1),
        sample(def.right, variant, depth - 1),
      );
    case "optional":
      return variant % 4 === 3 ? undefined : sample(def.innerType, variant, depth);
    case "nullable":
      return variant % 4 === 3 ? null : sample(def.innerType, variant, depth);
    case "lazy":
      return sample(def.getter(), variant, depth - 1);
    default:
      return isSchema(def.innerType) ? sample(def.innerType, variant, depth) : pick(strings);
  }
}

/**
 * @param {any} value
 * @returns {value is Schema}
 */
function isSchema(value) {
  return typeof value?._zod?.def?.type === "string" && typeof value.safeParse === "function";
}

/** @param {unknown} value */
function isJson(value) {
  return value === null || ["string", "number", "boolean"].includes(typeof value);
}

/** @param {unknown} error */
function nameOf(error) {
  return String(/** @type {any} */ (error)?.constructor?.name);
}

/** @param {unknown} error */
export function messageOf(error) {
  return String(/** @type {any} */ (error)?.message ?? error);
}

/**
 * The protocol between server and extension: its types, and validation of messages.
 *
 * Generated from opentabs_py/core/protocol.py by `make generate`. Do not edit.
 */

/** @typedef {{documentId: string, tabId: number, url: string, title: string, active: boolean, focused: boolean, protected: boolean, calls: string[], plugins: Record<string, PluginState>}} DocumentState */
/** @typedef {{documentId: string, callId: string, seq: number, error: WireError, stamps?: Record<string, number> | null}} ErrorParams */
/** @typedef {{jsonrpc: "2.0", id: number | null, error: RpcError}} ErrorResponse */
/** @typedef {{jsonrpc: "2.0", method: "hello", id: number, params: HelloParams}} Hello */
/** @typedef {{protocolVersion: number, extensionVersion: string, bootId: string, browserId: string, browser: string, time: number, tabIds: number[], documents: DocumentState[], loading?: LoadingTab[], crashed?: number[], fresh?: boolean}} HelloParams */
/** @typedef {{tabId: number, url: string, plugins: string[]}} LoadingTab */
/** @typedef {{level: "debug" | "info" | "warning" | "error", message: string, time: number}} LogEntry */
/** @typedef {{documentId: string, plugin: string, entries: LogEntry[], dropped?: number}} LogParams */
/** @typedef {{callId: string, reason: "tab_closed" | "navigated" | "crashed" | "not_delivered"}} LostParams */
/** @typedef {{jsonrpc: "2.0", method: "page.tools", params: PageToolsParams}} PageTools */
/** @typedef {{documentId: string, tools: RegisteredTool[], leftOut?: number}} PageToolsParams */
/** @typedef {{jsonrpc: "2.0", method: "ping", params: PingParams}} Ping */
/** @typedef {{time: number}} PingParams */
/** @typedef {{jsonrpc: "2.0", method: "plugin.log", params: LogParams}} PluginLog */
/** @typedef {{plugin: string, tabId: number, message: string}} PluginProblem */
/** @typedef {{readiness: "pending" | "ready" | "unavailable" | "missing", reason?: string | null}} PluginState */
/** @typedef {{jsonrpc: "2.0", method: "pong", params: PongParams}} Pong */
/** @typedef {{time: number, pingTime: number}} PongParams */
/** @typedef {{documentId: string, callId: string, reports: ProgressReport[]}} ProgressParams */
/** @typedef {{seq: number, progress?: number | null, total?: number | null, message?: string | null}} ProgressReport */
/** @typedef {{id: number, name: string, title: string, description: string, readOnly: boolean, consequential: boolean, untrustedContent: boolean, inputSchema: Record<string, any>}} RegisteredTool */
/** @typedef {{documentId: string, callId: string, seq: number, value: any, stamps?: Record<string, number> | null}} ResultParams */
/** @typedef {{jsonrpc: "2.0", id: number, result: any}} ResultResponse */
/** @typedef {{code: number, message: string, data?: any}} RpcError */
/** @typedef {{callId: string, stamps: Record<string, number>}} StampParams */
/** @typedef {{documentId: string, callId: string, started: boolean, stack?: string | null}} StoppedParams */
/** @typedef {{jsonrpc: "2.0", method: "tabs.changed", params: TabsParams}} TabsChanged */
/** @typedef {{tabIds: number[], documents: DocumentState[], loading?: LoadingTab[], crashed?: number[]}} TabsParams */
/** @typedef {{jsonrpc: "2.0", method: "tool.error", params: ErrorParams}} ToolErrored */
/** @typedef {{jsonrpc: "2.0", method: "tool.lost", params: LostParams}} ToolLost */
/** @typedef {{jsonrpc: "2.0", method: "tool.progress", params: ProgressParams}} ToolProgress */
/** @typedef {{jsonrpc: "2.0", method: "tool.result", params: ResultParams}} ToolResult */
/** @typedef {{jsonrpc: "2.0", method: "tool.stamps", params: StampParams}} ToolStamps */
/** @typedef {{jsonrpc: "2.0", method: "tool.stopped", params: StoppedParams}} ToolStopped */
/** @typedef {{code: string, message: string, category?: string | null, retryable?: boolean, retryAfterMs?: number | null, started?: boolean, stack?: string | null}} WireError */
/** @typedef {{documentId: string, callId: string, seq: number}} AckParams */
/** @typedef {{jsonrpc: "2.0", method: "activity.changed", params: ActivityParams}} ActivityChanged */
/** @typedef {{running: number, waiting: number}} ActivityParams */
/** @typedef {{documentId: string, callId: string}} AnnounceParams */
/** @typedef {{documentId: string, callId: string, reason: string}} CancelParams */
/** @typedef {{tabId: number}} CloseParams */
/** @typedef {{documentId: string, callId: string, plugin: string, tool: string, input: Record<string, any>, trace?: boolean}} DispatchParams */
/** @typedef {{jsonrpc: "2.0", method: "extension.remove", params: RemoveParams}} ExtensionRemove */
/** @typedef {{serverVersion: string, time: number, messageLimit: number}} HelloResult */
/** @typedef {{jsonrpc: "2.0", id: number, result: HelloResult}} HelloResultResponse */
/** @typedef {{url: string}} OpenParams */
/** @typedef {{name: string, version: string, matches: string[], excludeMatches: string[], file: string, config: Record<string, any>, preScript?: string | null, early?: string[] | null}} PluginSpec */
/** @typedef {{jsonrpc: "2.0", method: "plugins.sync", id: number, params: SyncParams}} PluginsSync */
/** @typedef {{plugin?: string | null}} QueryParams */
/** @typedef {{reason: string}} RemoveParams */
/** @typedef {{documentId: string, callIds: string[]}} SettledParams */
/** @typedef {{plugins: PluginSpec[]}} SyncParams */
/** @typedef {{jsonrpc: "2.0", method: "tabs.close", id: number, params: CloseParams}} TabsClose */
/** @typedef {{jsonrpc: "2.0", method: "tabs.open", id: number, params: OpenParams}} TabsOpen */
/** @typedef {{jsonrpc: "2.0", method: "tabs.query", id: number, params: QueryParams}} TabsQuery */
/** @typedef {{jsonrpc: "2.0", method: "tabs.targets", id: number, params: TargetsParams}} TabsTargets */
/** @typedef {{}} TargetsParams */
/** @typedef {{jsonrpc: "2.0", method: "tool.ack", params: AckParams}} ToolAck */
/** @typedef {{jsonrpc: "2.0", method: "tool.announce", params: AnnounceParams}} ToolAnnounce */
/** @typedef {{jsonrpc: "2.0", method: "tool.cancel", params: CancelParams}} ToolCancel */
/** @typedef {{jsonrpc: "2.0", method: "tool.dispatch", params: DispatchParams}} ToolDispatch */
/** @typedef {{jsonrpc: "2.0", method: "tool.settled", params: SettledParams}} ToolSettled */
/** @typedef {Hello | ToolProgress | ToolResult | ToolErrored | ToolLost | TabsChanged | PageTools | PluginLog | ToolStopped | ToolStamps | Ping | Pong} FromExtension */
/** @typedef {ResultResponse | ErrorResponse} Response */
/** @typedef {{injected: number, problems: PluginProblem[]}} SyncResult */
/** @typedef {PluginsSync | TabsQuery | TabsOpen | TabsClose | TabsTargets | ExtensionRemove | ToolAnnounce | ToolDispatch | ToolAck | ToolSettled | ToolCancel | ActivityChanged | Ping | Pong} ToExtension */
/** @typedef {HelloResultResponse | ErrorResponse} HelloResponse */

export const PROTOCOL_VERSION = 4;
export const SUBPROTOCOL = "opentabs";
export const SECRET_SUBPROTOCOL = "opentabs.secret."; // and the secret
export const CLOSE_REPLACED = 4002; // by a newer connection from the same browser

/** @type {Record<string, any>} */
const definitions = {
  "AckParams": {
    "additionalProperties": false,
    "properties": {
      "documentId": {
        "pattern": "^[0-9a-f]{32}$",
        "type": "string"
      },
      "callId": {
        "pattern": "^[0-9a-f]{32}$",
        "type": "string"
      },
      "seq": {
        "maximum": 9007199254740991,
        "minimum": 0,
        "type": "integer"
      }
    },
    "required": [
      "documentId",
      "callId",
      "seq"
    ],
    "type": "object"
  },
  "ActivityChanged": {
    "additionalProperties": false,
    "properties": {
      "jsonrpc": {
        "const": "2.0",
        "type": "string"
      },
      "method": {
        "const": "activity.changed",
        "type": "string"
      },
      "params": {
        "$ref": "#/$defs/ActivityParams"
      }
    },
    "required": [
      "params"
    ],
    "type": "object"
  },
  "ActivityParams": {
    "additionalProperties": false,
    "properties": {
      "running": {
        "maximum": 9007199254740991,
        "minimum": 0,
        "type": "integer"
      },
      "waiting": {
        "maximum": 9007199254740991,
        "minimum": 0,
        "type": "integer"
      }
    },
    "required": [
      "running",
      "waiting"
    ],
    "type": "object"
  },
  "AnnounceParams": {
    "additionalProperties": false,
    "properties": {
      "documentId": {
        "pattern": "^[0-9a-f]{32}$",
        "type": "string"
      },
      "callId": {
        "pattern": "^[0-9a-f]{32}$",
        "type": "string"
      }
    },
    "required": [
      "documentId",
      "callId"
    ],
    "type": "object"
  },
  "CancelParams": {
    "additionalProperties": false,
    "properties": {
      "documentId": {
        "pattern": "^[0-9a-f]{32}$",
        "type": "string"
      },
      "callId": {
        "pattern": "^[0-9a-f]{32}$",
        "type": "string"
      },
      "reason": {
        "maxLength": 8192,
        "type": "string"
      }
    },
    "required": [
      "documentId",
      "callId",
      "reason"
    ],
    "type": "object"
  },
  "CloseParams": {
    "additionalProperties": false,
    "properties": {
      "tabId": {
        "maximum": 9007199254740991,
        "minimum": 0,
        "type": "integer"
      }
    },
    "required": [
      "tabId"
    ],
    "type": "object"
  },
  "DispatchParams": {
    "additionalProperties": false,
    "properties": {
      "documentId": {
        "pattern": "^[0-9a-f]{32}$",
        "type": "string"
      },
      "callId": {
        "pattern": "^[0-9a-f]{32}$",
        "type": "string"
      },
      "plugin": {
        "maxLength": 256,
        "minLength": 1,
        "type": "string"
      },
      "tool": {
        "maxLength": 256,
        "minLength": 1,
        "type": "string"
      },
      "input": {
        "additionalProperties": true,
        "type": "object"
      },
      "trace": {
        "type": "boolean"
      }
    },
    "required": [
      "documentId",
      "callId",
      "plugin",
      "tool",
      "input"
    ],
    "type": "object"
  },
  "ErrorResponse": {
    "additionalProperties": false,
    "properties": {
      "jsonrpc": {
        "const": "2.0",
        "type": "string"
      },
      "id": {
        "anyOf": [
          {
            "maximum": 9007199254740991,
            "minimum": 0,
            "type": "integer"
          },
          {
            "type": "null"
          }
        ]
      },
      "error": {
        "$ref": "#/$defs/RpcError"
      }
    },
    "required": [
      "id",
      "error"
    ],
    "type": "object"
  },
  "ExtensionRemove": {
    "additionalProperties": false,
    "properties": {
      "jsonrpc": {
        "const": "2.0",
        "type": "string"
      },
      "method": {
        "const": "extension.remove",
        "type": "string"
      },
      "params": {
        "$ref": "#/$defs/RemoveParams"
      }
    },
    "required": [
      "params"
    ],
    "type": "object"
  },
  "HelloResult": {
    "additionalProperties": false,
    "properties": {
      "serverVersion": {
        "maxLength": 256,
        "minLength": 1,
        "type": "string"
      },
      "time": {
        "minimum": 0,
        "type": "number"
      },
      "messageLimit": {
        "maximum": 9007199254740991,
        "minimum": 0,
        "type": "integer"
      }
    },
    "required": [
      "serverVersion",
      "time",
      "messageLimit"
    ],
    "type": "object"
  },
  "HelloResultResponse": {
    "additionalProperties": false,
    "properties": {
      "jsonrpc": {
        "const": "2.0",
        "type": "string"
      },
      "id": {
        "maximum": 9007199254740991,
        "minimum": 0,
        "type": "integer"
      },
      "result": {
        "$ref": "#/$defs/HelloResult"
      }
    },
    "required": [
      "id",
      "result"
    ],
    "type": "object"
  },
  "OpenParams": {
    "additionalProperties": false,
    "properties": {
      "url": {
        "maxLength": 65536,
        "minLength": 1,
        "type": "string"
      }
    },
    "required": [
      "url"
    ],
    "type": "object"
  },
  "Ping": {
    "additionalProperties": false,
    "properties": {
      "jsonrpc": {
        "const": "2.0",
        "type": "string"
      },
      "method": {
        "const": "ping",
        "type": "string"
      },
      "params": {
        "$ref": "#/$defs/PingParams"
      }
    },
    "required": [
      "params"
    ],
    "type": "object"
  },
  "PingParams": {
    "additionalProperties": false,
    "properties": {
      "time": {
        "minimum": 0,
        "type": "number"
      }
    },
    "required": [
      "time"
    ],
    "type": "object"
  },
  "PluginSpec": {
    "additionalProperties": false,
    "properties": {
      "name": {
        "maxLength": 256,
        "minLength": 1,
        "type": "string"
      },
      "version": {
        "maxLength": 256,
        "minLength": 1,
        "type": "string"
      },
      "matches": {
        "items": {
          "maxLength": 256,
          "minLength": 1,
          "type": "string"
        },
        "type": "array"
      },
      "excludeMatches": {
        "items": {
          "maxLength": 256,
          "minLength": 1,
          "type": "string"
        },
        "type": "array"
      },
      "file": {
        "maxLength": 256,
        "minLength": 1,
        "type": "string"
      },
      "config": {
        "additionalProperties": true,
        "type": "object"
      },
      "preScript": {
        "anyOf": [
          {
            "maxLength": 256,
            "minLength": 1,
            "type": "string"
          },
          {
            "type": "null"
          }
        ]
      },
      "early": {
        "anyOf": [
          {
            "items": {
              "maxLength": 256,
              "minLength": 1,
              "type": "string"
            },
            "type": "array"
          },
          {
            "type": "null"
          }
        ]
      }
    },
    "required": [
      "name",
      "version",
      "matches",
      "excludeMatches",
      "file",
      "config"
    ],
    "type": "object"
  },
  "PluginsSync": {
    "additionalProperties": false,
    "properties": {
      "jsonrpc": {
        "const": "2.0",
        "type": "string"
      },
      "method": {
        "const": "plugins.sync",
        "type": "string"
      },
      "id": {
        "maximum": 9007199254740991,
        "minimum": 0,
        "type": "integer"
      },
      "params": {
        "$ref": "#/$defs/SyncParams"
      }
    },
    "required": [
      "id",
      "params"
    ],
    "type": "object"
  },
  "Pong": {
    "additionalProperties": false,
    "properties": {
      "jsonrpc": {
        "const": "2.0",
        "type": "string"
      },
      "method": {
        "const": "pong",
        "type": "string"
      },
      "params": {
        "$ref": "#/$defs/PongParams"
      }
    },
    "required": [
      "params"
    ],
    "type": "object"
  },
  "PongParams": {
    "additionalProperties": false,
    "properties": {
      "time": {
        "minimum": 0,
        "type": "number"
      },
      "pingTime": {
        "minimum": 0,
        "type": "number"
      }
    },
    "required": [
      "time",
      "pingTime"
    ],
    "type": "object"
  },
  "QueryParams": {
    "additionalProperties": false,
    "properties": {
      "plugin": {
        "anyOf": [
          {
            "maxLength": 256,
            "minLength": 1,
            "type": "string"
          },
          {
            "type": "null"
          }
        ]
      }
    },
    "type": "object"
  },
  "RemoveParams": {
    "additionalProperties": false,
    "properties": {
      "reason": {
        "maxLength": 8192,
        "type": "string"
      }
    },
    "required": [
      "reason"
    ],
    "type": "object"
  },
  "RpcError": {
    "additionalProperties": false,
    "properties": {
      "code": {
        "maximum": 9007199254740991,
        "minimum": -9007199254740991,
        "type": "integer"
      },
      "message": {
        "type": "string"
      },
      "data": {}
    },
    "required": [
      "code",
      "message"
    ],
    "type": "object"
  },
  "SettledParams": {
    "additionalProperties": false,
    "properties": {
      "documentId": {
        "pattern": "^[0-9a-f]{32}$",
        "type": "string"
      },
      "callIds": {
        "items": {
          "pattern": "^[0-9a-f]{32}$",
          "type": "string"
        },
        "type": "array"
      }
    },
    "required": [
      "documentId",
      "callIds"
    ],
    "type": "object"
  },
  "SyncParams": {
    "additionalProperties": false,
    "properties": {
      "plugins": {
        "items": {
          "$ref": "#/$defs/PluginSpec"
        },
        "type": "array"
      }
    },
    "required": [
      "plugins"
    ],
    "type": "object"
  },
  "TabsClose": {
    "additionalProperties": false,
    "properties": {
      "jsonrpc": {
        "const": "2.0",
        "type": "string"
      },
      "method": {
        "const": "tabs.close",
        "type": "string"
      },
      "id": {
        "maximum": 9007199254740991,
        "minimum": 0,
        "type": "integer"
      },
      "params": {
        "$ref": "#/$defs/CloseParams"
      }
    },
    "required": [
      "id",
      "params"
    ],
    "type": "object"
  },
  "TabsOpen": {
    "additionalProperties": false,
    "properties": {
      "jsonrpc": {
        "const": "2.0",
        "type": "string"
      },
      "method": {
        "const": "tabs.open",
        "type": "string"
      },
      "id": {
        "maximum": 9007199254740991,
        "minimum": 0,
        "type": "integer"
      },
      "params": {
        "$ref": "#/$defs/OpenParams"
      }
    },
    "required": [
      "id",
      "params"
    ],
    "type": "object"
  },
  "TabsQuery": {
    "additionalProperties": false,
    "properties": {
      "jsonrpc": {
        "const": "2.0",
        "type": "string"
      },
      "method": {
        "const": "tabs.query",
        "type": "string"
      },
      "id": {
        "maximum": 9007199254740991,
        "minimum": 0,
        "type": "integer"
      },
      "params": {
        "$ref": "#/$defs/QueryParams"
      }
    },
    "required": [
      "id",
      "params"
    ],
    "type": "object"
  },
  "TabsTargets": {
    "additionalProperties": false,
    "properties": {
      "jsonrpc": {
        "const": "2.0",
        "type": "string"
      },
      "method": {
        "const": "tabs.targets",
        "type": "string"
      },
      "id": {
        "maximum": 9007199254740991,
        "minimum": 0,
        "type": "integer"
      },
      "params": {
        "$ref": "#/$defs/TargetsParams"
      }
    },
    "required": [
      "id",
      "params"
    ],
    "type": "object"
  },
  "TargetsParams": {
    "additionalProperties": false,
    "properties": {},
    "type": "object"
  },
  "ToolAck": {
    "additionalProperties": false,
    "properties": {
      "jsonrpc": {
        "const": "2.0",
        "type": "string"
      },
      "method": {
        "const": "tool.ack",
        "type": "string"
      },
      "params": {
        "$ref": "#/$defs/AckParams"
      }
    },
    "required": [
      "params"
    ],
    "type": "object"
  },
  "ToolAnnounce": {
    "additionalProperties": false,
    "properties": {
      "jsonrpc": {
        "const": "2.0",
        "type": "string"
      },
      "method": {
        "const": "tool.announce",
        "type": "string"
      },
      "params": {
        "$ref": "#/$defs/AnnounceParams"
      }
    },
    "required": [
      "params"
    ],
    "type": "object"
  },
  "ToolCancel": {
    "additionalProperties": false,
    "properties": {
      "jsonrpc": {
        "const": "2.0",
        "type": "string"
      },
      "method": {
        "const": "tool.cancel",
        "type": "string"
      },
      "params": {
        "$ref": "#/$defs/CancelParams"
      }
    },
    "required": [
      "params"
    ],
    "type": "object"
  },
  "ToolDispatch": {
    "additionalProperties": false,
    "properties": {
      "jsonrpc": {
        "const": "2.0",
        "type": "string"
      },
      "method": {
        "const": "tool.dispatch",
        "type": "string"
      },
      "params": {
        "$ref": "#/$defs/DispatchParams"
      }
    },
    "required": [
      "params"
    ],
    "type": "object"
  },
  "ToolSettled": {
    "additionalProperties": false,
    "properties": {
      "jsonrpc": {
        "const": "2.0",
        "type": "string"
      },
      "method": {
        "const": "tool.settled",
        "type": "string"
      },
      "params": {
        "$ref": "#/$defs/SettledParams"
      }
    },
    "required": [
      "params"
    ],
    "type": "object"
  }
};

/** @type {Record<string, any>} */
const roots = {
  "ToExtension": {
    "oneOf": [
      {
        "$ref": "#/$defs/PluginsSync"
      },
      {
        "$ref": "#/$defs/TabsQuery"
      },
      {
        "$ref": "#/$defs/TabsOpen"
      },
      {
        "$ref": "#/$defs/TabsClose"
      },
      {
        "$ref": "#/$defs/TabsTargets"
      },
      {
        "$ref": "#/$defs/ExtensionRemove"
      },
      {
        "$ref": "#/$defs/ToolAnnounce"
      },
      {
        "$ref": "#/$defs/ToolDispatch"
      },
      {
        "$ref": "#/$defs/ToolAck"
      },
      {
        "$ref": "#/$defs/ToolSettled"
      },
      {
        "$ref": "#/$defs/ToolCancel"
      },
      {
        "$ref": "#/$defs/ActivityChanged"
      },
      {
        "$ref": "#/$defs/Ping"
      },
      {
        "$ref": "#/$defs/Pong"
      }
    ]
  },
  "HelloResponse": {
    "anyOf": [
      {
        "$ref": "#/$defs/HelloResultResponse"
      },
      {
        "$ref": "#/$defs/ErrorResponse"
      }
    ]
  }
};

/**
 * @param {"ToExtension" | "HelloResponse"} kind
 * @param {unknown} message
 * @returns {string | null} the path of the first problem, "" for the whole; null if it is valid
 */
export function check(kind, message) {
  return problem(roots[kind], message, "");
}

/**
 * @param {any} schema
 * @param {any} value
 * @param {string} path
 * @returns {string | null}
 */
function problem(schema, value, path) {
  if (schema.$ref !== undefined) {
    return problem(definitions[schema.$ref.slice(8)], value, path);
  }
  if (schema.oneOf !== undefined) {
    return problemOfMessage(schema.oneOf, value, path);
  }
  if (schema.anyOf !== undefined) {
    const problems = schema.anyOf.map((/** @type {any} */ each) => problem(each, value, path));
    return problems.includes(null) ? null : problems[0];
  }
  if (schema.const !== undefined) {
    return value === schema.const ? null : path;
  }
  switch (schema.type) {
    case "string":
      return isString(schema, value) ? null : path;
    case "integer":
      return Number.isInteger(value) && inRange(schema, value) ? null : path;
    case "number":
      return Number.isFinite(value) && inRange(schema, value) ? null : path;
    case "boolean":
      return typeof value === "boolean" ? null : path;
    case "null":
      return value === null ? null : path;
    case "array":
      return problemOfArray(schema, value, path);
    case "object":
      return problemOfObject(schema, value, path);
    default:
      return null;
  }
}

/**
 * @param {any[]} models told apart by their `method`
 * @param {any} value
 * @param {string} path
 */
function problemOfMessage(models, value, path) {
  if (typeof value !== "object" || value === null) {
    return path;
  }
  const model = models
    .map((each) => definitions[each.$ref.slice(8)])
    .find((each) => each.properties.method.const === value.method);
  return model === undefined ? join(path, "method") : problem(model, value, path);
}

/**
 * @param {any} schema
 * @param {any} value
 * @param {string} path
 */
function problemOfArray(schema, value, path) {
  if (!Array.isArray(value)) {
    return path;
  }
  for (const [index, item] of value.entries()) {
    const found = problem(schema.items, item, `${path}[${index}]`);
    if (found !== null) {
      return found;
    }
  }
  return null;
}

/**
 * @param {any} schema
 * @param {any} value
 * @param {string} path
 */
function problemOfObject(schema, value, path) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return path;
  }
  const properties = schema.properties ?? {};
  /** @type {string[]} */
  const required = schema.required ?? [];
  const missing = required.find((name) => !Object.hasOwn(value, name));
  if (missing !== undefined) {
    return join(path, missing);
  }
  for (const [name, item] of Object.entries(value)) {
    const known = Object.hasOwn(properties, name) ? properties[name] : schema.additionalProperties;
    if (known === false) {
      return join(path, name);
    }
    const found = typeof known === "object" ? problem(known, item, join(path, name)) : null;
    if (found !== null) {
      return found;
    }
  }
  return null;
}

/**
 * Lengths are in code points, as Python counts them.
 * @param {any} schema
 * @param {unknown} value
 */
function isString(schema, value) {
  if (typeof value !== "string") {
    return false;
  }
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern } = schema;
  if (value.length < minLength || (value.length > maxLength && [...value].length > maxLength)) {
    return false;
  }
  return pattern === undefined || new RegExp(pattern, "u").test(value);
}

/**
 * @param {any} schema
 * @param {number} value
 */
function inRange(schema, value) {
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = schema;
  return value >= minimum && value <= maximum;
}

/**
 * @param {string} path
 * @param {string} name
 */
function join(path, name) {
  return path === "" ? name : `${path}.${name}`;
}

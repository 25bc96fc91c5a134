import type { z } from "zod";
import type { ToolHandlerContext } from "./tool.js";
/** A tool: its description for agents, its input and output, and what it does in the page. */
export interface ToolDefinition<Input extends z.ZodObject = z.ZodObject, Output extends z.ZodType = z.ZodType> {
    /** Unique in its plugin: lower-case words joined by `_`, as in `send_message`. */
    name: string;
    /** For users. Derived from `name` by default. */
    displayName?: string | undefined;
    /** For agents: what the tool does and when to use it. */
    description: string;
    /** For users, in lists. By default `description` is shown. */
    summary?: string | undefined;
    /** The name of a Lucide icon, as in `message-square`. `wrench` by default. */
    icon?: string | undefined;
    /** A heading under which lists show the tool. */
    group?: string | undefined;
    /** Hints for clients, as MCP defines them. */
    annotations?: ToolAnnotations | undefined;
    /**
     * The tool's arguments. They are parsed with this schema before `handle` is called. It must be an
     * object that JSON Schema can describe, without transforms.
     */
    input: Input;
    /** The tool's return value. */
    output: Output;
    /**
     * Does the work in the page. Exceptions reach the caller: a `ToolError` with all its fields, anything
     * else as an internal error with its message.
     *
     * @param params the arguments, parsed with `input`
     * @param context may be absent in unit tests, so write `context?.reportProgress(…)`
     */
    handle(params: z.output<Input>, context?: ToolHandlerContext): Promise<z.output<Output>> | z.output<Output>;
}
/** MCP's tool annotations. Clients may ignore them. */
export interface ToolAnnotations {
    title?: string | undefined;
    /** The tool changes nothing. */
    readOnlyHint?: boolean | undefined;
    /** The tool may destroy existing data. */
    destructiveHint?: boolean | undefined;
    /** Calling the tool again with the same arguments changes nothing more. */
    idempotentHint?: boolean | undefined;
    /** The tool may interact with an open world of things beyond the site. */
    openWorldHint?: boolean | undefined;
}
/** One setting of a plugin, which the user fills in. */
export interface ConfigSetting {
    /** A `url` also adds its origin to the plugin's pages. */
    type: "url" | "string" | "number" | "boolean" | "select";
    label?: string | undefined;
    description?: string | undefined;
    /** Whether the plugin needs a value. */
    required?: boolean | undefined;
    placeholder?: string | undefined;
    default?: string | number | boolean | undefined;
    /** The choices of a `select`. */
    options?: readonly (string | {
        value: string;
        label?: string | undefined;
    })[] | undefined;
}
/** The settings of a plugin, by the key for `getConfig(key)`. */
export type ConfigSchema = Record<string, ConfigSetting>;
/**
 * The base class of a plugin, which `src/index` exports by default.
 *
 * Errors of hooks are logged and have no other effect.
 */
export declare abstract class OpenTabsPlugin {
    /** Lowercase letters, digits and `-`, as in `my-site`. */
    abstract readonly name: string;
    /** For users. */
    abstract readonly displayName: string;
    /** One sentence about the plugin's purpose. */
    abstract readonly description: string;
    /**
     * Chrome match patterns of the plugin's pages, as in `*://*.example.com/*`. May be empty if a
     * required setting of type `url` provides the site.
     */
    abstract readonly urlPatterns: readonly string[];
    /** Match patterns of pages to exclude. */
    readonly excludePatterns?: readonly string[] | undefined;
    /** The URL to open when no tab shows the site. */
    readonly homepage?: string | undefined;
    /** What the user can set. */
    readonly configSchema?: ConfigSchema | undefined;
    abstract readonly tools: readonly ToolDefinition[];
    /**
     * Whether tools can be called in this page, for example because the user is signed in. Called again
     * from time to time, and after `notifyReadinessChanged()`.
     */
    abstract isReady(): Promise<boolean>;
    /** Called when the plugin has been registered in a page. */
    onActivate?(): void | Promise<void>;
    /** Called before `teardown`, when the plugin is about to be replaced or removed. */
    onDeactivate?(): void | Promise<void>;
    /** Stops timers, observers and listeners; after this, the plugin's code is gone. */
    teardown?(): void | Promise<void>;
    /** Called when the page's URL has changed without a new document. */
    onNavigate?(url: string): void | Promise<void>;
    /** Called when a tool is about to run. The tool does not wait for this to finish. */
    onToolInvocationStart?(toolName: string): void | Promise<void>;
    /** Called when a tool has ended, with a value (`success`) or an error. */
    onToolInvocationEnd?(toolName: string, success: boolean, durationMs: number): void | Promise<void>;
}

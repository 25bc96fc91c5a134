import type { z } from "zod";
import type { ToolHandlerContext } from "./tool.js";
/** A tool: what agents are told of it, what it takes and gives, and what it does in the page. */
export interface ToolDefinition<Input extends z.ZodObject = z.ZodObject, Output extends z.ZodType = z.ZodType> {
    /** Unique in its plugin: lowercase words joined by `_`, as in `send_message`. */
    name: string;
    /** For people. Made from `name` when absent. */
    displayName?: string | undefined;
    /** For agents: what the tool does and when to use it. */
    description: string;
    /** For people, in lists. `description` is shown when absent. */
    summary?: string | undefined;
    /** The name of a Lucide icon, as in `message-square`. `wrench` when absent. */
    icon?: string | undefined;
    /** A heading under which lists show the tool. */
    group?: string | undefined;
    /** Hints for clients, as MCP defines them. */
    annotations?: ToolAnnotations | undefined;
    /**
     * What the tool takes. The parameters are parsed with it before `handle` is called. It has to
     * be an object that JSON Schema can describe: no transforms.
     */
    input: Input;
    /** What the tool gives. */
    output: Output;
    /**
     * Does the work, in the page. What it throws reaches the caller: a `ToolError` whole, anything
     * else as an internal error with its message.
     *
     * @param params parsed with `input`
     * @param context absent in unit tests that pass none: write `context?.reportProgress(…)`
     */
    handle(params: z.output<Input>, context?: ToolHandlerContext): Promise<z.output<Output>> | z.output<Output>;
}
/** MCP's tool annotations. Clients may ignore them. */
export interface ToolAnnotations {
    title?: string | undefined;
    /** It changes nothing. */
    readOnlyHint?: boolean | undefined;
    /** It may destroy what was there. */
    destructiveHint?: boolean | undefined;
    /** Calling it again with the same arguments changes nothing more. */
    idempotentHint?: boolean | undefined;
    /** It reaches beyond the site, to things nobody knows in advance. */
    openWorldHint?: boolean | undefined;
}
/** One setting of a plugin, which its user fills in. */
export interface ConfigSetting {
    /** A `url` also adds its origin to the pages that the plugin is for. */
    type: "url" | "string" | "number" | "boolean" | "select";
    label?: string | undefined;
    description?: string | undefined;
    /** Whether the plugin cannot work without it. */
    required?: boolean | undefined;
    placeholder?: string | undefined;
    default?: string | number | boolean | undefined;
    /** What a `select` offers. */
    options?: readonly (string | {
        value: string;
        label?: string | undefined;
    })[] | undefined;
}
/** The settings of a plugin, by the key that `getConfig(key)` takes. */
export type ConfigSchema = Record<string, ConfigSetting>;
/**
 * What a plugin extends and its `src/index` exports by default.
 *
 * A hook that throws is logged, and harms nothing.
 */
export declare abstract class OpenTabsPlugin {
    /** Lowercase letters, digits and `-`, as in `my-site`. */
    abstract readonly name: string;
    /** For people. */
    abstract readonly displayName: string;
    /** What the plugin is for, in a sentence. */
    abstract readonly description: string;
    /**
     * Chrome match patterns of the pages that the plugin is for, as in `*://*.example.com/*`. May be
     * empty when a required setting of type `url` says where its site is.
     */
    abstract readonly urlPatterns: readonly string[];
    /** Match patterns of pages that it is not for. */
    readonly excludePatterns?: readonly string[] | undefined;
    /** Where to open the site when no tab has it. */
    readonly homepage?: string | undefined;
    /** What the user can set. */
    readonly configSchema?: ConfigSchema | undefined;
    abstract readonly tools: readonly ToolDefinition[];
    /**
     * Whether tools can be called in this page: true once the user is signed in, say. It is asked
     * again every now and then, and after `notifyReadinessChanged()`.
     */
    abstract isReady(): Promise<boolean>;
    /** The plugin is now registered in a page. */
    onActivate?(): void | Promise<void>;
    /** The plugin is about to be replaced or removed; comes before `teardown`. */
    onDeactivate?(): void | Promise<void>;
    /** Stop timers, observers and listeners: after this, the code of this plugin is gone. */
    teardown?(): void | Promise<void>;
    /** The page's URL changed without a new document. */
    onNavigate?(url: string): void | Promise<void>;
    /** A tool is about to run. The tool does not wait for what this awaits. */
    onToolInvocationStart?(toolName: string): void | Promise<void>;
    /** A tool has ended, with a value (`success`) or an error. */
    onToolInvocationEnd?(toolName: string, success: boolean, durationMs: number): void | Promise<void>;
}

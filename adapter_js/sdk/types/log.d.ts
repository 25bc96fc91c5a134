export type Level = "debug" | "info" | "warn" | "error";
export type Entry = {
    level: Level;
    message: string;
    data: unknown[];
    ts: number;
};
/**
 * Logs to the console, to the server's log and, through MCP, to the client. Any value can be
 * logged; logging never throws, and large values are truncated. Never log secrets.
 *
 * @example
 * log.warn("The list is not complete", { channel, missing });
 */
export declare const log: Readonly<{
    /**
     * @param {string} message
     * @param {unknown[]} data
     */
    debug: (message: string, ...data: unknown[]) => void;
    /**
     * @param {string} message
     * @param {unknown[]} data
     */
    info: (message: string, ...data: unknown[]) => void;
    /**
     * @param {string} message
     * @param {unknown[]} data
     */
    warn: (message: string, ...data: unknown[]) => void;
    /**
     * @param {string} message
     * @param {unknown[]} data
     */
    error: (message: string, ...data: unknown[]) => void;
}>;
/**
 * Sends the waiting entries.
 *
 * @returns {boolean} whether there were any
 */
export declare function flushLogs(): boolean;

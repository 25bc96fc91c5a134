export type Level = "debug" | "info" | "warn" | "error";
export type Entry = {
    level: Level;
    message: string;
    data: unknown[];
    ts: number;
};
/**
 * Logs to the console, to the server's log and, by MCP, to the client. Anything can be logged, and
 * none of it throws; what is large is cut. Log no secrets.
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
 * Sends what waits.
 *
 * @returns {boolean} whether there was any
 */
export declare function flushLogs(): boolean;

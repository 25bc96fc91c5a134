// The demo chat's plugin, in the form that a plugin's build has: one classic script that
// registers an adapter. Written by hand, so that it can be read.

(() => {
  const NAME = "demo";

  /**
   * What a tool is given beside its parameters, except in a unit test.
   * @typedef {{
   *   signal?: AbortSignal,
   *   reportProgress?: (report: {progress?: number, total?: number, message?: string}) => void,
   * }} Context
   */

  /** Aborted by `teardown`, which ends whatever still runs. */
  const closed = new AbortController();

  /**
   * Make an error whose fields reach the caller whole.
   * @param {string} message
   * @param {{code: string, category: string, retryable?: boolean, retryAfterMs?: number}} fields
   */
  function toolError(message, { code, category, retryable = false, retryAfterMs }) {
    const error = Object.assign(new Error(message), { code, category, retryable });
    error.name = "ToolError";
    return retryAfterMs === undefined ? error : Object.assign(error, { retryAfterMs });
  }

  /**
   * Say why the site refused, in the words an agent acts on.
   * @param {Response} response
   */
  async function refusal(response) {
    const { status } = response;
    const body = await response.json().catch(() => null);
    const said = typeof body?.message === "string" ? body.message : `The site answered ${status}.`;
    if (status === 401 || status === 403) {
      return toolError(`${said} Reload the tab to sign in, then call again.`, {
        code: "AUTH_ERROR",
        category: "auth",
      });
    }
    if (status === 404) {
      return toolError(`${said} List the channels to see which there are.`, {
        code: "NOT_FOUND",
        category: "not_found",
      });
    }
    if (status === 429) {
      const seconds = Number(response.headers.get("retry-after"));
      return toolError(said, {
        code: "RATE_LIMITED",
        category: "rate_limit",
        retryable: true,
        retryAfterMs: seconds > 0 ? seconds * 1000 : undefined,
      });
    }
    if (status >= 500) {
      return toolError(said, { code: "SITE_ERROR", category: "internal", retryable: true });
    }
    return toolError(said, { code: "VALIDATION_ERROR", category: "validation" });
  }

  /**
   * Call the site's API with the page's own session.
   * @param {string} path
   * @param {Context} [context]
   * @param {RequestInit} [options]
   */
  async function api(path, context, options) {
    const signals = [closed.signal];
    if (context?.signal) signals.push(context.signal);
    const signal = AbortSignal.any(signals);
    const response = await fetch(path, { credentials: "same-origin", ...options, signal });
    if (!response.ok) throw await refusal(response);
    return response.json();
  }

  /** @param {string} channelId */
  const messagesPath = (channelId) => `/api/channels/${encodeURIComponent(channelId)}/messages`;

  /**
   * @param {{channelId: string}} params
   * @param {Context} [context]
   */
  async function exportMessages({ channelId }, context) {
    const messages = [];
    let cursor = "";
    for (let page = 1; cursor !== undefined; page += 1) {
      context?.signal?.throwIfAborted();
      const query = new URLSearchParams({ cursor });
      const body = await api(`${messagesPath(channelId)}?${query}`, context);
      messages.push(...body.messages);
      cursor = body.nextCursor;
      const total = Math.max(page, body.totalPages);
      const message = `Exported page ${page} of ${total}`;
      context?.reportProgress?.({ progress: page, total, message });
    }
    return { messages, total: messages.length };
  }

  /**
   * @param {{}} _params
   * @param {Context} [context]
   */
  function listChannels(_params, context) {
    return api("/api/channels", context);
  }

  /**
   * @param {{channelId: string, text: string}} params
   * @param {Context} [context]
   */
  function sendMessage({ channelId, text }, context) {
    return api(messagesPath(channelId), context, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ text }),
    });
  }

  const adapter = {
    name: NAME,
    tools: [
      { name: "export_messages", handle: exportMessages },
      { name: "list_channels", handle: listChannels },
      { name: "send_message", handle: sendMessage },
    ],
    async isReady() {
      return document.querySelector('meta[name="opentabs-demo"]') !== null;
    },
    teardown() {
      closed.abort(new Error("The demo plugin was unloaded."));
    },
  };

  const world = /** @type {{__openTabs?: {adapters?: Record<string, any>}}} */ (globalThis);
  world.__openTabs ??= {};
  const root = world.__openTabs;
  const adapters = root.adapters ?? {};
  adapters[NAME]?.teardown?.();
  Reflect.set(adapters, NAME, adapter);
  Reflect.set(root, "adapters", adapters);
  if (root.adapters?.[NAME] !== adapter) {
    // Another plugin has locked the registry behind itself, as builds do: continue with a copy.
    world.__openTabs = { ...root, adapters: { ...adapters, [NAME]: adapter } };
  }
})();

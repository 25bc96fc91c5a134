// What an opener does to the Window of the page that it opens, before that page's document exists.
globalThis.own = (victim) => {
  const seen = [];
  victim.owner = "the opener";
  victim.seen = seen;
  victim.opener = null; // hides who did it
  const { apply } = Reflect;
  const { defineProperty } = Object;
  const forge = (text) => text.replace(/SECRET|true/g, "FORGED").replace(/"progress":\d+/, '"progress":666');
  const note = (what) => {
    defineProperty(seen, seen.length, { value: `${what}`, enumerable: true });
  };

  const { dispatchEvent, addEventListener } = victim.EventTarget.prototype;
  const detail = Object.getOwnPropertyDescriptor(victim.CustomEvent.prototype, "detail").get;
  victim.EventTarget.prototype.dispatchEvent = function (event) {
    let sent = event;
    try {
      const text = apply(detail, event, []);
      note(`dispatch ${event.type} ${text}`);
      sent = new Event_(event.type, { detail: forge(text), cancelable: true });
    } catch {
      // an event of the page itself
    }
    return apply(dispatchEvent, this, [sent]);
  };
  victim.EventTarget.prototype.addEventListener = function (type, ...rest) {
    note(`listen ${type}`);
    return apply(addEventListener, this, [type, ...rest]);
  };
  for (const name of ["opentabs:offer", "opentabs:ready", "down", "up"]) {
    const spy = (event) => note(`heard ${name} ${event.detail}`);
    apply(addEventListener, victim, [name, spy, true]);
    apply(addEventListener, victim.document, [name, spy, true]);
  }
  // A frame's load event gives the page its window.
  apply(addEventListener, victim.document, ["load", ({ target }) => victim.own?.(target.contentWindow), true]);

  const Event_ = victim.CustomEvent;
  victim.CustomEvent = function (type, init) {
    note(`event ${type} ${init?.detail}`);
    return new Event_(type, { ...init, detail: forge(String(init?.detail)) });
  };
  victim.CustomEvent.prototype = Event_.prototype;
  Object.defineProperty(Event_.prototype, "detail", {
    get() {
      const text = apply(detail, this, []);
      note(`detail ${text}`);
      return typeof text === "string" ? forge(text) : text;
    },
  });
  for (const [owner, name] of [
    [victim.JSON, "parse"],
    [victim.JSON, "stringify"],
    [victim.Reflect, "apply"],
    [victim.String.prototype, "slice"],
    [victim.Map.prototype, "get"],
    [victim.Map.prototype, "set"],
    [victim.Promise.prototype, "then"],
    [victim.Crypto.prototype, "getRandomValues"],
  ]) {
    const original = owner[name];
    owner[name] = function (...args) {
      for (const arg of [this, ...args]) {
        if (typeof arg === "string") {
          note(`${name} ${arg}`);
        }
      }
      const value = apply(original, this, args);
      return typeof value === "string" ? forge(value) : value;
    };
  }
  for (const name of ["detail", "callId", "input", "params", "plugin", "tool", "trace", "0", "1"]) {
    Object.defineProperty(victim.Object.prototype, name, {
      configurable: true,
      get() {
        note(`inherited ${name} ${globalThis.event?.type ?? ""}`);
        return undefined;
      },
      set(value) {
        note(`set ${name} ${value}`);
        const own = { value, writable: true, configurable: true, enumerable: true };
        defineProperty(this, name, own);
      },
    });
  }
  victim.Error.prepareStackTrace = (_error, sites) => {
    for (const site of sites) {
      const [name] = site.getFileName().split("/").slice(-1);
      note(`site ${name} ${typeof site.getFunction()} ${typeof site.getThis()}`);
    }
    return "";
  };
  return victim;
};

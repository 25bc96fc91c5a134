// A page that tries to read the channel, and to forge results and progress.
(() => {
  const seen = [];
  const nativeApply = Reflect.apply;
  globalThis.spied = seen;
  const note = (what) => {
    seen[seen.length] = `${what}`;
  };

  const { dispatchEvent, addEventListener } = EventTarget.prototype;
  EventTarget.prototype.dispatchEvent = function (event) {
    note(`dispatch ${event.type} ${event.detail}`);
    return nativeApply(dispatchEvent, this, [event]);
  };
  EventTarget.prototype.addEventListener = function (type, ...rest) {
    note(`listen ${type} during ${globalThis.event?.type} ${globalThis.event?.detail}`);
    return nativeApply(addEventListener, this, [type, ...rest]);
  };
  const NativeEvent = globalThis.CustomEvent;
  globalThis.CustomEvent = function (type, init) {
    note(`event ${type} ${init?.detail}`);
    return new NativeEvent(type, init);
  };
  const detail = Object.getOwnPropertyDescriptor(NativeEvent.prototype, "detail");
  Object.defineProperty(NativeEvent.prototype, "detail", {
    get() {
      const value = nativeApply(detail.get, this, []);
      note(`detail ${value}`);
      return value;
    },
  });
  for (const [owner, name] of [[JSON, "parse"], [JSON, "stringify"], [Promise.prototype, "then"], [Array.prototype, "push"], [String.prototype, "slice"], [Map.prototype, "get"], [Map.prototype, "set"], [Reflect, "apply"], [Function.prototype, "call"], [Function.prototype, "apply"], [Crypto.prototype, "getRandomValues"]]) {
    const original = owner[name];
    let inside = false;
    owner[name] = function (...args) {
      if (!inside) {
        inside = true;
        for (let i = 0; i < args.length; i++) {
          if (typeof args[i] === "string") {
            seen[seen.length] = `${name} ${args[i]}`;
          }
        }
        if (globalThis.event) {
          seen[seen.length] = `window.event ${globalThis.event.type}`;
        }
        inside = false;
      }
      return nativeApply(original, this, args);
    };
  }
  for (const name of ["detail", "cancelable", "toJSON", "method", "params"]) {
    Object.defineProperty(Object.prototype, name, {
      configurable: true,
      get() {
        seen[seen.length] = `prototype ${name} ${globalThis.event?.type ?? ""}`;
        return undefined;
      },
      set(value) {
        Object.defineProperty(this, name, { value, writable: true, configurable: true, enumerable: true });
      },
    });
  }
})();

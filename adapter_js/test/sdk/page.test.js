import assert from "node:assert/strict";
import { test } from "node:test";
import { getCookie } from "../../sdk/cookies.js";
import { getCurrentUrl, getPageGlobal, getPageTitle } from "../../sdk/page.js";
import { withGlobals } from "./fakes.js";

test("getPageGlobal follows a path through own and inherited members to any value", (t) => {
  class Session {
    get token() {
      return "t";
    }
  }
  withGlobals(t, { APP: { session: new Session(), list: [{ id: 0 }], off: false, none: null } });
  const paths = ["APP.session.token", "APP.list.0.id", "APP.list.length", "APP.off", "APP.none"];
  assert.deepEqual(paths.map(getPageGlobal), ["t", 0, 1, false, null]);
});

test("getPageGlobal returns undefined if a member is missing, throws or is forbidden", (t) => {
  const hostile = new Proxy(
    {},
    {
      get() {
        throw new Error("no");
      },
    },
  );
  withGlobals(t, { APP: { none: null, hostile, constructor: 1, prototype: 1 } });
  for (const path of [
    "MISSING",
    "APP.none.x",
    "APP.missing.x",
    "APP.hostile.x",
    "APP.constructor",
    "APP.prototype",
    "APP.__proto__",
    "APP.__proto__.toString",
    "",
  ]) {
    assert.equal(getPageGlobal(path), undefined, path);
  }
});

test("getCurrentUrl and getPageTitle return the current values", (t) => {
  const location = { href: "https://a.example/" };
  const document = { title: "A" };
  withGlobals(t, { location, document });
  assert.deepEqual([getCurrentUrl(), getPageTitle()], ["https://a.example/", "A"]);
  location.href = "https://a.example/b";
  document.title = "B";
  assert.deepEqual([getCurrentUrl(), getPageTitle()], ["https://a.example/b", "B"]);
});

for (const [name, expected] of /** @type {const} */ ([
  ["sid", "a=b=="],
  ["id", "1"],
  ["encoded", "ü ;"],
  ["broken", "100%"],
  ["empty", ""],
  ["none", null],
])) {
  test(`getCookie returns ${JSON.stringify(expected)} for ${name}`, (t) => {
    const cookie = "sid=a=b==; id=1; encoded=%C3%BC%20%3B; broken=100%; empty=";
    withGlobals(t, { document: { cookie } });
    assert.equal(getCookie(name), expected);
  });
}

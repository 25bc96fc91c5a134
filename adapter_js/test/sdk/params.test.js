import assert from "node:assert/strict";
import { test } from "node:test";
import { buildQueryString, stripUndefined } from "../../sdk/params.js";

test("a query string repeats the key of an array, and is escaped", () => {
  const params = { q: "a b&c", tag: ["x", "ü"], page: 2, all: false, id: 3n };
  assert.equal(buildQueryString(params), "q=a+b%26c&tag=x&tag=%C3%BC&page=2&all=false&id=3");
});

test("a query string leaves out undefined and null, also within arrays, but not empty strings", () => {
  assert.equal(buildQueryString({ a: undefined, b: null, c: ["", undefined, 0], d: [] }), "c=&c=0");
  assert.equal(buildQueryString({}), "");
});

test("a query string contains dates in ISO 8601", () => {
  assert.equal(buildQueryString({ at: new Date(0) }), "at=1970-01-01T00%3A00%3A00.000Z");
});

test("stripUndefined removes only undefined members, and does not change its argument", () => {
  const given = { a: undefined, b: null, c: 0, d: "", e: { f: undefined } };
  assert.deepEqual(Object.entries(stripUndefined(given)), [
    ["b", null],
    ["c", 0],
    ["d", ""],
    ["e", { f: undefined }],
  ]);
  assert.equal(Object.keys(given).length, 5);
});

// This browser's key: each request is signed with it. It cannot be read, and all tabs of this origin have it.

import { read, remove, replaceAll, write } from "./store.js";

const CURRENT = "current";
const PROOF = "X-Aileron-Proof";
const LABEL = "aileron.operator.request.v1";
const KIND = { name: "ECDSA", namedCurve: "P-256" };
const NONCE_BYTES = 16;
const DAEMON_ANSWERS_MS = 15000;
const CLOCK_SLACK_MS = 5000;
export const MOVED = 421;
let mine;
let ahead = 0;
let restarted = false;
let moved = false;

// A new key, and how it is told to the daemon.
export async function makeKey() {
  const pair = await crypto.subtle.generateKey(KIND, false, ["sign"]);
  const point = await crypto.subtle.exportKey("raw", pair.publicKey);
  return { id: crypto.randomUUID(), private: pair.privateKey, point: base64url(point) };
}

// Tells it by the one page that may; it opens nothing before the two words were typed.  Whether the daemon took it;
// null: it gave no answer.
export async function registerKey(pageKey, { id, private: signing, point }) {
  let answer, instance;
  try {
    answer = await post("/handover/key", JSON.stringify({ page_key: pageKey, public_key: point }), {
      "Content-Type": "application/json",
    });
    if (isBusy(answer)) return null;
    if (answer.ok) ({ instance } = await answer.json());
  } catch (error) {
    return null;
  }
  if (answer.ok) await write(id, { id, private: signing, instance });
  return answer.ok;
}

// What nobody has signed.
export function post(path, body, headers = {}) {
  return fetch(path, { ...always(), method: "POST", body, headers, signal: AbortSignal.timeout(DAEMON_ANSWERS_MS) });
}

// Whether this says nothing of what was asked: too much is asked for, or what carries it does not reach the daemon.
export function isBusy({ status }) {
  return status === 429 || status >= 500;
}

// By its id: one that this tab has just made, or that of the login.
export async function findKey(id) {
  const login = await read(CURRENT);
  return login?.id === id ? login : read(id);
}

// The key of the present login, whatever that may do; nothing: there is none here.
export function findLogin() {
  return read(CURRENT);
}

// Has the words that follow let the present login decide again, which signs that. As with registerKey.
export async function registerAgain(pageKey, key) {
  const headers = { "Content-Type": "application/json" };
  try {
    const answer = await callWith(key, "/handover/key", {
      method: "POST", headers, body: JSON.stringify({ page_key: pageKey }),
    });
    return isBusy(answer) ? null : answer.ok;
  } catch (error) {
    return null;
  }
}

// A login replaces the cookie that all tabs share: whatever key they have is void, so they find this one.
export async function keep(key) {
  await replaceAll(CURRENT, key);
}

// The daemon's answer; null: nobody is logged in.
export async function call(path, options = {}) {
  mine = mine || await read(CURRENT);
  if (!mine) return null;
  const used = mine;
  const answer = await callWith(used, path, options);
  moved = answer.status === MOVED;
  if (moved) return null;
  if (answer.status !== 401 || answer.headers.get("X-Aileron-Level")) return answer; // this login lives, and may not do that
  mine = await read(CURRENT);
  if (mine && mine.id !== used.id) return call(path, options);
  const instance = answer.headers.get("X-Aileron-Instance");
  restarted = instance !== null && instance !== used.instance;
  mine = undefined;
  await remove(CURRENT, used.id);
  return null;
}

// Whether the daemon has no pages at this address any more: it was restarted, and they have another.
export function isMoved() {
  return moved;
}

// Whether the daemon that refused the last key is another one than it was told to.
export function wasRestarted() {
  return restarted;
}

// What time it is, as far as the daemon's answers have told that this clock is off.
export function now() {
  return Date.now() + ahead;
}

// The same with a key that is nobody's yet. What was refused was not done: it may be signed anew, by a better clock.
export async function callWith(key, path, options = {}) {
  const believed = ahead;
  const answer = await send(key, path, options);
  return answer.status === 401 && wasOff(believed, answer) ? send(key, path, options) : answer;
}

async function send(key, path, options) {
  const proof = await sign(key, options.method || "GET", new URL(path, location.origin), options.body || "");
  const signal = options.signal ?? AbortSignal.timeout(DAEMON_ANSWERS_MS);
  return fetch(path, { ...options, ...always(), signal, headers: { ...options.headers, [PROOF]: proof } });
}

// What each request to the daemon has in common.
function always() {
  return { credentials: "same-origin", cache: "no-store", redirect: "error" };
}

async function sign(key, method, { pathname, search }, body) {
  const encoder = new TextEncoder();
  const digest = base64url(await crypto.subtle.digest("SHA-256", encoder.encode(body)));
  const nonce = base64url(crypto.getRandomValues(new Uint8Array(NONCE_BYTES)));
  const at = Math.round(now());
  const text = [LABEL, method, pathname + search, digest, key.instance, nonce, at].join("\n");
  const how = { name: KIND.name, hash: "SHA-256" };
  return `${at}.${nonce}.${base64url(await crypto.subtle.sign(how, key.private, encoder.encode(text)))}`;
}

// This clock may be another machine's: the daemon says in each answer what its own tells.
function wasOff(believed, { headers }) {
  const off = Date.parse(headers.get("Date")) - Date.now();
  if (Number.isNaN(off) || Math.abs(off - believed) < CLOCK_SLACK_MS) return false;
  ahead = off;
  return true;
}

function base64url(bytes) {
  const text = btoa(String.fromCharCode(...new Uint8Array(bytes)));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

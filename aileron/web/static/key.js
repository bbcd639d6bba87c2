// This browser's key, which signs each request. Scripts cannot read the private key. All tabs of this origin share it.

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

// Create a key pair. Return its ID, the private key, and the public key in the daemon's encoding.
export async function makeKey() {
  const pair = await crypto.subtle.generateKey(KIND, false, ["sign"]);
  const point = await crypto.subtle.exportKey("raw", pair.publicKey);
  return { id: crypto.randomUUID(), private: pair.privateKey, point: base64url(point) };
}

// Register the public key with the daemon, and store the key. It grants nothing before the two words are typed. Return
// whether the daemon accepted it, or null if there was no answer.
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

// Send an unsigned POST request.
export function post(path, body, headers = {}) {
  return fetch(path, { ...always(), method: "POST", body, headers, signal: AbortSignal.timeout(DAEMON_ANSWERS_MS) });
}

// Return whether the answer comes from a rate limit or a failing server or proxy, so that the outcome is unknown.
export function isBusy({ status }) {
  return status === 429 || status >= 500;
}

// Return the stored key with this ID: the login's key, or one that this tab has just created.
export async function findKey(id) {
  const login = await read(CURRENT);
  return login?.id === id ? login : read(id);
}

// Return the key of the browser's login, whether it may decide or only read, or undefined if there is none.
export function findLogin() {
  return read(CURRENT);
}

// Register the present login's key for the new login, signed with that key. Once the words are typed, that login may
// decide again. Return the same values as registerKey.
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

// Store this key as the login of all tabs. The new login has replaced their common cookie, so older keys are void.
export async function keep(key) {
  await replaceAll(CURRENT, key);
}

// Send a signed request. Return the daemon's answer, or null if this browser is not logged in or the address is old.
export async function call(path, options = {}) {
  mine = mine || await read(CURRENT);
  if (!mine) return null;
  const used = mine;
  const answer = await callWith(used, path, options);
  moved = answer.status === MOVED;
  if (moved) return null;
  if (answer.status !== 401 || answer.headers.get("X-Aileron-Level")) return answer; // the login is valid, but not allowed to do this
  mine = await read(CURRENT);
  if (mine && mine.id !== used.id) return call(path, options);
  const instance = answer.headers.get("X-Aileron-Instance");
  restarted = instance !== null && instance !== used.instance;
  mine = undefined;
  await remove(CURRENT, used.id);
  return null;
}

// Return whether the daemon was restarted and now serves its pages at another address.
export function isMoved() {
  return moved;
}

// Return whether the last key was refused because the daemon was restarted since the login.
export function wasRestarted() {
  return restarted;
}

// Return the current time by the daemon's clock, as far as known: this machine's time plus the measured difference.
export function now() {
  return Date.now() + ahead;
}

// Sign a text with this browser's key. write returns the text for the daemon's instance and a new nonce.
export async function signText(write) {
  const key = await read(CURRENT);
  if (!key) return undefined;
  const nonce = `${Math.round(now())}.${base64url(crypto.getRandomValues(new Uint8Array(NONCE_BYTES)))}`;
  const statement = write(key.instance, nonce);
  const how = { name: KIND.name, hash: "SHA-256" };
  return { statement, signature: base64url(await crypto.subtle.sign(how, key.private, new TextEncoder().encode(statement))) };
}

// Send a request signed with the given key, which may not be confirmed yet. If the daemon refused it because of this
// machine's clock, sign and send it once more with the corrected time.
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

// Return the options of every request to the daemon.
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

// Return whether the answer's Date shows that the assumed clock difference was wrong, and correct the difference. The
// browser may run on another machine than the daemon.
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

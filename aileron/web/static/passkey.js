// Creates passkeys and signatures with the browser's authenticator, in the daemon's format.

export async function assertion({ nonce, options }) {
  const credential = await asked(() => navigator.credentials.get({
    publicKey: { ...options, challenge: bytes(options.challenge), allowCredentials: described(options.allowCredentials) },
  }));
  return credential && { nonce, credential: written(credential, ["clientDataJSON", "authenticatorData", "signature"]) };
}

// Sign with a passkey of this site that the person chooses. Return it with the ID of its user, or null.
export async function discovered(challenge, rpId) {
  const publicKey = { challenge: bytes(challenge), rpId, userVerification: "required" };
  const credential = await asked(() => navigator.credentials.get({ publicKey }));
  return credential && written(credential, ["clientDataJSON", "authenticatorData", "signature", "userHandle"]);
}

export async function made(options) {
  const credential = await asked(() => navigator.credentials.create({
    publicKey: {
      ...options,
      challenge: bytes(options.challenge),
      user: { ...options.user, id: bytes(options.user.id) },
      excludeCredentials: described(options.excludeCredentials),
    },
  }));
  return credential && written(credential, ["clientDataJSON", "attestationObject"]);
}

// Return the challenge with which a passkey signs a text.
export async function digest(statement) {
  return text(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(statement)));
}

let asking = false;

// Return the result of the browser's dialog, or null if the user dismissed it or another dialog is open.
async function asked(ask) {
  if (asking) return null;
  asking = true;
  try {
    return await ask();
  } catch (error) {
    return null;
  } finally {
    asking = false;
  }
}

function described(credentials = []) {
  return credentials.map((each) => ({ ...each, id: bytes(each.id) }));
}

function written({ id, rawId, type, response }, names) {
  const texts = Object.fromEntries(names.map((name) => [name, text(response[name])]));
  return { id, rawId: text(rawId), type, response: texts, clientExtensionResults: {} };
}

function bytes(base64url) {
  const plain = atob(base64url.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (character) => character.charCodeAt(0));
}

function text(buffer) {
  const plain = btoa(String.fromCharCode(...new Uint8Array(buffer)));
  return plain.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

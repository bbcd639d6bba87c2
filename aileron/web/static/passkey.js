// What the browser's authenticator makes and signs, in the form in which it is sent.

export async function assertion({ nonce, options }) {
  const credential = await asked(() => navigator.credentials.get({
    publicKey: { ...options, challenge: bytes(options.challenge), allowCredentials: described(options.allowCredentials) },
  }));
  return credential && { nonce, credential: written(credential, ["clientDataJSON", "authenticatorData", "signature"]) };
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

// Dismissing the browser's dialog means no: that is not an error.
async function asked(ask) {
  try {
    return await ask();
  } catch (error) {
    return null;
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

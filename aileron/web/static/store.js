// The browser's storage for all tabs of this origin: keys that sign, and whose private part cannot be read.

const DATABASE = "aileron";
const STORE = "keys";

function database() {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open(DATABASE, 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(STORE);
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
}

async function within(mode, work) {
  const found = await database();
  try {
    return await new Promise((resolve, reject) => {
      const transaction = found.transaction(STORE, mode);
      const asked = work(transaction.objectStore(STORE));
      transaction.oncomplete = () => resolve(asked.result);
      transaction.onabort = () => reject(transaction.error);
    });
  } finally {
    found.close();
  }
}

export function read(name) {
  return within("readonly", (store) => store.get(name));
}

export function write(name, value) {
  return within("readwrite", (store) => store.put(value, name));
}

// Store a key and delete all others.
export function replaceAll(name, value) {
  return within("readwrite", (store) => {
    store.clear();
    return store.put(value, name);
  });
}

// Delete the key with this name, unless it was replaced by one with another ID.
export function remove(name, id) {
  return within("readwrite", (store) => {
    const asked = store.get(name);
    asked.onsuccess = () => { if (asked.result?.id === id) store.delete(name); };
    return asked;
  });
}

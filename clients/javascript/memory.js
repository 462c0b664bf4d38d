/** Where a client keeps reports and their costs: one content, changed whole. Another memory is an object with `update`.
 *
 * `update(change)` keeps `change(content)`, undefined at first, before its promise is fulfilled with it, lets nobody come
 * between, and keeps nothing where `change` throws. The content is the smallest lifetime epsilon that was stated, and answers.
 */
import { DataError } from "./protocol.js";

const EMPTY = { version: 1, lifetime: null, answers: {} };

/** In the browser's IndexedDB, on disk before a report is given out. Tabs and workers of one origin share it. */
export class BrowserMemory {
  constructor(name = "ldptree") {
    this.name = name;
  }

  async update(change) {
    const opening = indexedDB.open(this.name, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("kept");
    const database = await done(opening);
    try {
      const transaction = database.transaction("kept", "readwrite", { durability: "strict" });
      const store = transaction.objectStore("kept");
      const kept = change(await done(store.get("content")));
      store.put(kept, "content");
      await done(transaction);
      return kept;
    } finally {
      database.close();
    }
  }
}

/** A promise of what a request gives, or that a transaction is on disk. */
const done = (request) => new Promise((resolve, reject) => {
  request.onsuccess = request.oncomplete = () => resolve(request.result);
  request.onerror = request.onabort = () => {
    reject(new DataError(`memory: nothing can be kept here (${request.error?.name}); free space, or leave private browsing`));
  };
});

/** For simulations and tests: it forgets with the page, and who forgets is asked again. */
export class ForgetfulMemory {
  #content;

  async update(change) {
    this.#content = change(this.#content);
    return this.#content;
  }
}

export const isAmount = (epsilon, most = 1000) => typeof epsilon === "number" && epsilon > 0 && epsilon <= most;

/** Change what a memory keeps, if it is what a client keeps. */
export function keep(memory, change) {
  return memory.update((content = EMPTY) => {
    if (isContent(content)) return change(content);
    throw new DataError("memory: it is damaged. Restore it from a copy: whoever answered before would answer twice");
  });
}

function isContent({ version, lifetime, answers }) {
  const isAnswer = ({ holder, epsilon, report }) => isAmount(epsilon) && typeof holder === "string" && typeof report === "string";
  return version === 1 && (lifetime === null || isAmount(lifetime)) && Object.values(answers).every(isAnswer);
}

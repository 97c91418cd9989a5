// Changes go to the server one after another, each under a key of its own, until it has answered.
export const state = JSON.parse(document.getElementById("state").textContent);
export const status = document.getElementById("status");

const PAUSES_MS = [500, 1000, 2000, 4000, 8000, 15000];
// Longer than the server waits for its database, and than a reply's line is silent. A network that
// is gone need not say so.
const SILENCE_MS = 45000;

// Not crypto.randomUUID: a page served over plain HTTP in a local network does not have it.
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((one) => one.toString(16).padStart(2, "0")).join("");
}

export const pause = (ms) => new Promise((go) => setTimeout(go, ms));

// What `promise` brings, or an error where it brings nothing for long.
export function unlessSilent(promise, giveUp) {
  let timer = 0;
  const silence = new Promise((_, fail) => {
    timer = setTimeout(() => { fail(new Error("silence")); giveUp(); }, SILENCE_MS);
  });
  return Promise.race([promise, silence]).finally(() => clearTimeout(timer));
}

export function post(path, body) {
  const stop = new AbortController();
  const answer = fetch(path, {
    method: "POST",
    signal: stop.signal,
    headers: { "Content-Type": "application/json", "X-Palate-Token": state.token },
    body: JSON.stringify(body),
  });
  return unlessSilent(answer, () => stop.abort());
}

export class NotDone extends Error {
  constructor(problem, said) {
    super(said);
    this.problem = problem;
  }
}

// Sends until there is an answer; the key makes sure that it counts once.
export async function send(path, body, onTrouble) {
  for (let attempt = 0; ; attempt += 1) {
    let response = null;
    try {
      response = await post(path, body);
    } catch { /* no network: tried again below */ }
    if (response && response.ok) return response.json();
    if (response && response.status < 500 && response.status !== 429) {
      const told = await response.json().catch(() => ({}));
      throw new NotDone(told.problem, told.said);
    }
    onTrouble(response ? response.status : 0);
    await pause(PAUSES_MS[Math.min(attempt, PAUSES_MS.length - 1)]);
  }
}

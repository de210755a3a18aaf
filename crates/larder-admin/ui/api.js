// The admin address, asked by fetch.
//
// In: a path and its parameters. Out: JSON, or a Failure with the status and larder's own sentence. The token is kept in
// the tab and sent as a field: a cookie could be used by other pages, and a URL ends in logs. Streams are read by fetch
// too, because EventSource cannot send a field.

const KEPT = 'larder-token';

/** Why there is no answer. */
export class Failure extends Error {
  /** @param {number} status @param {any} json */
  constructor(status, json) {
    super(json?.message ?? json?.problems?.map((/** @type {any} */ one) => one.message).join('; ') ?? `larder answered ${status}`);
    this.status = status;
    this.json = json;
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEPT) ?? '',
  /** @param {string} value */
  set: (value) => (value ? sessionStorage.setItem(KEPT, value) : sessionStorage.removeItem(KEPT)),
};

function fields() {
  /** @type {Record<string, string>} */
  const all = { Accept: 'application/json' };
  // A field takes no other characters; such a token is wrong anyway.
  const kept = token.get().replace(/[^\x21-\x7e]/g, '?');
  if (kept) all.Authorization = `Bearer ${kept}`;
  return all;
}

/** @param {string} path @param {Record<string, string | number | boolean | null | undefined>} [parameters] */
export function address(path, parameters) {
  const known = Object.entries(parameters ?? {}).filter(([, value]) => value !== null && value !== undefined && value !== '');
  if (!known.length) return path;
  return `${path}?${known.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&')}`;
}

/** @param {Response} response */
async function read(response) {
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    return { message: text.slice(0, 300) };
  }
}

/**
 * @param {string} path
 * @param {Record<string, any>} [parameters]
 * @param {{ method?: string, json?: unknown, signal?: AbortSignal, takes?: number[] }} [how] `takes`: statuses beside 2xx whose content is an answer
 */
export async function ask(path, parameters, how = {}) {
  const headers = fields();
  if (how.json !== undefined) headers['Content-Type'] = 'application/json';
  const response = await fetch(address(path, parameters), {
    method: how.method ?? 'GET',
    headers,
    body: how.json === undefined ? undefined : JSON.stringify(how.json),
    signal: how.signal,
    cache: 'no-store',
    credentials: 'omit',
  });
  const json = await read(response);
  if (!response.ok && !how.takes?.includes(response.status)) throw new Failure(response.status, json);
  return { status: response.status, json };
}

/** @param {string} path @param {Record<string, any>} [parameters] @param {AbortSignal} [signal] @returns {Promise<any>} */
export const get = async (path, parameters, signal) => (await ask(path, parameters, { signal })).json;

/** Splits a stream of events. @param {(name: string, data: string) => void} heard */
export function splitter(heard) {
  let rest = '';
  return (/** @type {string} */ piece) => {
    rest += piece;
    for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
      const block = rest.slice(0, end);
      rest = rest.slice(end + 2);
      let name = 'message';
      const data = [];
      for (const line of block.split('\n')) {
        if (line.startsWith('event:')) name = line.slice(6).trim();
        else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
      }
      if (data.length || name !== 'message') heard(name, data.join('\n'));
    }
  };
}

/** A stream is silent for no longer than a comment every 15 s allows. */
const SILENCE_MAX_MS = 35000;

/**
 * Reads a stream until it ends, is closed, or fails.
 * @param {string} path
 * @param {Record<string, any>} parameters
 * @param {AbortSignal} signal
 * @param {{ opened: () => void, heard: (name: string, data: any) => void }} to
 */
export async function stream(path, parameters, signal, to) {
  const silence = new AbortController();
  const close = () => silence.abort();
  signal.addEventListener('abort', close);
  let timer = setTimeout(close, SILENCE_MAX_MS);
  try {
    const headers = { ...fields(), Accept: 'text/event-stream' };
    const response = await fetch(address(path, parameters), { headers, signal: silence.signal, cache: 'no-store', credentials: 'omit' });
    if (!response.ok || !response.body) throw new Failure(response.status, await read(response));
    to.opened();
    const take = splitter((name, data) => {
      let value = null;
      try {
        value = data ? JSON.parse(data) : null;
      } catch {
        return;
      }
      to.heard(name, value);
    });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(close, SILENCE_MAX_MS);
      take(value);
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', close);
  }
}

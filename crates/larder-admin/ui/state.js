// What the page knows: who answers, the last second, the stream, and what was chosen.
//
// In: the stream, and `now` every five seconds where a page wants it. Out: one object that pages read, and a hook that
// draws them again after each change. A tab has one stream; a hidden tab has none. What came last stays when the stream
// breaks, with its time, so that old figures are never taken for new ones.

import { useEffect, useLayoutEffect, useState } from './vendor/preact-hooks.js';
import { Failure, get, stream } from './api.js';

/** `step`: seconds between two points of a picture; `coarse`: where only a mean is shown. */
export const WINDOWS = [
  { seconds: 600, name: '10 min', words: '10 minutes', step: 5, coarse: 30 },
  { seconds: 10800, name: '3 h', words: '3 hours', step: 30, coarse: 300 },
  { seconds: 86400, name: '24 h', words: '24 hours', step: 300, coarse: 3600 },
];

export const EVENTS_MAX = 256;
const REQUESTS_MAX = 400;
const ABOUT_MS = 1000;

export const app = {
  /** @type {any} */ about: null,
  /** @type {any} */ now: null,
  /** Why there is no `now`. */
  nowFault: '',
  /** @type {{ at: number, values: Record<string, number> } | null} */ tick: null,
  /** @type {{ state: 'connecting' | 'live' | 'lost' | 'token' | 'hidden', since: number, why: string, retry: number }} */
  link: { state: 'connecting', since: Date.now(), why: '', retry: 0 },
  /** How often the stream came back: what was asked for before it broke is asked for again. */
  returns: 0,
  /** @type {any[]} */ events: [],
  /** @type {any[]} */ requests: [],
  skipped: 0,
  stopped: false,
  filterFault: '',
  window: Number(sessionStorage.getItem('larder-window')) || 600,
  compare: sessionStorage.getItem('larder-compare') === 'yes',
};

let firstDrawn = () => {};
const pictured = new Promise((/** @type {(value?: unknown) => void} */ done) => {
  firstDrawn = () => void requestAnimationFrame(() => setTimeout(done));
  setTimeout(done, ABOUT_MS);
});

/** Figures came that a page draws. */
export const figuresCame = () => firstDrawn();

/** @type {Set<() => void>} */
const watchers = new Set();
/** @type {Set<(tick: { at: number, values: Record<string, number> }) => void>} */
const tickers = new Set();
let drawn = 0;

/** Draws what has changed, once a frame. */
export function changed() {
  if (drawn) return;
  drawn = window.setTimeout(() => {
    drawn = 0;
    watchers.forEach((watcher) => watcher());
  }, 30);
}

/** @param {(tick: any) => void} heard */
export function onTick(heard) {
  tickers.add(heard);
  return () => void tickers.delete(heard);
}

/** The state, in a component that is drawn again when it changes. */
export function useApp() {
  const [, draw] = useState(0);
  useEffect(() => {
    const watcher = () => draw((count) => count + 1);
    watchers.add(watcher);
    return () => void watchers.delete(watcher);
  }, []);
  return app;
}

/** @param {number} seconds */
export function chooseWindow(seconds) {
  app.window = seconds;
  sessionStorage.setItem('larder-window', String(seconds));
  changed();
}

/** @param {boolean} on */
export function chooseCompare(on) {
  app.compare = on;
  sessionStorage.setItem('larder-compare', on ? 'yes' : 'no');
  changed();
}

const chosen = () => WINDOWS.find((one) => one.seconds === app.window);
/** Whether larder keeps no figures of the past: pictures begin when they are opened. */
export const isWithoutPast = () => app.about?.history === 0;
export const windowWords = () => (isWithoutPast() ? 'the time since this page was opened' : (chosen()?.words ?? `${app.window} s`));
export const windowStep = (coarse = false) => (coarse ? chosen()?.coarse : chosen()?.step) ?? 60;

/** larder's clock; the browser's may be another. */
export const serverNow = () => app.tick?.at ?? app.now?.at ?? app.about?.now ?? Date.now() / 1000;

/** What is known of the last minute, or where nothing is remembered, of the last second. @returns {{ values: Record<string, number>, words: string }} */
export const lately = () =>
  isWithoutPast() ? { values: app.tick?.values ?? {}, words: 'the last second' } : { values: app.now?.minute ?? {}, words: 'the last minute' };

/** @type {{ requests: string, recent: number, all?: boolean } | null} */
let wanted = null;
/** @type {AbortController | null} */
let open = null;
let waiting = 0;

/** @param {'connecting' | 'live' | 'lost' | 'token' | 'hidden'} state @param {string} [why] */
function linked(state, why = '') {
  if (app.link.state !== state) app.link = { ...app.link, state, since: Date.now(), why };
  else app.link.why = why;
  changed();
}

/** @param {string} name @param {any} data */
function heard(name, data) {
  if (name === 'tick' && data) {
    app.tick = data;
    tickers.forEach((ticker) => ticker(data));
  } else if (name === 'event' && data) {
    app.events = [data, ...app.events].slice(0, EVENTS_MAX);
    // Its config, its health or its token may be others now.
    loadAbout().catch(() => {});
  } else if (name === 'request' && data) {
    if (app.stopped) app.skipped += 1;
    else app.requests = [data, ...app.requests].slice(0, REQUESTS_MAX);
  } else if (name === 'skipped') {
    app.skipped += Number(data?.skipped ?? data) || 0;
  }
  changed();
}

/** Asks who answers; tells whether anybody does. */
export async function loadAbout() {
  app.about = await get('/api/v1/about');
  changed();
}

async function loadEvents() {
  app.events = (await get('/api/v1/events')).events ?? [];
  changed();
}

async function run() {
  if (open || document.hidden) return;
  const own = new AbortController();
  open = own;
  const parameters = wanted ? { requests: wanted.requests, tick: 1, recent: wanted.recent, all: wanted.all ? 'true' : '' } : { tick: 1, samples: 0 };
  try {
    await stream('/api/v1/live', parameters, own.signal, {
      opened: () => {
        app.link.retry = 0;
        if (wanted) app.requests = [];
        if (app.link.state !== 'live' && app.link.state !== 'connecting') app.returns += 1;
        linked('live');
        // Words are long: the first picture goes before them.
        void (app.about ? loadAbout() : pictured.then(loadAbout)).catch(() => {});
        loadEvents().catch(() => {});
      },
      heard,
    });
    lost(own, 'the stream ended');
  } catch (error) {
    if (error instanceof Failure && (error.status === 401 || error.status === 429)) {
      open = null;
      return linked('token', error.status === 429 ? error.message : 'asked');
    }
    if (error instanceof Failure && error.status === 400 && wanted) {
      app.filterFault = error.message;
      wanted = null;
      if (open === own) open = null;
      return void run();
    }
    lost(own, error instanceof Failure ? error.message : 'larder does not answer');
  }
}

/** Tries again later, ever later up to 15 s. @param {AbortController} own @param {string} why */
function lost(own, why) {
  if (open !== own) return;
  open = null;
  if (document.hidden) return linked('hidden');
  app.link.retry = Math.min(app.link.retry + 1, 6);
  linked('lost', why);
  const wait = Math.min(500 * 2 ** app.link.retry, 15000) * (0.8 + 0.4 * Math.random());
  clearTimeout(waiting);
  waiting = window.setTimeout(() => void run(), wait);
}

/** Closes the stream and opens the one that is wanted. */
export function restart() {
  clearTimeout(waiting);
  const last = open;
  open = null;
  last?.abort();
  void run();
}

/** What the stream should have: requests by a filter, or none. @param {{ requests: string, recent: number, all?: boolean } | null} next */
export function follow(next) {
  if (next === null || next.requests !== wanted?.requests) app.filterFault = '';
  if (JSON.stringify(next) === JSON.stringify(wanted)) return;
  wanted = next;
  app.skipped = 0;
  restart();
}

setInterval(() => app.link.state === 'live' && loadAbout().catch(() => {}), 30000);

document.addEventListener('visibilitychange', () => {
  if (document.hidden) {
    clearTimeout(waiting);
    const last = open;
    open = null;
    last?.abort();
    linked('hidden');
  } else restart();
});

/** Figures of this moment every five seconds, while a page is open that shows them. */
export function useNow() {
  useLayoutEffect(() => {
    const own = new AbortController();
    const load = () => {
      if (document.hidden || app.link.state === 'token') return;
      get('/api/v1/now', {}, own.signal).then(
        (now) => {
          app.now = now;
          app.nowFault = '';
          changed();
        },
        (error) => {
          if (own.signal.aborted) return;
          app.nowFault = error.message;
          changed();
        },
      );
    };
    load();
    const timer = setInterval(load, 5000);
    return () => {
      clearInterval(timer);
      own.abort();
    };
  }, [app.returns]);
  return app.now;
}

// Series of the chosen window, and the same an hour before.
//
// In: names of series, with wildcards. Out: times and values that grow with each tick; in longer windows they are asked
// for again once a step has passed. What is not known stays null, so that a restart is a gap and never a zero.

import { useEffect, useRef, useState } from './vendor/preact-hooks.js';
import { get } from './api.js';
import { app, onTick } from './state.js';

/**
 * @typedef {{ step: number, times: number[], values: Record<string, (number | null)[]> }} Series
 * @typedef {{ now: Series | null, before: Series | null, failed: string }} Past
 */

export const HOUR = 3600;

/** @param {any} json @returns {Series} */
function read(json) {
  const values = json.values ?? {};
  const length = Math.max(0, ...Object.values(values).map((/** @type {any} */ list) => list.length));
  const first = json.from ?? json.at - json.step * (length - 1);
  return { step: json.step, times: Array.from({ length }, (_, index) => first + index * json.step), values };
}

/** @param {Series} series @param {{ at: number, values: Record<string, number> }} tick @param {string[]} names @param {number} span */
function append(series, tick, names, span) {
  const last = series.times[series.times.length - 1] ?? tick.at - 1;
  if (tick.at <= last) return;
  const gap = Math.min(Math.round(tick.at - last) - 1, span);
  for (let index = 1; index <= gap; index += 1) {
    series.times.push(last + index);
    Object.values(series.values).forEach((list) => list.push(null));
  }
  const wild = names.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1));
  for (const name of Object.keys(tick.values)) {
    if (!(name in series.values) && wild.some((start) => name.startsWith(start))) {
      // What is counted for the first time was zero since the start, and is not known before.
      series.values[name] = series.times.map((at) => (at < (app.about?.started ?? 0) ? null : 0));
    }
  }
  series.times.push(tick.at);
  for (const [name, list] of Object.entries(series.values)) list.push(tick.values[name] ?? 0);
  const spare = series.times.length - span - 1;
  if (spare > 0) {
    series.times.splice(0, spare);
    Object.values(series.values).forEach((list) => list.splice(0, spare));
  }
}

/**
 * @param {string[]} names
 * @param {{ always?: boolean, coarse?: boolean }} [how] `always`: an hour before is wanted in any case; `coarse`: only means are, so ten seconds a step will do
 * @returns {Past}
 */
export function usePast(names, { always = false, coarse = false } = {}) {
  const [, draw] = useState(0);
  const held = useRef(/** @type {Past & { key: string }} */ ({ key: '', now: null, before: null, failed: '' }));
  const asked = names.join(',');
  const { window } = app;
  const compare = app.compare || always;
  const live = app.link.state === 'live';
  useEffect(() => {
    const own = new AbortController();
    const key = `${asked} ${window}`;
    if (held.current.key !== key) held.current = { key, now: null, before: null, failed: '' };
    const set = (/** @type {Partial<Past>} */ part) => {
      Object.assign(held.current, part);
      draw((count) => count + 1);
    };
    const failed = (/** @type {any} */ error) => own.signal.aborted || set({ failed: error.message });
    const load = () =>
      get('/api/v1/series', { names: asked, from: window, step: coarse && window <= 600 ? 10 : undefined }, own.signal).then(
        (json) => set({ now: read(json), failed: '' }),
        failed,
      );
    // A little more than the window, so that it lasts until it is asked for again.
    const loadBefore = () =>
      get('/api/v1/series', { names: asked, from: window + HOUR, to: HOUR - 90 }, own.signal).then(
        (json) => set({ before: read(json) }),
        failed,
      );
    if (!asked || app.link.state === 'token') return () => own.abort();
    void load();
    if (compare) void loadBefore();
    else held.current.before = null;
    const fine = window <= 600 && !coarse;
    const timers = [setInterval(() => document.hidden || load(), fine ? 300000 : window <= 10800 ? 10000 : 60000)];
    if (compare) timers.push(setInterval(() => document.hidden || loadBefore(), 60000));
    const stop = onTick((tick) => {
      if (fine && held.current.now) append(held.current.now, tick, names, window);
    });
    return () => {
      own.abort();
      stop();
      timers.forEach(clearInterval);
    };
  }, [asked, window, compare, live]);
  return held.current;
}

/** The mean over a series; null where nothing is known. @param {Series | null} series @param {string} name */
export function mean(series, name) {
  const known = (series?.values[name] ?? []).filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + (value ?? 0), 0) / known.length : null;
}

/** The last value that is known. @param {Series | null} series @param {string} name */
export function last(series, name) {
  const list = series?.values[name] ?? [];
  for (let index = list.length - 1; index >= 0 && index > list.length - 10; index -= 1) {
    if (list[index] !== null) return list[index] ?? null;
  }
  return null;
}

/** Means of every series, by name. @param {Series | null} series @returns {Record<string, number>} */
export function means(series) {
  /** @type {Record<string, number>} */
  const all = {};
  for (const name of Object.keys(series?.values ?? {})) all[name] = mean(series, name) ?? 0;
  return all;
}

/** Names that begin so, with what follows. @param {Record<string, any>} values @param {string} start */
export function below(values, start) {
  return Object.keys(values)
    .filter((name) => name.startsWith(start))
    .map((name) => ({ word: name.slice(start.length), value: values[name] }));
}

/** How a name stands in a series' name. @param {string} name */
export const encoded = (name) => name.replace(/[%:,&=?# \u0000-\u001f\u007f-\u009f]/g, (found) => encodeURIComponent(found));

/** @param {string} name */
export function decoded(name) {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** Where larder was restarted within the window. @param {Series | null} series */
export function restarted(series) {
  const first = series?.times[0];
  const started = app.about?.started;
  return first !== undefined && started && started > first + 2 ? started : null;
}

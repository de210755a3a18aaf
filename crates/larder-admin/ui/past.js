// Series of the chosen window, and the same an hour before.
//
// In: names of series, with wildcards. Out: times and values that grow with each tick; in longer windows they are asked
// for again once a step has passed. Steps are wide enough that a first answer is small. What is not known stays null, so that a restart is a gap and never a zero.

import { useLayoutEffect, useRef, useState } from './vendor/preact-hooks.js';
import { get } from './api.js';
import { app, figuresCame, isWithoutPast, onTick, windowStep } from './state.js';

/**
 * @typedef {{ step: number, times: number[], values: Record<string, (number | null)[]>, heard?: number }} Series
 * @typedef {{ now: Series | null, before: Series | null, failed: string }} Past
 */

export const HOUR = 3600;

/** @param {any} json @returns {Series} */
function read(json) {
  const values = json.values ?? {};
  const isKnown = Object.values(values).some((/** @type {any} */ list) => list.some((/** @type {any} */ value) => value !== null));
  if (!isKnown) return { step: json.step, times: [], values: {}, heard: json.newest };
  const length = Math.max(0, ...Object.values(values).map((/** @type {any} */ list) => list.length));
  const first = json.from ?? json.at - json.step * (length - 1);
  return { step: json.step, times: Array.from({ length }, (_, index) => first + index * json.step), values, heard: json.newest };
}

/** What has no value while nothing happens, and is not zero then. */
const SPARSE = /:(p50|p99|evicted_age)$/;

/** @param {Series} series @param {{ at: number, values: Record<string, number> }} tick @param {string[]} names @param {number} span */
function append(series, tick, names, span) {
  if (tick.at <= (series.heard ?? 0)) return;
  series.heard = tick.at;
  const wild = names.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1));
  const isAsked = (/** @type {string} */ name) => names.includes(name) || wild.some((start) => name.startsWith(start));
  for (const name of Object.keys(tick.values)) {
    if (!(name in series.values) && isAsked(name)) {
      const others = Object.values(series.values);
      series.values[name] = series.times.map((_, index) =>
        SPARSE.test(name) || others.every((list) => list[index] === null) ? null : 0,
      );
    }
  }
  const lists = Object.entries(series.values);
  let end = series.times[series.times.length - 1] ?? tick.at;
  if (!series.times.length) {
    series.times.push(end);
    lists.forEach(([, list]) => list.push(null));
  }
  if (tick.at - end > span) end = tick.at - span;
  while (tick.at > end + 0.5) {
    end += series.step;
    series.times.push(end);
    lists.forEach(([, list]) => list.push(null));
  }
  // The last point is a mean over its seconds so far; a second that was missed has no part in it.
  const heard = Math.max(0, Math.round(series.step - (end - tick.at)) - 1);
  for (const [name, list] of lists) {
    const value = tick.values[name] ?? (SPARSE.test(name) ? null : 0);
    const old = list[list.length - 1] ?? null;
    if (value !== null) list[list.length - 1] = old === null ? value : (old * heard + value) / (heard + 1);
  }
  const spare = series.times.length - Math.ceil(span / series.step) - 1;
  if (spare > 0) {
    series.times.splice(0, spare);
    lists.forEach(([, list]) => list.splice(0, spare));
  }
}

/**
 * @param {string[]} names
 * @param {{ always?: boolean, coarse?: boolean }} [how] `always`: an hour before is wanted in any case; `coarse`: only means are shown, so few points will do
 * @returns {Past}
 */
export function usePast(names, { always = false, coarse = false } = {}) {
  const [, draw] = useState(0);
  const held = useRef(/** @type {Past & { key: string }} */ ({ key: '', now: null, before: null, failed: '' }));
  const asked = names.join(',');
  const { window } = app;
  const compare = app.compare || always;
  // Before the frame is drawn, so that the answer is on its way meanwhile.
  useLayoutEffect(() => {
    const own = new AbortController();
    const key = `${asked} ${window}`;
    if (held.current.key !== key) held.current = { key, now: null, before: null, failed: '' };
    const set = (/** @type {Partial<Past>} */ part) => {
      Object.assign(held.current, part);
      draw((count) => count + 1);
    };
    const step = windowStep(coarse);
    const fine = window <= 600 && !coarse;
    let again = 0;
    // Ticks that come while an answer is on its way are not in it.
    /** @type {any[]} */
    const lately = [];
    const show = (/** @type {any} */ json) => {
      const now = read(json);
      if (fine) lately.forEach((tick) => append(now, tick, names, window));
      set({ now, failed: '' });
      figuresCame();
    };
    const failed = (/** @type {any} */ error) => {
      if (own.signal.aborted) return;
      set({ failed: error.message });
      again = setTimeout(load, 5000);
    };
    const load = () =>
      (isWithoutPast() && held.current.now) ||
      get('/api/v1/series', { names: asked, from: window, step }, own.signal).then(show, failed);
    // A little more than the window, so that it lasts until it is asked for again.
    const old = { names: asked, from: window + HOUR, to: HOUR - 90, step: Math.max(step, 10) };
    const loadBefore = () => get('/api/v1/series', old, own.signal).then((json) => set({ before: known(read(json)) }), () => {});
    if (!asked || app.link.state === 'token') return () => own.abort();
    void load();
    if (compare) void loadBefore();
    else held.current.before = null;
    const timers = [setInterval(() => document.hidden || load(), fine ? 300000 : step * 1000)];
    if (compare) timers.push(setInterval(() => document.hidden || loadBefore(), 60000));
    const stop = onTick((tick) => {
      lately.push(tick);
      if (lately.length > 60) lately.shift();
      if ((fine || isWithoutPast()) && held.current.now) append(held.current.now, tick, names, window);
    });
    return () => {
      own.abort();
      clearTimeout(again);
      stop();
      timers.forEach(clearInterval);
    };
  }, [asked, window, compare, app.returns]);
  return held.current;
}

/** A series, unless nothing is known of its time. @param {Series} series */
const known = (series) => (series.times.length ? series : null);

/** How often it happened, as far as is known: rates by the time that they stand for. @param {Series | null} series @param {string} name */
export const total = (series, name) => (series?.values[name] ?? []).reduce((/** @type {number} */ sum, value) => sum + (value ?? 0), 0) * (series?.step ?? 0);

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
export const encoded = (name) => name.replace(/[%:,&=?#+ \u0000-\u001f\u007f-\u009f]/g, (found) => encodeURIComponent(found));

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

// The two pictures over time: requests by result, and how long answers took.
//
// In: series of the window. Out: stacked areas, and a heat map with p50 and p99.

import { useEffect, useState } from '../vendor/preact-hooks.js';
import { html } from '../vendor/htm-preact.js';
import { get } from '../api.js';
import { clock, rate, seconds } from '../format.js';
import { HOUR, last, mean } from '../past.js';
import { app, isWithoutPast, windowStep, windowWords } from '../state.js';
import { results } from '../words.js';
import { HeatMap } from './heat.js';
import { Picture } from './picture.js';
import { Series } from './series.js';

/** Some rows of a series, for its table. @param {number[]} times @param {number} most */
export function rowsOf(times, most = 30) {
  const step = Math.max(1, Math.ceil(times.length / most));
  return times
    .map((at, index) => ({ at, index }))
    .filter(({ index }) => (times.length - 1 - index) % step === 0)
    .reverse();
}

/** All results together, for the dotted line. @param {import('../past.js').Series} series */
function total(series) {
  const lists = Object.entries(series.values)
    .filter(([name]) => name.startsWith('result.'))
    .map(([, list]) => list);
  return series.times.map((_, index) =>
    lists.reduce((/** @type {number | null} */ sum, list) => (list[index] === null ? sum : (sum ?? 0) + (list[index] ?? 0)), null),
  );
}

/** @param {{ past: import('../past.js').Past }} props */
export function Traffic({ past }) {
  const series = past.now;
  if (!series) return null;
  const words = results((word) => (mean(series, `result.${word}`) ?? 0) > 0).filter((word) => (mean(series, `result.${word}`) ?? 0) > 0);
  // The origins' part lies at the bottom, where its height can be read.
  const order = [...words].reverse();
  const lines = order.map((word) => ({ name: word, colour: `r-${word}`, values: series.values[`result.${word}`] ?? [] }));
  const all = total(series).filter((value) => value !== null);
  const sentence = `Requests by result in ${windowWords()}: between ${rate(Math.min(...all.map(Number)))} and ${rate(Math.max(...all.map(Number)))}.`;
  const before =
    app.compare && past.before
      ? [
          { times: past.before.times, values: total(past.before), name: 'all, an hour before' },
          { times: past.before.times, values: past.before.values['result.asked'] ?? [], name: 'asked' },
        ]
      : [];
  return html`<${Picture} title="Requests by result" note=${`per second, ${windowWords()}`} sentence=${sentence}
    columns=${[{ key: 'at', name: 'time', cell: (/** @type {any} */ row) => clock(row.at, true) },
      ...words.map((word) =>
        ({ key: word, name: word, number: true, cell: (/** @type {any} */ row) => rate(series.values[`result.${word}`]?.[row.index]) }))]}
    rows=${rowsOf(series.times)}><${Series} times=${series.times} lines=${lines} stack=${true} before=${before} unit=${rate} /><//>`;
}

/** @param {string} of @returns {import('./heat.js').Heat | null} */
function useHeat(of) {
  const [heat, set] = useState(/** @type {any} */ (null));
  const { window } = app;
  useEffect(() => {
    const own = new AbortController();
    const load = () =>
      document.hidden || get('/api/v1/latency', { of, from: window, step: windowStep() }, own.signal).then(set, () => {});
    if (isWithoutPast()) return undefined;
    load();
    const timer = setInterval(load, window <= 600 ? 5000 : 30000);
    return () => {
      own.abort();
      clearInterval(timer);
    };
  }, [of, window, app.returns]);
  return heat;
}

/** @param {{ past: import('../past.js').Past, of: string, title?: string }} props `of`: `all`, or what the API knows */
export function Latencies({ past, of, title = 'Time to answer' }) {
  const heat = useHeat(of);
  const series = past.now;
  const name = of.startsWith('origin/') ? `origin:${of.slice(7)}:` : `latency:${of}:`;
  if (!series) return null;
  const line = (
    /** @type {import('../past.js').Series} */ from,
    /** @type {string} */ what,
    /** @type {number[]} */ dash,
    /** @type {number} */ shift,
  ) => ({ times: from.times, values: from.values[name + what] ?? [], name: what, dash, shift });
  const before = app.compare && past.before ? [line(past.before, 'p50', [2, 4], HOUR), line(past.before, 'p99', [2, 4], HOUR)] : [];
  const sentence = `${title} in ${windowWords()}: half of the answers within ${seconds(mean(series,
    `${name}p50`))}, 99 of 100 within ${seconds(mean(series, `${name}p99`))}.`;
  return html`<${Picture} title=${title} note=${`${windowWords()}; each row is twice as long as the one below`} sentence=${sentence}
    columns=${[{ key: 'at', name: 'time', cell: (/** @type {any} */ row) => clock(row.at, true) },
      ...['p50', 'p99'].map((what) =>
        ({ key: what, name: what, number: true, cell: (/** @type {any} */ row) => seconds(series.values[name + what]?.[row.index]) }))]}
    rows=${rowsOf(series.times)}>
      ${isWithoutPast()
        ? html`<p>p50 ${seconds(last(series, `${name}p50`))}, p99 ${seconds(last(series, `${name}p99`))} in the last seconds.</p>
          <p class="none">There is no past to draw here, as <code>history</code> in <code>[live]</code> is <code>0s</code>.</p>`
        : html`<${HeatMap} heat=${heat} lines=${[...before, line(series, 'p50', [], 0), line(series, 'p99', [6, 4], 0)]} />`}<//>`;
}

// How old responses were when memory let go of them for room.
//
// In: a store and its series. Out: a sentence with the age, and its line over time. An age that is shorter than the lifetime of
// the responses says that the store is too small for them.

import { html } from '../vendor/htm-preact.js';
import { clock, shown, span } from '../format.js';
import { encoded, mean } from '../past.js';
import { app, windowWords } from '../state.js';
import { Picture } from './picture.js';
import { Series } from './series.js';
import { rowsOf } from './traffic.js';

/** @param {{ store: any, past: import('../past.js').Past }} props */
export function Evicted({ store, past }) {
  const name = `store:${encoded(store.name)}:evicted_age`;
  const series = past.now;
  const values = series?.values[name] ?? [];
  const now = mean(series, name);
  if (!series || now === null)
    return html`<p class="none">Memory let go of nothing for room in ${windowWords()}${store.evicted_age
      ? `; since the start, what it let go of was ${span(store.evicted_age)} old` : ''}.</p>`;
  const then = app.compare ? mean(past.before, name) : null;
  const before =
    app.compare && past.before ? [{ times: past.before.times, values: past.before.values[name] ?? [] }] : [];
  const sentence = `${shown(store.name)} evicted after ${span(now)} in ${windowWords()}${then === null ? '' : `, after ${span(then)} an hour before`}; since the start after ${span(store.evicted_age)}.`;
  return html`<${Picture} title="Age at eviction" note=${`of what gave way for room, ${windowWords()}`} sentence=${sentence}
    columns=${[
      { key: 'at', name: 'time', cell: (/** @type {any} */ row) => clock(row.at, true) },
      { key: 'age', name: 'mean age', number: true, cell: (/** @type {any} */ row) => span(values[row.index]) },
    ]} rows=${rowsOf(series.times)}>
    <p><strong>evicted after ${span(now)}</strong> <span class="note">since the start after ${span(store.evicted_age)}${then === null ? ''
      : `, before ${span(then)}`}</span></p>
    <${Series} times=${series.times} lines=${[{ name: 'mean age', colour: 'accent', values }]} before=${before} unit=${span} height=${120}
      sparse=${true} /><//>`;
}

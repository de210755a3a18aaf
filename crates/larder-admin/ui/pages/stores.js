// Stores: what each store and disk holds, what leaves it and why.
//
// In: figures of this moment, series of stores and tiers, a page of what is stored. Out: for each store its tiers with their
// caps, fill and hits over time, evictions, refusals, servers; then its responses, largest first.

import { useState } from '../vendor/preact-hooks.js';
import { html } from '../vendor/htm-preact.js';
import { get } from '../api.js';
import { bytes, clock, count, moment, percent, rate, shown, span } from '../format.js';
import { below, encoded, last, mean, usePast } from '../past.js';
import { app, useNow, windowWords } from '../state.js';
import { told } from '../words.js';
import { Bar } from '../parts/bar.js';
import { Evicted } from '../parts/evicted.js';
import { Picture } from '../parts/picture.js';
import { Series } from '../parts/series.js';
import { Table } from '../parts/table.js';
import { Top } from '../parts/top.js';
import { Text, UrlLink } from '../parts/text.js';
import { rowsOf } from '../parts/traffic.js';

/** @param {{ store: any }} props */
function Tiers({ store }) {
  const events = (/** @type {string} */ disk) => app.events.find((event) => event.kind === 'disk' && event.subject === disk);
  const columns = [
    {
      key: 'tier',
      name: 'where',
      wide: true,
      cell: (/** @type {any} */ tier) => html`${tier.disk ? html`<${Text} of=${tier.disk} max=${80} />` : 'memory'}`,
    },
    {
      key: 'state',
      name: 'state',
      cell: (/** @type {any} */ tier) =>
        html`<span class=${tier.state && tier.state !== 'ok' ? 'bad' : ''} title=${told('server_state', tier.state ?? '').sentence ?? ''}>
          ${shown(tier.state ?? 'ok')}</span>`,
    },
    {
      key: 'fill',
      name: 'fill',
      number: true,
      cell: (/** @type {any} */ tier) =>
        html`${percent(tier.max_bytes ? tier.bytes / tier.max_bytes : null, 0)}
          <${Bar} share=${tier.max_bytes ? tier.bytes / tier.max_bytes : 0} kind=${tier.tier === 'disk' ? 'r-disk' : 'r-memory'} />`,
    },
    { key: 'bytes', name: 'held', number: true, cell: (/** @type {any} */ tier) => bytes(tier.bytes) },
    { key: 'max', name: 'cap', number: true, cell: (/** @type {any} */ tier) => bytes(tier.max_bytes) },
    { key: 'objects', name: 'responses', number: true, cell: (/** @type {any} */ tier) => count(tier.objects) },
    {
      key: 'size',
      name: 'mean size',
      number: true,
      cell: (/** @type {any} */ tier) => bytes(tier.objects ? tier.bytes / tier.objects : null),
    },
    {
      key: 'queued',
      name: 'waits to be written',
      number: true,
      cell: (/** @type {any} */ tier) => bytes(tier.queued_bytes ?? null),
    },
    {
      key: 'refused',
      name: 'not taken',
      wide: true,
      cell: (/** @type {any} */ tier) =>
        Object.entries(tier.refused ?? {})
          .map(([word, value]) => `${word} ${count(/** @type {any} */ (value))}`)
          .join(', ') || 'none',
    },
    {
      key: 'fault',
      name: 'last event',
      wide: true,
      cell: (/** @type {any} */ tier) => {
        const event = events(tier.disk);
        return event ? html`${moment(event.at)} <${Text} of=${event.text} max=${120} />` : 'none';
      },
    },
  ];
  return html`<${Table} caption=${`Where ${store.name} keeps responses`} columns=${columns} rows=${store.tiers} />`;
}

/** @param {{ store: any, past: import('../past.js').Past }} props */
function Fill({ store, past }) {
  const series = past.now;
  if (!series) return null;
  const key = encoded(store.name);
  const tiers = below(series.values, `tier:${key}:`).filter(({ word }) => word.endsWith(':bytes'));
  const memory = store.tiers.find((/** @type {any} */ tier) => tier.tier === 'memory');
  const whole = series.values[`store:${key}:bytes`] ?? [];
  const lines = tiers.length
    ? tiers.map(({ word, value }, index) => ({
        name: shown(decodeURIComponent(word.slice(0, -6))),
        colour: ['r-disk', 'r-file', 'r-remote', 'r-stale'][index % 4] ?? 'r-disk',
        values: value,
      }))
    : [{ name: memory ? 'memory' : store.name, colour: 'r-memory', values: whole }];
  const cap = store.tiers
    .filter((/** @type {any} */ tier) => (tiers.length ? tier.tier !== 'memory' : true))
    .map((/** @type {any} */ tier) => tier.max_bytes);
  const limit = tiers.length ? Math.max(...cap) : cap.reduce((/** @type {number} */ sum, /** @type {number} */ one) => sum + one, 0);
  const all = limit
    ? [...lines, { name: tiers.length ? 'cap of a disk' : 'cap', colour: 'text', values: series.times.map(() => limit) }]
    : lines;
  const before =
    app.compare && past.before
      ? lines.map((_, index) => ({
          times: past.before?.times ?? [],
          values: tiers.length
            ? (past.before?.values[`tier:${key}:${tiers[index]?.word}`] ?? [])
            : (past.before?.values[`store:${key}:bytes`] ?? []),
        }))
      : [];
  const sentence = `Fill of ${shown(store.name)} in ${windowWords()}: ${lines.map((line) =>
    `${line.name} ${bytes(line.values[line.values.length - 1] ?? null)}`).join(', ')}; cap ${bytes(limit)}.`;
  return html`<${Picture} title="Fill" note=${windowWords()} sentence=${sentence}
    columns=${[{ key: 'at', name: 'time', cell: (/** @type {any} */ row) => clock(row.at, true) },
      ...lines.map((line) =>
        ({ key: line.name, name: line.name, number: true, cell: (/** @type {any} */ row) => bytes(line.values[row.index]) }))]}
          rows=${rowsOf(series.times)}>
    <${Series} times=${series.times} lines=${all} before=${before} unit=${bytes} height=${150} /><//>`;
}

/** @param {{ store: any, past: import('../past.js').Past }} props */
function Hits({ store, past }) {
  const series = past.now;
  if (!series) return null;
  const key = encoded(store.name);
  const of = (/** @type {string} */ what, /** @type {any} */ from = series) => from?.values[`store:${key}:${what}`] ?? [];
  const sentence = `Look-ups of ${shown(store.name)} in ${windowWords()}: ${rate(mean(series,
    `store:${key}:lookups`))}, of which ${rate(mean(series, `store:${key}:hits`))} were hits.`;
  const before =
    app.compare && past.before ? [{ times: past.before.times, values: of('hits', past.before), name: 'hits, an hour before' }] : [];
  return html`<${Picture} title="Look-ups and hits" note=${`per second, ${windowWords()}`} sentence=${sentence}
    columns=${[{ key: 'at', name: 'time', cell: (/** @type {any} */ row) => clock(row.at, true) },
      ...['lookups', 'hits', 'stored'].map((what) =>
        ({ key: what, name: what, number: true, cell: (/** @type {any} */ row) => rate(of(what)[row.index]) }))]}
          rows=${rowsOf(series.times)}>
    <${Series} times=${series.times} lines=${[
      { name: 'look-ups', colour: 'r-own', values: of('lookups') },
      { name: 'hits', colour: 'r-memory', values: of('hits') },
      { name: 'stored', colour: 'r-asked', values: of('stored') },
    ]} before=${before} unit=${rate} height=${150} /><//>`;
}

/** @param {{ name: string }} props */
function Objects({ name }) {
  const [prefix, setPrefix] = useState('');
  const [order, setOrder] = useState('body_bytes');
  const [list, setList] = useState(/** @type {any} */ (null));
  const [fault, setFault] = useState('');
  const load = (/** @type {string} */ cursor) =>
    get('/objects', { store: name, prefix, cursor, limit: 200 }).then(
      (page) => {
        setList({ ...page, objects: [...(cursor ? list.objects : []), ...page.objects] });
        setFault('');
      },
      (error) => setFault(error.message),
    );
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    void load('');
  };
  const id = `prefix-${name}`;
  const rows = [...(list?.objects ?? [])].sort((one, other) => other[order] - one[order]);
  const columns = [
    { key: 'url', name: 'URL', wide: true, cell: (/** @type {any} */ row) => html`<${UrlLink} url=${row.url} max=${100} />` },
    { key: 'bytes', name: 'size', number: true, cell: (/** @type {any} */ row) => bytes(row.body_bytes) },
    { key: 'status', name: 'status', number: true },
    { key: 'type', name: 'type', cell: (/** @type {any} */ row) => html`<${Text} of=${row.content_type ?? '–'} max=${40} />` },
    { key: 'age', name: 'age', number: true, cell: (/** @type {any} */ row) => span(row.age_seconds) },
    { key: 'ttl', name: 'fresh for', number: true, cell: (/** @type {any} */ row) => span(row.ttl_seconds) },
    { key: 'places', name: 'where', wide: true, cell: (/** @type {any} */ row) => html`<${Text} of=${row.places.join(', ')} max=${80} />` },
  ];
  return html`<details><summary>Responses that are stored</summary>
    <form class="filter" onSubmit=${send}><label for=${id}>URLs begin with</label>
      <input id=${id} type="search" value=${prefix} spellcheck=${false} placeholder="https://shop.example/img/"
        onInput=${(/** @type {any} */ event) => setPrefix(event.currentTarget.value)} />
      <label>Order <select value=${order} onChange=${(/** @type {any} */ event) =>
        setOrder(event.currentTarget.value)}><option value="body_bytes">largest first</option>
          <option value="age_seconds">oldest first</option><option value="ttl_seconds">longest fresh first</option></select></label>
      <button type="submit">List</button></form>
    ${fault ? html`<p class="fault" role="alert">${shown(fault)}</p>` : ''}
    ${list ? html`<p class="note">The order is that of the ${count(rows.length)} responses that were read${list.next ? '; there are more'
      : ''}.</p><${Table} caption=${`Responses in ${name}`} columns=${columns} rows=${rows} />` : ''}
    ${list?.next ? html`<button type="button" onClick=${() => load(list.next)}>Read more</button>` : ''}</details>`;
}

/** @param {any} store */
const isUsed = (store) => store.tiers.length > 0 || Object.values(store.lookups ?? {}).some((/** @type {any} */ value) => value > 0);

export function Stores() {
  const now = useNow();
  const past = usePast(['store:*', 'tier:*']);
  if (!now) return html`<p class="none">${shown(app.nowFault || 'Loading.')}</p>`;
  // Larder counts what has no store as one, which has no place.
  const stores = (now.stats?.stores ?? []).filter(isUsed);
  if (!stores.length) return html`<p class="empty">This larder has no store.</p>`;
  return html`<p class="lead">
    ${stores.map((/** @type {any} */ store, /** @type {number} */ index) =>
      html`${index ? '; ' : ''}
        <${Text} of=${store.name} max=${60} /> answers ${percent(store.hit_ratio)} of its look-ups since the start`)}.</p>
    ${stores.map((/** @type {any} */ store) => {
      const key = encoded(store.name);
      const left = past.now
        ? below(past.now.values, `store:${key}:evictions.`).map(({ word }) => ({
            word,
            now: mean(past.now, `store:${key}:evictions.${word}`),
            before: mean(past.before, `store:${key}:evictions.${word}`),
          }))
        : [];
      return html`<section class="panel"><h2><${Text} of=${store.name} max=${80} /> ${store.degraded
        ? html`<span class="tag warn">works without a part</span>` : ''}</h2>
        <${Tiers} store=${store} />
        <div class="pair"><${Fill} store=${store} past=${past} /><${Hits} store=${store} past=${past} /></div>
        <div class="pair">
          <section><h3>What left, and why</h3>
            <${Table} caption=${`Evictions of ${store.name}`} none=${`Nothing was evicted in ${windowWords()}.`} columns=${[{ key: 'word',
              name: 'reason' }, { key: 'now', name: 'responses/s', number: true, cell: (/** @type {any} */ row) => rate(row.now) },
                ...(app.compare
                  ? [{ key: 'before', name: 'an hour before', number: true, cell: (/** @type {any} */ row) => rate(row.before) }] : []),
                    { key: 'all', name: 'since the start', number: true, cell: (/** @type {any} */ row) =>
                      count(store.evictions[row.word] ?? 0) }]} rows=${left} />
            <${Evicted} store=${store} past=${past} /></section>
        <section><h3>Look-ups since the start</h3><${Table} caption=${`Look-ups of ${store.name}`} columns=${[
          { key: 'word', name: 'outcome' },
          { key: 'count', name: 'look-ups', number: true },
        ]} rows=${Object.entries(store.lookups ?? {})
          .filter(([, value]) => value)
          .map(([word, value]) => ({ word, count: count(/** @type {any} */ (value)) }))} /></section></div>
        ${
          store.servers?.length
            ? html`<h3>Servers of values</h3><${Table} caption=${`Servers of ${store.name}`} columns=${[
                {
                  key: 'server',
                  name: 'server',
                  wide: true,
                  cell: (/** @type {any} */ row) => html`${row.kind} <${Text} of=${row.server} max=${80} />`,
                },
                { key: 'state', name: 'state' },
                { key: 'queued', name: 'waits to be written', number: true, cell: (/** @type {any} */ row) => bytes(row.queued_bytes) },
              ]} rows=${store.servers} />`
            : ''
        }
        <p class="note">${count(last(past.now, `store:${key}:objects`))} responses now.</p><${Objects} name=${store.name} /></section>`;
    })}
    <section class="panel"><h2>URLs</h2>
      <div class="pair"><${Top} of="urls" title="Asked for most" /><${Top} of="bytes" title="Most bytes" /></div></section>`;
}

// Errors: every word of failures, refusals and losses: how often, and what to do.
//
// In: series of the window and an hour before, `now`, the words of `about`, the last examples. Out: tables by kind. What
// never occurred is not listed, but counted.

import { useEffect, useState } from '../vendor/preact-hooks.js';
import { html } from '../vendor/htm-preact.js';
import { get } from '../api.js';
import { clock, count, counted, moment, rate, shown } from '../format.js';
import { below, mean, total, usePast } from '../past.js';
import { app, useNow, windowWords } from '../state.js';
import { told, wordsOf } from '../words.js';
import { Series } from '../parts/series.js';
import { Picture } from '../parts/picture.js';
import { Table } from '../parts/table.js';
import { SiteName, Text } from '../parts/text.js';
import { rowsOf } from '../parts/traffic.js';

/** Words with the server where they occurred last. */
function useExamples() {
  const [rows, setRows] = useState(/** @type {any[]} */ ([]));
  useEffect(() => {
    const load = () =>
      document.hidden ||
      get('/api/v1/top', { of: 'errors', window: app.window > 600 ? 86400 : 600, limit: 50 }).then(
        (json) => setRows(json.rows ?? []),
        () => {},
      );
    load();
    const timer = setInterval(load, 15000);
    return () => clearInterval(timer);
  }, [app.window, app.returns]);
  return rows;
}

/** @param {{ kind: string, title: string, past: import('../past.js').Past, examples: any[] }} props */
function Words({ kind, title, past, examples }) {
  const known = below(past.now?.values ?? {}, `${kind}.`).map(({ word }) => word);
  const per = (/** @type {any} */ series, /** @type {string} */ word) => total(series, `${kind}.${word}`);
  const rows = known
    .map((word) => ({
      ...told(kind, word),
      now: per(past.now, word),
      before: past.before ? per(past.before, word) : null,
      example: examples.find((row) => row.key[0] === word),
    }))
    .filter((row) => row.now >= 0.5 || (row.before ?? 0) >= 0.5)
    .sort((one, other) => other.now - one.now);
  // What the listeners refuse is no request yet, and no sample of it is kept.
  const isSampled = kind === 'failure';
  const rest = Math.max(0, wordsOf(kind).length - rows.length);
  const columns = [
    {
      key: 'word',
      name: 'word',
      wide: true,
      cell: (/** @type {any} */ row) =>
        html`<code>${shown(row.word)}</code> <span class="note">
          ${shown(row.sentence ?? '')} ${row.section ? `[${shown(row.section)}]` : ''}</span>`,
    },
    { key: 'now', name: `in ${windowWords()}`, number: true, cell: (/** @type {any} */ row) => count(row.now) },
    { key: 'before', name: 'an hour before', number: true, cell: (/** @type {any} */ row) => count(row.before) },
    ...(isSampled
      ? [
        { key: 'last', name: 'last', number: true, cell: (/** @type {any} */ row) => (row.example ? moment(row.example.last) : '–') },
        {
          key: 'where',
          name: 'where',
          wide: true,
          cell: (/** @type {any} */ row) => (row.example?.key[1] ? html`<${Text} of=${row.example.key[1]} max=${80} />` : '–'),
        },
        ]
      : []),
    { key: 'helps', name: 'what to do', wide: true, cell: (/** @type {any} */ row) => shown(row.helps ?? '–') },
    ...(isSampled
      ? [
        {
          key: 'see',
          name: 'requests',
          cell: (/** @type {any} */ row) =>
            html`<a href=${`#/requests?filter=${encodeURIComponent(`detail=${row.word}`)}`}
              >see<span class="hidden"> requests with ${shown(row.word)}</span></a>`,
        },
        ]
      : []),
  ];
  return html`<section class="panel"><h2>
    ${title}</h2><${Table} caption=${title} columns=${columns} rows=${rows} none=${`None in ${windowWords()}.`} />
    ${rest && rows.length ? html`<p class="note">${counted(rest, 'other word')} did not occur.</p>` : ''}</section>`;
}

export function Errors() {
  const now = useNow();
  const past = usePast(['failure.*', 'refused.*', 'status.*', 'reloads.*'], { always: true });
  const examples = useExamples();
  if (!past.now) return html`<p class="none">${past.failed || 'Loading.'}</p>`;
  const stats = now?.stats ?? {};
  const failures = below(past.now.values, 'failure.').filter(({ word }) => (mean(past.now, `failure.${word}`) ?? 0) > 0);
  const sum = failures.reduce((all, { word }) => all + total(past.now, `failure.${word}`), 0);
  const shades = ['r-asked', 'r-stale', 'r-joined', 'r-disk', 'r-file', 'r-own'];
  const lines = [
    { name: '5xx', colour: 'accent', values: past.now.values['status.5xx'] ?? [] },
    ...failures.slice(0, 5).map(({ word, value }, index) => ({ name: word, colour: shades[index] ?? 'r-own', values: value })),
  ];
  const cut = (stats.sites ?? []).filter((/** @type {any} */ site) => site.aborted > 0);
  const losses = [
    ...cut.map((/** @type {any} */ site) => ({
      what: html`responses of <${SiteName} site=${site.name} max=${60} /> that were cut`,
      count: site.aborted,
      todo: 'A client went away, or the origin broke off.',
    })),
    ...(stats.log?.dropped
      ? [
          {
            what: 'lines of the access log that were dropped',
            count: stats.log.dropped,
            todo: 'The log is written more slowly than requests come.',
          },
        ]
      : []),
    ...(stats.messages_dropped
      ? [{ what: 'messages of larder that were dropped', count: stats.messages_dropped, todo: 'Standard error is read too slowly.' }]
      : []),
  ];
  const disks = (stats.stores ?? []).flatMap((/** @type {any} */ store) =>
    store.tiers
      .filter((/** @type {any} */ tier) => (tier.state && tier.state !== 'ok') || Object.keys(tier.refused ?? {}).length)
      .map((/** @type {any} */ tier) => ({ store: store.name, ...tier })),
  );
  return html`<p class="lead">
    ${count(sum)} failures of origins in ${windowWords()}${past.before
      ? `, ${count(below(past.before.values, 'failure.').reduce((all, { word }) => all + total(past.before, `failure.${word}`), 0))} an hour before` : ''}.</p>
    <${Picture} title="Failures and responses with 5xx" note=${`per second, ${windowWords()}`}
      sentence=${`Responses with 5xx in ${windowWords()}: ${rate(mean(past.now,
        'status.5xx') ?? 0)}; failures of origins: ${failures.map(({ word }) =>
          `${word} ${rate(mean(past.now, `failure.${word}`))}`).join(', ') || 'none'}.`}
      columns=${[{ key: 'at', name: 'time', cell: (/** @type {any} */ row) => clock(row.at, true) },
        ...lines.map((line) =>
          ({ key: line.name, name: line.name, number: true, cell: (/** @type {any} */ row) => rate(line.values[row.index]) }))]}
            rows=${rowsOf(past.now.times)}>
      <${Series} times=${past.now.times} lines=${lines} before=${app.compare && past.before
        ? [{ times: past.before.times, values: past.before.values['status.5xx'] ?? [], name: '5xx, an hour before' }]
          : []} unit=${rate} height=${160} /><//>
    <${Words} kind="failure" title="Failures of origins" past=${past} examples=${examples} />
    <${Words} kind="refused" title="Requests that were refused" past=${past} examples=${examples} />
    <section class="panel"><h2>Disks</h2><${Table} caption="Disks" none="Every disk takes what it is given." columns=${[
      {
        key: 'disk',
        name: 'where',
        wide: true,
        cell: (/** @type {any} */ row) => html`<${Text} of=${row.store} max=${40} /> <${Text} of=${row.disk ?? row.tier} max=${80} />`,
      },
      { key: 'state', name: 'state' },
      {
        key: 'refused',
        name: 'not taken since the start',
        wide: true,
        cell: (/** @type {any} */ row) =>
          Object.entries(row.refused ?? {})
            .map(([word, value]) => `${word} ${count(/** @type {any} */ (value))}`)
            .join(', ') || '–',
      },
    ]} rows=${disks} /></section>
    <section class="panel"><h2>Losses since the start</h2><${Table} caption="Losses" none="Nothing was cut or dropped." columns=${[
      { key: 'what', name: 'what', wide: true },
      { key: 'count', name: 'count', number: true, cell: (/** @type {any} */ row) => count(row.count) },
      { key: 'todo', name: 'why', wide: true },
    ]} rows=${losses} /></section>
    <section class="panel"><h2>What happened</h2><${Table} caption="Events" none="No event is remembered." columns=${[
      { key: 'at', name: 'time', number: true, cell: (/** @type {any} */ row) => moment(row.at) },
      { key: 'kind', name: 'kind' },
      { key: 'subject', name: 'what', cell: (/** @type {any} */ row) => html`<${Text} of=${row.subject} max=${80} />` },
      { key: 'text', name: 'in words', wide: true, cell: (/** @type {any} */ row) => html`<${Text} of=${row.text} max=${400} />` },
    ]} rows=${app.events.slice(0, 100)} /></section>`;
}

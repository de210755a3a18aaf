// Origins: how each origin and server fares, and what happened to them.
//
// In: figures of this moment, series by origin and server, events. Out: for each origin its rate, times, bytes, failures by word, its servers,
// and a line of time with ejections and recoveries.

import { html } from '../vendor/htm-preact.js';
import { byteRate, clock, count, number, percent, rate, seconds, shown } from '../format.js';
import { encoded, last, mean, usePast } from '../past.js';
import { app, useNow, windowWords } from '../state.js';
import { told } from '../words.js';
import { Picture } from '../parts/picture.js';
import { Series } from '../parts/series.js';
import { Facts, Table } from '../parts/table.js';
import { Servers, serverKey } from '../parts/servers.js';
import { Text } from '../parts/text.js';
import { TimeLine } from '../parts/timeline.js';
import { Latencies, rowsOf } from '../parts/traffic.js';

/** So many names fit into a question for series. */
const SERVERS_MAX = 60;

/** @param {{ origin: any, past: import('../past.js').Past }} props */
function Origin({ origin, past }) {
  const key = encoded(origin.name);
  const series = past.now;
  const of = (/** @type {string} */ what) => mean(series, `origin:${key}:${what}`) ?? (series && !what.startsWith('p') ? 0 : null);
  const old = (/** @type {string} */ what) => (app.compare ? mean(past.before, `origin:${key}:${what}`) : null);
  const list = (/** @type {string} */ what, /** @type {any} */ from = series) => from?.values[`origin:${key}:${what}`] ?? [];
  const requests = of('requests') ?? 0;
  const before = app.compare && past.before ? [{ times: past.before.times, values: list('requests', past.before) }] : [];
  const fact = (/** @type {string} */ text, /** @type {string} */ then) =>
    app.compare ? html`${text} <span class="note">before ${then}</span>` : text;
  const failures = Object.entries(origin.failures ?? {});
  return html`<section class="panel"><h2><${Text} of=${origin.name} max=${80} /></h2>
    <${Facts} of=${[
      ['requests', fact(rate(requests), rate(old('requests')))],
      [
        'failed',
        fact(
          percent(requests ? (of('failures') ?? 0) / requests : 0),
          percent(old('requests') ? (old('failures') ?? 0) / (old('requests') ?? 1) : null),
        ),
      ],
      ['p50 to head', fact(seconds(of('p50')), seconds(old('p50')))],
      ['p99 to head', fact(seconds(of('p99')), seconds(old('p99')))],
      ['work', fact(`${number(of('seconds'))} s/s`, `${number(old('seconds'))} s/s`)],
      ['bytes', fact(byteRate(of('bytes')), byteRate(old('bytes')))],
      ['in flight now', count(origin.in_flight)],
      ['queued now', count(origin.queued)],
      ['connections now', count(origin.connections)],
      ['most in flight', count(Math.max(0, ...list('in_flight').map(Number)))],
    ]} />
    <${Servers} origin=${origin} past=${past} />
    ${
      series
        ? html`<div class="pair">
          <${Picture} title="Requests" note=${`per second, ${windowWords()}`}
            sentence=${`Requests to ${shown(origin.name)} in ${windowWords()}: ${rate(requests)}; ${count(last(series,
              `origin:${key}:queued`) ?? 0)} wait in the queue now.`}
      columns=${[{ key: 'at', name: 'time', cell: (/** @type {any} */ row) => clock(row.at, true) },
        ...['requests', 'failures', 'in_flight', 'queued'].map((what) =>
          ({ key: what, name: what.replace('_', ' '), number: true, cell: (/** @type {any} */ row) =>
            (what.length > 8 || what === 'queued' ? count(list(what)[row.index]) : rate(list(what)[row.index])) }))]}
              rows=${rowsOf(series.times)}>
      <${Series} times=${series.times} lines=${[
        { name: 'requests', colour: 'accent', values: list('requests') },
        { name: 'failures', colour: 'r-asked', values: list('failures') },
        { name: 'in flight', colour: 'r-stale', values: list('in_flight') },
        { name: 'queued', colour: 'r-joined', values: list('queued') },
      ]} before=${before} unit=${(/** @type {any} */ value) => count(value)} height=${180} /><//>
      <${Latencies} past=${past} of=${`origin/${key}`} title="Time to head" /></div>`
        : ''
    }
    <div class="pair"><${TimeLine} servers=${origin.servers ?? []} name=${origin.name} />
      <section><h3>Failures since the start</h3><${Table} caption=${`Failures of ${origin.name}`} none="None." columns=${[
        {
          key: 'word',
          name: 'why',
          wide: true,
          cell: (/** @type {any} */ row) =>
            html`<code>${shown(row.word)}</code> <span class="note">${shown(told('failure', row.word).sentence ?? '')}</span>`,
        },
        { key: 'count', name: 'count', number: true, cell: (/** @type {any} */ row) => count(row.count) },
      ]} rows=${failures.map(([word, value]) => ({ word, count: value }))} /></section></div>
  </section>`;
}

export function Origins() {
  const now = useNow();
  const known = (now?.stats?.origins ?? []).flatMap((/** @type {any} */ origin) =>
    (origin.servers ?? []).map((/** @type {any} */ server) => `${serverKey(origin.name, server)}requests`),
  );
  const past = usePast(now ? ['origin:*', ...new Set(known.slice(0, SERVERS_MAX))] : []);
  if (!now) return html`<p class="none">${shown(app.nowFault || 'Loading.')}</p>`;
  const origins = now.stats?.origins ?? [];
  if (!origins.length) return html`<p class="empty">This larder has no origin.</p>`;
  const servers = origins.flatMap((/** @type {any} */ origin) => origin.servers ?? []);
  const up = servers.filter((/** @type {any} */ server) => server.state === 'up' || server.state === 'slow-start').length;
  return html`<p class="lead">
    ${up} of ${servers.length} servers ${up === 1 ? 'is' : 'are'} up. ${up < servers.length
      ? servers.filter((/** @type {any} */ server) =>
        server.state !== 'up' && server.state !== 'slow-start').map((/** @type {any} */ server) =>
          html`<${Text} of=${server.server} max=${60} /> is ${shown(server.state)}. `) : ''}</p>
    ${origins.map((/** @type {any} */ origin) => html`<${Origin} origin=${origin} past=${past} />`)}`;
}

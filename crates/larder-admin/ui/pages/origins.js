// Origins: how each origin and server fares, and what happened to them.
//
// In: figures of this moment, series by origin, events. Out: for each origin its rate, times, failures by word, its servers,
// and a line of time with ejections and recoveries.

import { html } from '../vendor/htm-preact.js';
import { clock, count, moment, number, percent, rate, seconds, shown } from '../format.js';
import { encoded, last, mean, usePast } from '../past.js';
import { app, serverNow, useNow, windowWords } from '../state.js';
import { told } from '../words.js';
import { Picture } from '../parts/picture.js';
import { Series } from '../parts/series.js';
import { Facts, Table } from '../parts/table.js';
import { Text } from '../parts/text.js';
import { Latencies, rowsOf } from '../parts/traffic.js';

/** When servers were ejected and came back. @param {{ servers: any[], name: string }} props */
function TimeLine({ servers, name }) {
  const to = serverNow();
  const from = to - app.window;
  const isOf = (/** @type {any} */ event, /** @type {any} */ server) =>
    [server.server, server.address].some((text) => `${event.subject} ${event.text}`.includes(text));
  const rows = servers.map((server) => ({
    server,
    events: app.events
      .filter((event) => ['ejected', 'recovered'].includes(event.kind) && event.at >= from && isOf(event, server))
      .reverse(),
  }));
  const all = rows.flatMap((row) => row.events.map((event) => ({ ...event, server: row.server.server })));
  const sentence = all.length
    ? `Ejections and recoveries of ${shown(name)} in ${windowWords()}: ${all.map((event) =>
      `${shown(event.server)} ${event.kind} at ${clock(event.at)}`).join('; ')}.`
    : `No server of ${shown(name)} was ejected in ${windowWords()}.`;
  const place = (/** @type {number} */ at) => Math.max(0, Math.min(1, (at - from) / app.window));
  return html`<${Picture} title="Servers over time" note=${windowWords()} sentence=${sentence} columns=${[
    { key: 'at', name: 'time', cell: (/** @type {any} */ row) => moment(row.at) },
    { key: 'server', name: 'server', cell: (/** @type {any} */ row) => html`<${Text} of=${row.server} />` },
    { key: 'kind', name: 'what' },
  ]} rows=${all}>
    <div class="lines">${rows.map(({ server, events }) => {
      let start = 0;
      // Before the first event the server was in the other state.
      let out = events.length ? events[0].kind === 'recovered' : server.state === 'ejected';
      const parts = [];
      for (const event of events) {
        parts.push({ from: start, to: place(event.at), out });
        start = place(event.at);
        out = event.kind === 'ejected';
      }
      parts.push({ from: start, to: 1, out });
      return html`<div class="time"><${Text} of=${server.server} max=${32} /><span class="bar whole">
        ${parts.map((part) =>
          html`<span class=${`part ${part.out ? 'out' : 'in'}`} style=${{ width: `${(part.to - part.from) * 100}%` }}>
            ${part.out && part.to - part.from > 0.08 ? 'ejected' : ''}</span>`)}</span></div>`;
    })}<div class="time"><span></span><span class="ends"><span>${clock(from)}</span><span>${clock(to)}</span></span></div></div><//>`;
}

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
      ['in flight now', count(origin.in_flight)],
      ['queued now', count(origin.queued)],
      ['most in flight', count(Math.max(0, ...list('in_flight').map(Number)))],
    ]} />
    <${Table} caption=${`Servers of ${origin.name}`} columns=${[
      {
        key: 'server',
        name: 'server',
        wide: true,
        cell: (/** @type {any} */ row) =>
          html`<${Text} of=${row.server} max=${80} /> ${row.server.includes(row.address) ? ''
            : html`<span class="note"><${Text} of=${row.address} max=${60} /></span>`}`,
      },
      {
        key: 'state',
        name: 'state',
        cell: (/** @type {any} */ row) =>
          html`<span class=${row.state === 'up' ? 'good' : 'bad'} title=${told('server_state', row.state).sentence ?? ''}>
            ${shown(row.state)}</span>${row.backup ? ' (backup)' : ''}`,
      },
      {
        key: 'since',
        name: 'since',
        number: true,
        cell: (/** @type {any} */ row) => {
          const event = app.events.find(
            (one) => ['ejected', 'recovered'].includes(one.kind) && `${one.subject} ${one.text}`.includes(row.address),
          );
          return event ? moment(event.at) : 'start';
        },
      },
      { key: 'weight', name: 'weight', number: true },
      { key: 'in_flight', name: 'in flight', number: true, cell: (/** @type {any} */ row) => count(row.in_flight) },
      { key: 'requests', name: 'requests since the start', number: true, cell: (/** @type {any} */ row) => count(row.requests) },
      {
        key: 'failures',
        name: 'failed',
        number: true,
        cell: (/** @type {any} */ row) => `${count(row.failures)} (${percent(row.requests ? row.failures / row.requests : 0)})`,
      },
    ]} rows=${origin.servers ?? []} none="No server is known yet: the origin has not been asked." />
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
  const past = usePast(['origin:*']);
  if (!now) return html`<p class="none">${shown(app.nowFault || 'Loading.')}</p>`;
  const origins = now.stats?.origins ?? [];
  if (!origins.length) return html`<p class="empty">This larder has no origin.</p>`;
  const servers = origins.flatMap((/** @type {any} */ origin) => origin.servers ?? []);
  const up = servers.filter((/** @type {any} */ server) => server.state === 'up' || server.state === 'slow-start').length;
  return html`<p class="lead">
    ${up} of ${servers.length} servers are up. ${up < servers.length
      ? servers.filter((/** @type {any} */ server) =>
        server.state !== 'up' && server.state !== 'slow-start').map((/** @type {any} */ server) =>
          html`<${Text} of=${server.server} max=${60} /> is ${shown(server.state)}. `) : ''}</p>
    ${origins.map((/** @type {any} */ origin) => html`<${Origin} origin=${origin} past=${past} />`)}`;
}

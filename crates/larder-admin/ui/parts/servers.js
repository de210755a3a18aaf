// The servers of an origin, each with what it was given and how it fared.
//
// In: servers as `stats` tells them, series of their requests. Out: a table. Times are those since the start, and larder keeps
// them in steps of a factor of two, so they are "about".

import { html } from '../vendor/htm-preact.js';
import { bytes, count, moment, percent, rate, seconds, shown, span } from '../format.js';
import { encoded, mean } from '../past.js';
import { app, windowWords } from '../state.js';
import { told } from '../words.js';
import { ClassBar } from './bar.js';
import { Spark } from './spark.js';
import { Table } from './table.js';
import { Text } from './text.js';
import { eventsOf } from './timeline.js';

/** @param {string} origin @param {any} server */
export const serverKey = (origin, server) => `server:${encoded(origin)}:${encoded(server.address)}:`;

const CHECKS = /** @type {Record<string, string>} */ ({ good: 'good', bad: 'failed', 'not-asked': 'not asked' });

/** @param {any} check */
function Check({ check }) {
  if (!check) return 'none so far';
  const words = CHECKS[check.result] ?? shown(check.result);
  return html`<span class=${check.result === 'good' ? 'good' : 'bad'}>${words}</span> <span class="note">${span(check.seconds_ago)} ago</span>`;
}

const about = (/** @type {number | null | undefined} */ value) =>
  value === null || value === undefined ? '–' : `about ${seconds(Number(value.toPrecision(2)))}`;

/** @param {{ origin: any, past: import('../past.js').Past }} props */
export function Servers({ origin, past }) {
  const servers = origin.servers ?? [];
  const isWeighed = servers.some((/** @type {any} */ one) => one.weight !== 1);
  const list = (/** @type {any} */ row, /** @type {any} */ from) => from?.values[`${serverKey(origin.name, row)}requests`] ?? [];
  const columns = [
    {
      key: 'server',
      name: 'server',
      wide: true,
      cell: (/** @type {any} */ row) =>
        html`<${Text} of=${row.server} max=${80} /> ${row.server.includes(row.address) ? ''
          : html`<span class="note"><${Text} of=${row.address} max=${60} /></span>`}${row.backup ? html`<span class="note">backup</span>` : ''}`,
    },
    {
      key: 'state',
      name: 'state',
      cell: (/** @type {any} */ row) => {
        const event = eventsOf(origin.name, row)[0];
        return html`<span class=${row.state === 'up' ? 'good' : 'bad'} title=${told('server_state', row.state).sentence ?? ''}>
          ${shown(row.state)}</span><span class="note">since ${event ? moment(event.at) : 'the start'}</span>`;
      },
    },
    ...(isWeighed ? [{ key: 'weight', name: 'weight', number: true }] : []),
    {
      key: 'rate',
      name: 'requests/s',
      number: true,
      cell: (/** @type {any} */ row) => {
        const name = `${serverKey(origin.name, row)}requests`;
        return html`${rate(mean(past.now, name) ?? (past.now ? 0 : null))} ${app.compare && past.before
          ? html`<span class="note">before ${rate(mean(past.before, name) ?? 0)}</span>` : ''}<${Spark} values=${list(row, past.now)}
            before=${app.compare ? list(row, past.before) : []} sentence=${`Requests in ${windowWords()}: ${rate(mean(past.now, name))}`} />`;
      },
    },
    {
      key: 'count',
      name: 'since the start',
      number: true,
      cell: (/** @type {any} */ row) => html`${count(row.requests)}<span class="note">${bytes(row.body_bytes)}</span>`,
    },
    {
      key: 'classes',
      name: 'answers by class',
      wide: true,
      cell: (/** @type {any} */ row) => html`<${ClassBar} of=${row.by_code_class ?? {}} />`,
    },
    { key: 'p50', name: 'p50 to head', number: true, cell: (/** @type {any} */ row) => about(row.p50) },
    { key: 'p99', name: 'p99', number: true, cell: (/** @type {any} */ row) => about(row.p99) },
    { key: 'in_flight', name: 'in flight', number: true, cell: (/** @type {any} */ row) => count(row.in_flight) },
    {
      key: 'failures',
      name: 'failed',
      number: true,
      cell: (/** @type {any} */ row) =>
        html`${count(row.failures)}<span class="note">${percent(row.requests ? row.failures / row.requests : 0)}</span>`,
    },
    { key: 'check', name: 'last check', cell: (/** @type {any} */ row) => html`<${Check} check=${row.check} />` },
  ];
  return html`<${Table} caption=${`Servers of ${origin.name}`} columns=${columns} rows=${servers}
    none="No server is known yet: the origin has not been asked." />
    <p class="note">Requests/s: mean of ${windowWords()}. Answers, times and failures of a server are those since the start; its times are known within a factor of two.
      ${servers.some((/** @type {any} */ one) => one.check) ? '' : html` No server is checked: <code>[origins.NAME.health]</code> does that.`}</p>`;
}


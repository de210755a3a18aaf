// When the servers of an origin were left out, and when they came back.
//
// In: servers, events. Out: one bar for each server: up from the start of larder on, except between an ejection and the
// recovery after it. What is before the start is not known, and stays empty.

import { html } from '../vendor/htm-preact.js';
import { clock, moment, shown, span } from '../format.js';
import { EVENTS_MAX, app, serverNow } from '../state.js';
import { Picture } from './picture.js';
import { Text } from './text.js';

const WORDS = /** @type {Record<string, string>} */ ({ up: 'takes requests', out: 'left out', unknown: 'not known' });
const OUT = ['ejected', 'unhealthy'];

/** The events of a server, newest first. @param {string} origin @param {any} server */
export const eventsOf = (origin, server) =>
  app.events.filter(
    (event) =>
      ['ejected', 'recovered'].includes(event.kind) && event.subject === origin && event.text?.includes(` ${server.server} at ${server.address} `),
  );

/** From when on events are known: since the start, or since the oldest one where they are as many as are kept. */
function knownFrom() {
  const oldest = app.events.length >= EVENTS_MAX ? app.events[app.events.length - 1]?.at : 0;
  return Math.max(app.about?.started ?? Infinity, oldest ?? 0);
}

/** Parts of the time from `from` to `to`, oldest first. @param {any} server @param {any[]} events oldest first @param {number} from @param {number} to */
function partsOf(server, events, from, to) {
  const known = Math.min(Math.max(from, knownFrom()), to);
  const within = events.filter((event) => event.at >= known);
  const earlier = events[events.length - within.length - 1];
  const first = within[0];
  let state = (earlier ? earlier.kind === 'ejected' : first ? first.kind === 'recovered' : OUT.includes(server.state)) ? 'out' : 'up';
  let start = known;
  const parts = known > from ? [{ from, to: known, state: 'unknown' }] : [];
  for (const event of within) {
    parts.push({ from: start, to: event.at, state });
    start = event.at;
    state = event.kind === 'ejected' ? 'out' : 'up';
  }
  return [...parts, { from: start, to, state }];
}

/** @param {{ servers: any[], name: string }} props */
export function TimeLine({ servers, name }) {
  const to = serverNow();
  const from = to - app.window;
  const rows = servers.map((server) => {
    const events = eventsOf(name, server).reverse();
    return { server, events: events.filter((event) => event.at >= from), parts: partsOf(server, events, from, to) };
  });
  const all = rows.flatMap((row) => row.events.map((event) => ({ ...event, server: row.server.server })));
  const sentence = all.length
    ? `Ejections and recoveries of ${shown(name)} in the last ${span(app.window)}: ${all.map((event) =>
      `${shown(event.server)} ${event.kind} at ${clock(event.at)}`).join('; ')}.`
    : `No server of ${shown(name)} was left out or came back in the last ${span(app.window)}, as far as is known.`;
  return html`<${Picture} title="Servers over time" note=${`the last ${span(app.window)}`} sentence=${sentence} columns=${[
    { key: 'at', name: 'time', cell: (/** @type {any} */ row) => moment(row.at) },
    { key: 'server', name: 'server', cell: (/** @type {any} */ row) => html`<${Text} of=${row.server} />` },
    { key: 'kind', name: 'what' },
  ]} rows=${all}>
    <div class="lines">${rows.map(({ server, parts }) =>
      html`<div class="time"><${Text} of=${server.server} max=${40} /><span class="bar states">
        ${parts.map((part) =>
          html`<span class=${`part t-${part.state}`} title=${`${WORDS[part.state]}, ${clock(part.from)} to ${clock(part.to)}`}
            style=${{ width: `${((part.to - part.from) / app.window) * 100}%` }}></span>`)}</span></div>`)}
      <div class="time"><span></span><span class="ends"><span>${clock(from)}</span><span>${clock(to)}</span></span></div></div>
    <ul class="keys">${Object.entries(WORDS).map(([state, words]) =>
      html`<li><span class="bar states key"><span class=${`part t-${state}`}></span></span>${words}</li>`)}</ul><//>`;
}

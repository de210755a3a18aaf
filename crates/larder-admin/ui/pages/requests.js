// Requests: the stream as it happens, newest on top.
//
// In: a filter. Out: one row a request; a row opens its steps, its members and the way to explain. The stream stands still
// by a click, or by the key `p` within it. It is not read aloud; a summary every 30 seconds is.

import { useEffect, useState } from '../vendor/preact-hooks.js';
import { html } from '../vendor/htm-preact.js';
import { bytes, clock, count, seconds, shown } from '../format.js';
import { app, changed, follow } from '../state.js';
import { resultClass } from '../words.js';
import { FilterLine } from '../parts/filter.js';
import { Facts } from '../parts/table.js';
import { Text, UrlLink } from '../parts/text.js';
import { Waterfall } from '../parts/waterfall.js';

const SHOWN_MAX = 150;

/** @param {any} request */
export const urlOf = (request) =>
  `${request.scheme ?? 'http'}://${request.host ?? ''}${request.path ?? ''}${request.query ? `?${request.query}` : ''}`;

/** @param {{ of: any }} props */
export function RequestDetail({ of }) {
  const known = ['at', 'path', 'host', 'scheme', 'query', 'method'];
  const members = Object.entries(of).filter(([name]) => !known.includes(name));
  const value = (/** @type {string} */ name, /** @type {any} */ what) => {
    if (['time', 'wait', 'queue', 'connect', 'first_byte', 'origin_time'].includes(name)) return seconds(what);
    if (name === 'bytes') return bytes(what);
    return html`<${Text} of=${what} max=${600} />`;
  };
  return html`<div class="detail">
    <p><${Text} of=${of.method} max=${40} /> <${UrlLink} url=${urlOf(of)}><${Text} of=${urlOf(of)} max=${1200} /><//></p>
    <${Waterfall} of=${of} /><${Facts} of=${members.map(([name, what]) => [name, value(name, what)])} />
    <p><a href=${`#/url?url=${encodeURIComponent(urlOf(of))}`}>Explain this URL</a></p></div>`;
}

/** @param {{ of: any }} props */
export function RequestRow({ of }) {
  const [open, setOpen] = useState(false);
  const why = [of.error, of.not_stored ?? of.detail, of.reason, of.before && `before: ${of.before}`].filter(Boolean).map(shown).join(', ');
  return html`<li class=${open ? 'open' : ''}><button type="button" class="request" aria-expanded=${String(open)} onClick=${() =>
    setOpen(!open)}>
    <span class="at">${clock(of.at, true)}</span><span class=${`status ${of.status >= 500 ? 'bad' : ''}`}>${of.status ?? '–'}</span>
    <span class="result"><span class=${`dot ${resultClass(of.result ?? '')}`}></span>${shown(of.result ?? '–')}</span>
    <span class="time">${seconds(of.time)}</span><span class="size">${bytes(of.bytes)}</span>
    <span class="what"><${Text} of=${of.method} max=${12} /> <${Text} of=${`${of.host ?? ''}${of.path ?? ''}${of.query ? `?${of.query}`
      : ''}`} max=${140} /></span>
    <span class="why"><${Text} of=${why} max=${80} /></span></button>${open ? html`<${RequestDetail} of=${of} />` : ''}</li>`;
}

/** What the stream brought, once in 30 seconds. */
function useSummary() {
  const [text, setText] = useState('');
  useEffect(() => {
    const timer = setInterval(() => {
      const from = (app.tick?.at ?? 0) - 30;
      const lately = app.requests.filter((request) => request.at >= from);
      const failed = lately.filter((request) => request.status >= 500).length;
      setText(`${count(lately.length)} requests of the stream in 30 seconds, ${count(failed)} with a status of 500 or more.`);
    }, 30000);
    return () => clearInterval(timer);
  }, []);
  return text;
}

function stop() {
  app.stopped = !app.stopped;
  if (!app.stopped) app.skipped = 0;
  changed();
}

/** @param {{ query: URLSearchParams }} props */
export function Requests({ query }) {
  const filter = query.get('filter') ?? '';
  const [all, setAll] = useState(false);
  const summary = useSummary();
  useEffect(() => {
    app.stopped = false;
    follow({ requests: filter, recent: 100, all });
  }, [filter, all]);
  // A key of one letter works only where the focus is in the stream, as speech input types letters.
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === 'p' && !event.ctrlKey && !event.metaKey && !event.altKey) stop();
  };
  const set = (/** @type {string} */ text) => (location.hash = text ? `#/requests?filter=${encodeURIComponent(text)}` : '#/requests');
  return html`<p
    class="lead">Requests as they happen: ${all ? 'each of them, up to 20 000 a second and worker.'
      : 'a sample of at most 100 a second, and of hits one in 64. Weight says for how many one stands.'}</p>
    <${FilterLine} value=${filter} fault=${app.filterFault} onSet=${set} />
    <div onKeyDown=${pressed}><p class="tools"><button type="button" aria-pressed=${String(app.stopped)} onClick=${stop}>
      ${app.stopped ? 'Go on (p)' : 'Stand still (p)'}</button>
      <label class="check"><input type="checkbox" checked=${all} onChange=${(/** @type {any} */ event) =>
        setAll(event.currentTarget.checked)} />leave nothing out</label>
      ${app.skipped ? html`<span class="note">${count(app.skipped)} more ${app.stopped ? 'while it stands still' : 'were left out'}</span>`
        : ''}</p>
    <p class="hidden" role="status">${summary}</p>
    <div class="request labels" aria-hidden="true"><span>time</span><span>status</span><span>result</span><span class="time">took</span>
      <span class="size">size</span><span>request</span><span>why</span></div>
    <ul class="requests" aria-label="Requests, newest first">
      ${app.requests.slice(0, SHOWN_MAX).map((request) => html`<${RequestRow} key=${keyOf(request)} of=${request} />`)}</ul></div>
    ${app.requests.length ? ''
      : html`<p class="empty">No request ${filter ? 'that the filter takes '
        : ''}so far. Try <code>curl -i http://HOST/</code> with a host of one of the sites.</p>`}`;
}

let last = 0;
/** @type {WeakMap<object, number>} */
const keys = new WeakMap();

/** Requests have no name of their own. @param {object} request */
function keyOf(request) {
  const key = keys.get(request) ?? (last += 1);
  keys.set(request, key);
  return key;
}

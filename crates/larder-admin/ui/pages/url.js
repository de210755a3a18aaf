// URL: the whole decision about one URL, what lies where, its samples, and its purge.
//
// In: a URL, pasted or clicked. Out: the answer of `explain` with the decision first; what the stores hold; requests for it
// that are remembered; the purge with its receipt.

import { useEffect, useState } from '../vendor/preact-hooks.js';
import { html } from '../vendor/htm-preact.js';
import { get } from '../api.js';
import { bytes, shown, span } from '../format.js';
import { Explained } from '../parts/explained.js';
import { Purge } from '../parts/purge.js';
import { Table } from '../parts/table.js';
import { OutLink, Text } from '../parts/text.js';
import { RequestRow } from './requests.js';

/** Fields as they are typed: one a line, `Name: value`. @param {string} text */
const fieldsOf = (text) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);

/** `/explain` takes a field several times, so its query is written here. @param {string} url @param {string} method @param {string} fields @param {boolean} offline */
function question(url, method, fields, offline) {
  const parts = [`url=${encodeURIComponent(url)}`];
  if (method !== 'GET') parts.push(`method=${encodeURIComponent(method)}`);
  fieldsOf(fields).forEach((field) => parts.push(`field=${encodeURIComponent(field)}`));
  if (offline) parts.push('offline=true');
  return `/explain?${parts.join('&')}`;
}

/** A value of a filter, in quotes. @param {string} text */
const quoted = (text) => `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;

/** Requests for a URL, as a filter. @param {string} url */
function filterOf(url) {
  try {
    const { host } = new URL(url);
    const target = url.replace(/^[a-z]+:\/\/[^/?#]*/i, '').replace(/#.*/, '') || '/';
    const filter = `url=${quoted(host + target)}`;
    return filter.length <= 1000 ? filter : null;
  } catch {
    return null;
  }
}

/** @param {{ list: any, fault: string }} props */
function Stored({ list, fault }) {
  const columns = [
    { key: 'status', name: 'status', number: true },
    { key: 'store', name: 'store', cell: (/** @type {any} */ row) => html`<${Text} of=${row.store} max=${40} />` },
    {
      key: 'places',
      name: 'where',
      wide: true,
      cell: (/** @type {any} */ row) => html`<${Text} of=${row.places.join(', ')} max=${200} />`,
    },
    { key: 'body_bytes', name: 'size', number: true, cell: (/** @type {any} */ row) => bytes(row.body_bytes) },
    { key: 'type', name: 'type', cell: (/** @type {any} */ row) => html`<${Text} of=${row.content_type ?? '–'} max=${60} />` },
    { key: 'age', name: 'age', number: true, cell: (/** @type {any} */ row) => span(row.age_seconds) },
    {
      key: 'ttl',
      name: 'fresh for',
      number: true,
      cell: (/** @type {any} */ row) => (row.gone ? 'gone' : row.invalidated ? 'invalidated' : span(row.ttl_seconds)),
    },
    {
      key: 'vary',
      name: 'varies by',
      wide: true,
      cell: (/** @type {any} */ row) =>
        html`<${Text}
          of=${(row.vary ?? []).map((/** @type {any} */ one) => `${one.name}: ${one.value ?? one.stored ?? '(none)'}`).join(', ') || '–'}
            max=${200} />`,
    },
    {
      key: 'variant',
      name: 'variant of the key',
      wide: true,
      cell: (/** @type {any} */ row) =>
        html`<${Text} of=${(row.variant ?? []).map((/** @type {any} */ one) => one ?? '(none)').join(', ') || '–'} max=${200} />`,
    },
  ];
  return html`<section class="panel"><h2>What lies where</h2>
    ${fault ? html`<p class="none">${shown(fault)}</p>`
      : html`<${Table} caption="Stored responses under the URL" columns=${columns} rows=${list?.responses ?? []} none="Nothing is stored
        under this URL." />`}
    ${
      list?.responses?.some((/** @type {any} */ row) => row.fields?.length)
        ? html`<details><summary>Fields of the stored responses</summary>${list.responses.map(
            (/** @type {any} */ row, /** @type {number} */ index) =>
              html`<h3>Response ${index + 1}</h3><${Table} caption=${`Fields of response ${index + 1}`} columns=${[
                { key: 'name', name: 'field', cell: (/** @type {any} */ field) => html`<${Text} of=${field.name} max=${80} />` },
                {
                  key: 'value',
                  name: 'value',
                  wide: true,
                  cell: (/** @type {any} */ field) => html`<${Text} of=${field.value} max=${600} />`,
                },
              ]} rows=${row.fields ?? []} />`,
          )}</details>`
        : ''
    }</section>`;
}

/** @param {{ query: URLSearchParams }} props */
export function Url({ query }) {
  const url = query.get('url') ?? '';
  const [text, setText] = useState(url);
  const [method, setMethod] = useState('GET');
  const [fields, setFields] = useState('');
  const [offline, setOffline] = useState(true);
  const [asked, setAsked] = useState(0);
  /** @type {[{ explain?: any, object?: any, samples?: any[], explainFault?: string, objectFault?: string, samplesFault?: string }, any]} */
  const [found, setFound] = useState({});
  useEffect(() => setText(url), [url]);
  useEffect(() => {
    if (!url) return undefined;
    const own = new AbortController();
    setFound({});
    const set = (/** @type {any} */ part) => own.signal.aborted || setFound((/** @type {any} */ old) => ({ ...old, ...part }));
    const none = { responses: [] };
    get(question(url, method, fields, offline), {}, own.signal).then(
      (explain) => {
        set({ explain });
        if (!explain.purge?.responses && !explain.stored?.responses?.length) return set({ object: none });
        return get('/object', { url }, own.signal).then(
          (object) => set({ object }),
          (error) => set(error.status === 404 ? { object: none } : { objectFault: error.message }),
        );
      },
      (error) => set({ explainFault: error.message, objectFault: 'What cannot be explained lies nowhere.' }),
    );
    const where = filterOf(url);
    if (where)
      get('/api/v1/requests', { where, limit: 50 }, own.signal).then(
        (json) => set({ samples: json.requests ?? [] }),
        (error) => set({ samplesFault: error.message }),
      );
    else set({ samples: [] });
    return () => own.abort();
  }, [url, asked]);
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    const next = `#/url?url=${encodeURIComponent(text.trim())}`;
    if (location.hash === next) setAsked(asked + 1);
    else location.hash = next;
  };
  const again = () => setAsked((/** @type {number} */ number) => number + 1);
  return html`<form class="filter" onSubmit=${send}>
      <label for="url-text">URL, as clients use it</label>
        <input id="url-text" type="url" required value=${text} spellcheck=${false} placeholder="https://shop.example/blog/a"
          onInput=${(/** @type {any} */ event) => setText(event.currentTarget.value)} />
      <button type="submit">Explain</button>
      <details class="whole"><summary>Method, fields, origin</summary>
        <p><label>Method <select value=${method} onChange=${(/** @type {any} */ event) => setMethod(event.currentTarget.value)}>
          ${['GET', 'HEAD', 'POST', 'PUT', 'DELETE'].map((one) => html`<option>${one}</option>`)}</select></label></p>
        <p><label for="url-fields">Fields of the request, one a line</label>
          <textarea id="url-fields" rows="3" spellcheck=${false} value=${fields} placeholder="Accept-Language: de"
            onInput=${(/** @type {any} */ event) => setFields(event.currentTarget.value)}></textarea></p>
        <p><label class="check"><input type="checkbox" checked=${!offline} onChange=${(/** @type {any} */ event) =>
          setOffline(!event.currentTarget.checked)} />ask the origin once, where the decision depends on its answer</label></p></details>
    </form>
    ${
      url
        ? html`<p class="address" tabindex=${url.length > 600 ? 0 : undefined}>
          <${Text} of=${url} max=${2500} class="long" /> <${OutLink} url=${url.length < 2000 ? url : ''} /></p>
      ${found.explainFault ? html`<p class="fault" role="alert">${shown(found.explainFault)}</p>` : found.explain
        ? html`<${Explained} of=${found.explain} />` : html`<p class="none">Asking.</p>`}
      <${Stored} list=${found.object} fault=${found.objectFault ?? ''} />
      ${found.explainFault ? '' : html`<${Purge} url=${url} explain=${found.explain} object=${found.object} onDone=${again} />`}
      <section class="panel"><h2>Requests for it that are remembered</h2>
        ${found.samplesFault ? html`<p class="fault">${shown(found.samplesFault)}</p>` : found.samples?.length
          ? html`<ul class="requests">${found.samples.map((request, index) => html`<${RequestRow} key=${index} of=${request} />`)}</ul>`
            : html`<p class="none">${found.samples ? 'No sample of it is remembered.' : 'Loading.'}</p>`}</section>`
        : html`<p class="empty">Paste a URL to see what larder does with a request for it, and why.</p>`
    }`;
}

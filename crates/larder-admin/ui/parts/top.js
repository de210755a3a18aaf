// The URLs that are asked for most, or that bring most bytes.
//
// In: what is counted. Out: a list with its window and error, asked for once. The table of larder is bounded: where keys gave
// way to others, that is said.

import { useEffect, useState } from '../vendor/preact-hooks.js';
import { html } from '../vendor/htm-preact.js';
import { get } from '../api.js';
import { byteRate, count, moment, rate, shown } from '../format.js';
import { app, windowWords } from '../state.js';
import { Table } from './table.js';
import { Text, UrlLink } from './text.js';

/** A key of the table as a URL, as far as it is one. @param {string} key */
const urlOf = (key) => (/^https?:\/\//i.test(key) ? key : `http://${key}`);

/** @param {{ of: 'urls' | 'bytes' | 'hosts', title: string }} props */
export function Top({ of, title }) {
  const [list, setList] = useState(/** @type {any} */ (null));
  const [fault, setFault] = useState('');
  const span = app.window > 600 ? 86400 : 600;
  useEffect(() => {
    const own = new AbortController();
    get('/api/v1/top', { of, window: span, limit: 10 }, own.signal).then(setList, (error) => own.signal.aborted || setFault(error.message));
    return () => own.abort();
  }, [of, span]);
  const each = of === 'bytes' ? byteRate : rate;
  const columns = [
    {
      key: 'url',
      name: of === 'hosts' ? 'host' : 'URL',
      wide: true,
      cell: (/** @type {any} */ row) =>
        of === 'hosts' ? html`<${Text} of=${row.key[0]} max=${90} />` : html`<${UrlLink} url=${urlOf(String(row.key[0]))} max=${90} />`,
    },
    {
      key: 'rate',
      name: of === 'bytes' ? 'bytes/s' : 'requests/s',
      number: true,
      cell: (/** @type {any} */ row) =>
        html`${each(row.rate)}${row.error > 0 ? html`<span class="note">at most ${each(row.error)} too much</span>` : ''}`,
    },
    { key: 'last', name: 'last', number: true, cell: (/** @type {any} */ row) => moment(row.last) },
  ];
  return html`<section><h3>${title}</h3><p class="note">
    ${span === 600 ? 'In 10 minutes' : 'In a day'}${list?.folded ? `; ${count(list.folded)} other keys gave way` : ''}.</p>
    ${fault ? html`<p class="fault">${shown(fault)}</p>`
      : html`<${Table} caption=${title} columns=${columns} rows=${list?.rows ?? []} none=${list ? `No request in ${windowWords()}.`
        : 'Loading.'} />`}</section>`;
}

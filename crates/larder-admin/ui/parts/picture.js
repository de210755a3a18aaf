// The frame of every picture: a title, a sentence that is its name, and its numbers behind "table".
//
// In: a sentence, the picture, and a table of the same numbers. Out: a figure. The picture itself is hidden from programs
// that read aloud; they are given the sentence and the table.

import { useState } from '../vendor/preact-hooks.js';
import { html } from '../vendor/htm-preact.js';
import { Table } from './table.js';

/**
 * @param {{ title: string, sentence: string, columns: import('./table.js').Column[], rows: any[], note?: any, class?: string, live?: boolean, children?: any }} props `live`: it has parts that can be pressed
 */
export function Picture({ title, sentence, columns, rows, note, class: kind = '', live = false, children }) {
  const [asTable, setTable] = useState(false);
  return html`<figure class=${`picture ${kind}`}>
    <figcaption><h2>${title}</h2>${note ? html`<span class="note">${note}</span>` : ''}
      <button type="button" class="quiet" aria-pressed=${String(asTable)} aria-label=${`Table: ${title}`} onClick=${() =>
        setTable(!asTable)}>table</button>
    </figcaption>
    ${
      asTable
        ? html`<p class="sentence">${sentence}</p><${Table} caption=${title} columns=${columns} rows=${rows} />`
        : html`<div class="drawn" role=${live ? 'group' : 'img'} aria-label=${sentence}>${children}</div>`
    }
  </figure>`;
}

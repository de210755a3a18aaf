// The line for a filter, with its fields proposed while one types.
//
// In: the filter that holds, and where larder found a fault in it. Out: the one that was sent. Words of results, reasons and
// befores are proposed as values, as `about` knows them.

import { useEffect, useState } from '../vendor/preact-hooks.js';
import { html } from '../vendor/htm-preact.js';
import { shown } from '../format.js';
import { wordsOf } from '../words.js';

const FIELDS = [
  'cache',
  'result',
  'reason',
  'before',
  'detail',
  'not_stored',
  'stored',
  'method',
  'scheme',
  'host',
  'path',
  'query',
  'url',
  'status',
  'site',
  'rule',
  'store',
  'origin',
  'server',
  'client',
  'ua',
  'referer',
  'type',
  'bytes',
  'time',
  'wait',
  'queue',
  'connect',
  'first_byte',
  'attempts',
  'trace',
  'protocol',
  'tls',
];
const EXAMPLES = ['cache!=hit', 'status=5xx', 'before=evicted', 'time>200ms', 'stored=false and status=200'];

/** The word that is being typed, and what could stand in its place. @param {string} text */
function proposals(text) {
  const typed = /[^\s()]*$/.exec(text)?.[0] ?? '';
  const start = text.slice(0, text.length - typed.length);
  const value = /^(result|reason|before|detail|not_stored)(!?=)(.*)$/.exec(typed);
  if (value) {
    const [, field = '', operator = '', begun = ''] = value;
    return wordsOf(field)
      .map((one) => one.word)
      .filter((word) => word.startsWith(begun) && word !== begun)
      .map((word) => `${start}${field}${operator}${word}`);
  }
  return typed ? FIELDS.filter((field) => field.startsWith(typed)).map((field) => `${start}${field}=`) : [];
}

/** @param {{ value: string, fault: string, onSet: (value: string) => void }} props */
export function FilterLine({ value, fault, onSet }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    onSet(text.trim());
  };
  return html`<form class="filter" onSubmit=${send}>
    <label for="filter-text">Filter</label>
    <input id="filter-text" type="search" list="filter-words" value=${text} maxlength="1024" spellcheck=${false} autocomplete="off"
      placeholder="cache!=hit and path=/blog/* and time>200ms"
      aria-invalid=${String(!!fault)} aria-describedby="filter-fault" onInput=${(/** @type {any} */ event) =>
        setText(event.currentTarget.value)} />
    <datalist id="filter-words">${proposals(text)
      .slice(0, 20)
      .map((one) => html`<option value=${one}></option>`)}</datalist>
    <button type="submit">Set</button>
    <p id="filter-fault" class="fault" role="alert">${fault ? shown(fault) : ''}</p>
    <p class="examples">
      ${EXAMPLES.map((one) => html`<button type="button" class="quiet" onClick=${() => onSet(one)}><code>${one}</code></button>`)}</p>
  </form>`;
}

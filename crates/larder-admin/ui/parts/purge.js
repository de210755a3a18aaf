// The purge of a URL: what would go, the question, the receipt.
//
// In: a URL with what `explain` and the stores say of it. Out: a purge that was asked for twice, and what became of it, also
// where a disk or another larder did not confirm. Nothing is sent before the dialog has been confirmed.

import { useState } from '../vendor/preact-hooks.js';
import { html } from '../vendor/htm-preact.js';
import { ask, get } from '../api.js';
import { bytes, count, counted, moment, shown, span } from '../format.js';
import { app } from '../state.js';
import { Dialog } from './dialog.js';
import { Facts } from './table.js';
import { Text } from './text.js';

/** @typedef {{ kind: 'urls' | 'prefixes' | 'tags', what: string }} Target */

/** What a purge would take, as far as that is known before. @param {Target} target @param {any} explain @param {any} object */
async function amount(target, explain, object) {
  if (target.kind === 'urls') {
    const responses = object?.responses ?? [];
    const number = explain?.purge?.responses ?? responses.length;
    const places = [
      ...new Set(responses.flatMap((/** @type {any} */ one) => one.places.map((/** @type {string} */ place) => `${one.store} (${place})`))),
    ];
    return { number, words: `${counted(number, 'response')}, ${bytes(explain?.purge?.bytes ?? 0)}`, places };
  }
  if (target.kind === 'prefixes') {
    const page = await get('/objects', { prefix: target.what, limit: 1000 });
    const number = page.objects.length;
    return {
      number,
      words: `${page.next ? 'more than ' : ''}${counted(number, 'response')}`,
      places: [...new Set(page.objects.map((/** @type {any} */ one) => one.store))],
    };
  }
  return { number: null, words: 'an unknown number of responses: everything with the tag', places: [] };
}

/** @param {{ status: number, json: any, url: string }} props */
function Receipt({ status, json, url }) {
  const fleet = json.fleet;
  return html`<div class=${`receipt ${status === 200 ? 'good' : 'warn'}`} role="status"><h3>
    ${status === 200 ? 'Purged' : 'Purged here, but not confirmed everywhere'}</h3>
    ${status === 503
      ? html`<p>The purge is in force. A disk or another larder has not confirmed it, so a crash may bring a response back. larder goes on
        trying; <code>larder purges ${shown(json.id)}</code> shows whether it holds by now.</p>` : ''}
    <${Facts} of=${[
      ['receipt', html`<code>${shown(json.id)}</code>`],
      ['what', html`<${Text} of=${json.what ?? url} max=${600} />`],
      ['removed', json.predicates ? `${counted(json.removed ?? 0, 'response')} at once` : counted(json.removed ?? 0, 'response')],
      ['the rest', json.predicates ? 'is not used any more; it leaves memory within ten seconds, and disks as they are walked' : null],
      ['made stale', json.softened ? counted(json.softened, 'response') : null],
      ['stay, put there by hand', json.by_hand || null],
      ['holds after a crash', json.held === true ? 'yes' : json.held === false ? 'no' : 'not known yet'],
      ['why not', json.why ? html`<${Text} of=${json.why} max=${600} />` : null],
      ['made at', json.at_ms ? moment(json.at_ms / 1000) : null],
      ['took', json.took_ms === null || json.took_ms === undefined ? null : `${count(json.took_ms)} ms`],
      ['all larders', fleet ? (fleet.complete ? 'confirmed' : 'not confirmed') : null],
      [
        'other larders',
        fleet?.members?.length
          ? html`<${Text}
            of=${fleet.members.map((/** @type {any} */ one) =>
              `${one.name} ${one.state}${one.left_s ? ` for ${span(one.left_s)} more` : ''}`).join(', ')} max=${800} />`
          : null,
      ],
    ]} /></div>`;
}

/** @param {{ url: string, explain: any, object: any, onDone: () => void }} props */
export function Purge({ url, explain, object, onDone }) {
  const [kind, setKind] = useState(/** @type {Target['kind']} */ ('urls'));
  const [name, setName] = useState('');
  const [soft, setSoft] = useState(false);
  const [question, setQuestion] = useState(/** @type {any} */ (null));
  const [receipt, setReceipt] = useState(/** @type {any} */ (null));
  const [fault, setFault] = useState('');
  const [busy, setBusy] = useState(false);
  const may = app.about?.may_change;
  let base = '';
  try {
    base = new URL(url).origin;
  } catch {
    base = '';
  }
  const prefixes = (explain?.purge?.prefixes ?? []).map((/** @type {string} */ path) => base + path);
  const tags = [...new Set((explain?.stored?.responses ?? []).flatMap((/** @type {any} */ one) => one.tags ?? []))];
  const what = kind === 'urls' ? url : name || (kind === 'tags' ? tags[0] : prefixes[0]) || '';
  const show = (/** @type {Event} */ event) => {
    event.preventDefault();
    setFault('');
    setBusy(true);
    const target = { kind, what: String(what) };
    amount(target, explain, object)
      .then(
        (found) => setQuestion({ ...target, ...found, soft }),
        (error) => setFault(error.message),
      )
      .finally(() => setBusy(false));
  };
  const purge = () => {
    const { kind: of, what: named, soft: softly } = question;
    setBusy(true);
    ask('/api/v1/purges', {}, { method: 'POST', json: { [of]: [named], ...(softly ? { soft: true } : {}) }, takes: [503] })
      .then(
        ({ status, json }) => {
          if (json.id) setReceipt({ status, json });
          else setFault(json.message ?? json.problems?.[0]?.message ?? `larder answered ${status}`);
          onDone();
        },
        (error) => setFault(error.message),
      )
      .finally(() => {
        setBusy(false);
        setQuestion(null);
      });
  };
  const would = explain?.purge;
  return html`<section class="panel"><h2>Purge</h2>
    <p>${would ? `A purge of the URL would take ${counted(would.responses, 'response')}, ${bytes(would.bytes)}.`
      : 'What a purge would take is not known yet.'} ${!explain || explain.stored?.last_purge ? '' : 'None of the last 1000 purges named it.'}</p>
    ${
      may === false
        ? html`<p
          class="notice">The token of this tab is <code>view_token</code>: it may look and explain, but not purge. <button type="button"
            disabled>Purge</button></p>`
        : html`<form class="filter" onSubmit=${show}><fieldset><legend>What goes</legend>
        <label class="check"><input type="radio" name="purge-kind" checked=${kind === 'urls'} onChange=${() =>
          setKind('urls')} />this URL</label>
        ${
          prefixes.length
            ? html`<label class="check"><input type="radio" name="purge-kind" checked=${kind === 'prefixes'} onChange=${() => {
                setKind('prefixes');
                setName('');
              }} />a prefix</label>`
            : ''
        }
        ${
          tags.length
            ? html`<label class="check"><input type="radio" name="purge-kind" checked=${kind === 'tags'} onChange=${() => {
                setKind('tags');
                setName('');
              }} />a tag</label>`
            : ''
        }
        ${kind === 'urls' ? ''
          : html`<label>
            ${kind === 'tags' ? 'Tag' : 'Prefix'} <select value=${what} onChange=${(/** @type {any} */ event) =>
              setName(event.currentTarget.value)}>
                ${(kind === 'tags' ? tags : prefixes).map((/** @type {any} */ one) =>
                  html`<option value=${one}>${shown(one).slice(0, 120)}</option>`)}</select></label>`}
        <label class="check"><input type="checkbox" checked=${soft} onChange=${(/** @type {any} */ event) =>
          setSoft(event.currentTarget.checked)} />soft: they become stale, and stay</label></fieldset>
        <button type="submit" disabled=${busy || !explain}>Show what would go</button></form>`
    }
    ${fault ? html`<p class="fault" role="alert">${shown(fault)}</p>` : ''}
    ${receipt ? html`<${Receipt} ...${receipt} url=${url} />` : ''}
    ${
      question
        ? html`<${Dialog} title="Purge?" onClose=${() => setQuestion(null)}>
      <p>${question.soft ? 'This makes stale' : 'This removes'} <strong>${question.words}</strong>
        ${question.kind === 'urls' ? ' of the URL' : question.kind === 'tags' ? ' ' : ' below the prefix'}</p>
      <div class="named" role="region" aria-label="What goes" tabindex="0"><${Text} of=${question.what} max=${20000} class="long" /></div>
      ${question.places.length ? html`<p>They lie in <${Text} of=${question.places.join(', ')} max=${600} />.</p>` : ''}
      <p>${question.soft ? 'The next request for each asks the origin.'
        : 'They cannot be brought back. The next request for each goes to the origin.'}</p>
      <p class="buttons"><button type="button" class="danger" disabled=${busy} onClick=${purge}>
        ${question.soft ? 'Make stale' : 'Purge'} ${question.number === null ? '' : counted(question.number, 'response')}</button>
        <button type="button" autofocus onClick=${() => setQuestion(null)}>Keep everything</button></p><//>`
        : ''
    }</section>`;
}

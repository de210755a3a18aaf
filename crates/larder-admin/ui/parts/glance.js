// Three short lists of the first page: why not from store, stores, errors and events.
//
// In: figures of the window and of this moment. Out: panels, each of which leads to its page.

import { html } from '../vendor/htm-preact.js';
import { causes, where } from '../account.js';
import { bytes, count, moment, percent, rate, shown, span } from '../format.js';
import { below, total } from '../past.js';
import { app, windowWords } from '../state.js';
import { told } from '../words.js';
import { Bar } from './bar.js';
import { RuleName, Text } from './text.js';

/** @param {{ values: Record<string, number>, before: Record<string, number> | null, minute: Record<string, number> }} props */
export function WhyList({ values, before, minute }) {
  const found = causes(values);
  const sum = found.reduce((total, cause) => total + cause.rate, 0);
  const then = before ? causes(before) : [];
  const thenSum = then.reduce((total, cause) => total + cause.rate, 0);
  return html`<section class="panel"><h2><a href="#/why">Why not from store</a></h2>
    <p class="note">share of ${rate(sum)} that were forwarded in ${windowWords()}</p>
    <ul class="glance">${found.slice(0, 6).map((cause) => {
      const place = where(minute, cause);
      const old = then.find((one) => one.kind === cause.kind && one.word === cause.word);
      return html`<li title=${told(cause.kind, cause.word).sentence ?? ''}><a href=${`#/why?open=${cause.kind}.${cause.word}`}>
        ${cause.word}</a><span class="value">${percent(cause.rate / sum, 0)}</span>
        <${Bar} share=${cause.rate / sum} before=${before ? (thenSum ? (old?.rate ?? 0) / thenSum : 0) : null} kind="r-asked" />
        <span class="note">${place?.rule ? html`<${RuleName} site=${place.site} rule=${place.rule} max=${40} />` : ''}</span></li>`;
    })}</ul>${found.length ? '' : html`<p class="none">Nothing was forwarded.</p>`}</section>`;
}

/** @param {{ stats: any }} props */
export function StoreList({ stats }) {
  return html`<section class="panel"><h2><a href="#/stores">Stores</a></h2><p class="note">fill of what each may hold, now</p>
    <ul class="glance">${(stats?.stores ?? []).flatMap((/** @type {any} */ store) =>
      store.tiers.map(
        (/** @type {any} */ tier) =>
          html`<li><span><${Text} of=${store.name} max=${30} /> ${tier.disk ? html`<${Text} of=${tier.disk} max=${24} />`
          : tier.tier}</span>
        <span class=${`value ${tier.state && tier.state !== 'ok' ? 'bad' : ''}`}>
          ${tier.state && tier.state !== 'ok' ? shown(tier.state) : percent(tier.max_bytes ? tier.bytes / tier.max_bytes : 0, 0)}</span>
        <${Bar} share=${tier.max_bytes ? tier.bytes / tier.max_bytes : 0} kind=${tier.tier === 'memory' ? 'r-memory' : tier.tier === 'disk'
          ? 'r-disk' : 'r-file'} />
        <span class="note">${bytes(tier.bytes)} of ${bytes(tier.max_bytes)}${tier.tier === 'memory' && store.evicted_age !== null
          && store.evicted_age !== undefined ? `; evicted after ${span(store.evicted_age)}` : ''}</span></li>`,
      ),
    )}</ul>${stats ? '' : html`<p class="none">Loading.</p>`}</section>`;
}

/** The text of an event, without the kind that stands before it. @param {any} event @returns {string} */
const said = ({ kind, text = '' }) => (text.startsWith(`${kind} `) ? text.slice(kind.length + 1) : text);

/** @param {{ past: import('../past.js').Past }} props */
export function EventList({ past }) {
  const faults = ['failure', 'refused']
    .flatMap((kind) => below(past.now?.values ?? {}, `${kind}.`).map(({ word }) => ({ kind, word, count: total(past.now, `${kind}.${word}`) })))
    .filter((fault) => fault.count >= 0.5)
    .sort((one, other) => other.count - one.count);
  return html`<section class="panel"><h2><a href="#/errors">Errors and events</a></h2>
    <p class="note">errors in ${windowWords()}, and what happened last</p>
    <ul class="events">
      ${faults.slice(0, 3).map((fault) =>
        html`<li title=${told(fault.kind, fault.word).sentence ?? ''}><span class="value bad">
          ${count(fault.count)}</span><a href="#/errors">${fault.word}</a></li>`)}
    ${app.events.slice(0, 5).map((event) =>
      html`<li><time>${moment(event.at)}</time><span><strong>
        ${shown(event.kind)}</strong> ${event.subject && !said(event).includes(event.subject) ? html`<${Text} of=${event.subject} max=${60} /> ` : ''}
        <${Text} of=${said(event)} max=${140} /></span></li>`)}</ul>
    ${faults.length || app.events.length ? '' : html`<p class="none">No error, no event.</p>`}</section>`;
}

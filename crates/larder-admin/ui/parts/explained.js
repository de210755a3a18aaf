// The answer of `explain`, with the decision first.
//
// In: the JSON of `/explain`. Out: decision, lifetime, route, key, stored responses, the origin's answer, parts of a page, and
// what would remove it, each with its section. What does not apply is left out.

import { html } from '../vendor/htm-preact.js';
import { bytes, count, percent, seconds, shown, span } from '../format.js';
import { Bar } from './bar.js';
import { Facts, Table } from './table.js';
import { Text } from './text.js';

/** A reason: sentence and section. @param {{ of: any }} props */
export const Reason = ({ of }) =>
  of ? html`<span>${shown(of.sentence)} ${of.section ? html`<span class="note">[${shown(of.section)}]</span>` : ''}</span>` : '';

/** @param {any} value @param {number} [max] */
const text = (value, max = 300) =>
  value === null || value === undefined || value === '' ? null : html`<${Text} of=${value} max=${max} />`;
/** @param {any[] | undefined} list @param {number} [max] */
const joined = (list, max = 600) => (list?.length ? text(list.join(', '), max) : null);

const HAPPENS = {
  hit: 'answered from the store',
  refresh: 'answered from the store, and refreshed behind',
  validate: 'validated with the origin',
  complete: 'completed by the origin',
  fetch: 'fetched from the origin',
  pass: 'passed to the origin',
  file: 'answered with a file',
  refuse: 'refused',
};

/** @param {{ of: any }} props */
function Decision({ of }) {
  const { decision, cache_status: field } = of;
  const judged = of.origin?.judgement;
  return html`<section class=${`panel verdict v-${decision.verdict}`}><h2>
    ${/** @type {any} */ (HAPPENS)[decision.verdict] ? `${shown(decision.verdict)}: ${/** @type {any} */ (HAPPENS)[decision.verdict]}`
      : shown(decision.verdict)}</h2>
    <p class="lead"><${Reason} of=${decision.reason} /></p>
    <${Facts} of=${[
      ['token', html`<code>${shown(decision.reason?.token)}</code>`],
      ['would be stored', judged ? html`${judged.stored ? 'yes' : 'no'}: <${Reason} of=${judged.reason} />` : null],
      ['what helps', judged?.help ? text(typeof judged.help === 'string' ? judged.help : judged.help.sentence, 600) : null],
      ['last time', decision.last_time ? html`<${Reason} of=${decision.last_time} />` : null],
      ['waits', decision.alone ? 'for no other request, and none waits for it' : null],
      ['conditions that are added', joined((decision.conditions ?? []).map((/** @type {any} */ one) => `${one.name}: ${one.value}`))],
      [
        'refreshed ahead',
        decision.refresh_ahead_seconds === null || decision.refresh_ahead_seconds === undefined
          ? null
          : `a use in ${span(decision.refresh_ahead_seconds)} begins it`,
      ],
      ['asked for lately', decision.uses ? `${count(decision.uses)} times; ${count(of.route?.min_uses)} are needed` : null],
      ['Cache-Status', text(field, 800)],
    ]} />
    ${
      decision.stale_use?.length
        ? html`<h3>Stale use</h3><${Table} caption="Stale use" columns=${[
            { key: 'cause', name: 'when' },
            { key: 'allowed', name: 'allowed', cell: (/** @type {any} */ row) => (row.allowed ? 'yes' : 'no') },
            { key: 'reason', name: 'why', wide: true, cell: (/** @type {any} */ row) => html`<${Reason} of=${row.reason} />` },
            {
              key: 'window',
              name: 'for how long past its lifetime',
              cell: (/** @type {any} */ row) =>
                row.window ? html`${span(row.window.seconds)}, <${Text} of=${row.window.field} max=${80} />` : '–',
            },
          ]} rows=${decision.stale_use} />`
        : ''
    }</section>`;
}

/** @param {{ of: any }} props */
function Freshness({ of }) {
  if (!of) return null;
  const share = of.lifetime_seconds > 0 ? of.age_seconds / of.lifetime_seconds : 1;
  return html`<div><p>
    ${of.left_seconds >= 0 ? `Fresh for ${span(of.left_seconds)} more`
      : `Stale for ${span(-of.left_seconds)}`}: age ${span(of.age_seconds)}, lifetime ${span(of.lifetime_seconds)}. <${Reason}
        of=${of.source} />
      ${of.shortened_from_seconds ? ` Jitter shortened it from ${span(of.shortened_from_seconds)}.` : ''}${of.no_cache
        ? ' Each use has to be validated.' : ''}${of.stale?.length ? html` On stale use it says ${joined(of.stale)}.` : ''}</p>
    <p class="age"><${Bar} share=${share} kind=${of.left_seconds >= 0 ? 'r-memory' : 'r-stale'} /> <span class="note">
      ${percent(Math.min(share, 9.99), 0)} of its lifetime</span></p>
    ${
      of.candidates?.length
        ? html`<${Table} caption="What gives a lifetime, in order of precedence" columns=${[
            { key: 'field', name: 'as it was said', wide: true, cell: (/** @type {any} */ row) => text(row.field, 200) },
            { key: 'life', name: 'lifetime', number: true, cell: (/** @type {any} */ row) => span(row.lifetime_seconds) },
            { key: 'decides', name: 'outcome', cell: (/** @type {any} */ row) => (row.decides ? html`<strong>decides</strong>` : 'loses') },
            { key: 'source', name: 'source', wide: true, cell: (/** @type {any} */ row) => html`<${Reason} of=${row.source} />` },
          ]} rows=${of.candidates} />`
        : ''
    }</div>`;
}

/** What a purge named, with its kind once. @param {{ kind: string, what: string }} purge */
const named = ({ kind, what }) => (what.startsWith(`${kind} `) ? what : `${kind} ${what}`);

/** @param {{ of: any, index: number }} props */
function Response({ of, index }) {
  const purged = of.purge
    ? `${of.purge.id}, ${of.purge.mode} by ${named(of.purge)}, ${span(of.purge.age_seconds)} ago`
    : null;
  return html`<section class="response"><h3>Response ${index + 1}: ${shown(of.status)}, ${bytes(of.body_bytes)} ${of.selected
    ? html`<span class="tag good">selected by this request</span>` : html`<span class="tag">not selected</span>`}${of.gone
      ? html`<span class="tag warn">gone</span>` : of.invalidated
        ? html`<span class="tag warn">${of.soft ? 'purged softly' : 'invalidated'}</span>` : ''}</h3>
    <${Facts} of=${[
      ['lies in', html`${text(of.store, 60)} (${joined(of.places)})`],
      ['held back', of.held_back ? html`<${Reason} of=${of.held_back} />` : null],
      [
        'part',
        of.part
          ? `bytes ${count(of.part.first)} to ${count(of.part.last)} of ${of.part.complete === null ? 'an unknown length'
            : count(of.part.complete)}`
          : null,
      ],
      ['ended', of.invalidated_seconds === null || of.invalidated_seconds === undefined ? null : `${span(of.invalidated_seconds)} ago`],
      ['purge', text(purged, 400)],
      ['coding', text(of.content_encoding)],
      ['uncompressed', of.uncompressed ? html`<${Reason} of=${of.uncompressed} />` : null],
      ['entity tag', text(of.etag, 120)],
      ['modified', text(of.last_modified)],
      [
        'tags',
        of.tags?.length || of.every_tag
          ? html`${joined(of.tags, 1200)} ${of.every_tag ? 'and more than are kept: a purge of any tag takes it' : ''}`
          : null,
      ],
      ['groups', joined(of.groups)],
      ['cookies that it sets', joined(of.cookies)],
      ['cookies that were not stored', joined(of.cookies_withheld)],
    ]} />
    ${
      of.vary?.length
        ? html`<${Table} caption="Varies by" hideCaption=${false} columns=${[
            { key: 'name', name: 'field', cell: (/** @type {any} */ row) => text(row.name, 80) },
            { key: 'stored', name: 'stored with', wide: true, cell: (/** @type {any} */ row) => text(row.stored) ?? '(none)' },
            { key: 'asked', name: 'asked with', wide: true, cell: (/** @type {any} */ row) => text(row.asked) ?? '(none)' },
          ]} rows=${of.vary} />`
        : ''
    }
    <${Freshness} of=${of.freshness} /></section>`;
}

/** @param {{ of: any }} props */
function Route({ of: { route, key, request } }) {
  return html`<section class="panel"><h2>Site, rule and key</h2><${Facts} of=${[
    [
      'site',
      html`${text(route.site, 100)}${route.host_pattern ? html`, by ${text(route.host_pattern, 100)}` : ', which takes every host'}`,
    ],
    [
      'rule',
      route.rule
        ? html`${count(route.rule)} of ${count(route.rules)}, ${route.line
          ? html`<a href=${`#/config?line=${route.line}`}>${text(route.label, 100)}</a>`
            : text(route.label, 100)}: ${joined(route.conditions) ?? 'takes every request'}`
        : `none of ${count(route.rules)} matches`,
    ],
    ['passed over', joined((route.passed_over ?? []).map((/** @type {any} */ one) => one.label))],
    ['may be stored', route.cache ? null : 'no: the rule does not cache'],
    ['origin', text(route.origin, 80)],
    ['servers', joined((route.servers ?? []).map((/** @type {any} */ one) => `${one.server} ${one.state}`))],
    ['WebSocket', route.websocket ? html`<${Reason} of=${route.websocket} />` : null],
    ['path as rules see it', text(route.canonical_path, 600)],
    ['fields that were dropped', joined(request.dropped_fields)],
    ['cache key', key ? text(key.text, 1200) : 'none: nothing is looked up'],
    [
      'parts of the key',
      key
        ? joined(
            key.parts.map((/** @type {any} */ part) => `${part.name}=${part.value ?? '(none)'}`),
            1200,
          )
        : null,
    ],
    ['parameters left out', joined(key?.dropped_parameters)],
    ['parameters', key?.reordered ? 'put into the order of the rule' : null],
  ]} /></section>`;
}

/** @param {{ of: any }} props */
function Origin({ of }) {
  if (!of) return null;
  const place = of.judgement?.place;
  return html`<section class="panel"><h2>The origin's answer</h2><${Facts} of=${[
    ['origin', text(of.origin, 80)],
    ['not asked', text(of.not_asked?.sentence ?? of.not_asked, 400)],
    ['failed', of.failed ? html`<${Reason} of=${of.failed} />` : null],
    ['status', of.status],
    ['time to head', of.seconds === null || of.seconds === undefined ? null : seconds(of.seconds)],
    [
      'fields',
      joined(
        (of.fields ?? []).map((/** @type {any} */ one) => `${one.name}: ${one.value}`),
        1500,
      ),
    ],
    ['shared with those who wait', of.judgement ? (of.judgement.shared ? 'yes' : 'no') : null],
    ['would go to', place ? html`${text(place.store, 60)} (${joined(place.places)}) <${Reason} of=${place.reason} />` : null],
    ['varies by', joined(of.judgement?.vary)],
    ['cookies that would not be stored', joined(of.judgement?.cookies_withheld)],
    ['uncompressed', of.uncompressed ? html`<${Reason} of=${of.uncompressed} />` : null],
  ]} /><${Freshness} of=${of.judgement?.freshness} /></section>`;
}

/** @param {{ of: any }} props */
function Parts({ of }) {
  if (!of) return null;
  return html`<section class="panel"><h2>Parts of the page (${shown(of.language)})</h2><p><${Reason} of=${of.state} /></p>
    ${
      of.problems?.length
        ? html`<${Table} caption="Problems of the template" columns=${[
            { key: 'line', name: 'line', number: true },
            { key: 'column', name: 'column', number: true },
            { key: 'problem', name: 'problem', wide: true, cell: (/** @type {any} */ row) => text(row.problem) },
          ]} rows=${of.problems} />`
        : ''
    }
    <${Table} caption="Includes" columns=${[
      { key: 'line', name: 'line', number: true },
      { key: 'url', name: 'what', wide: true, cell: (/** @type {any} */ row) => text(row.url ?? row.directive, 200) },
      { key: 'verdict', name: 'what happens', cell: (/** @type {any} */ row) => shown(row.fragment?.verdict ?? '–') },
      { key: 'ttl', name: 'fresh for', number: true, cell: (/** @type {any} */ row) => span(row.fragment?.ttl_seconds) },
      {
        key: 'why',
        name: 'why',
        wide: true,
        cell: (/** @type {any} */ row) => html`<${Reason} of=${row.failed ?? row.fragment?.reason} />`,
      },
    ]} rows=${of.includes ?? []} />
    <${Facts} of=${[
      ['depends on', joined(of.depends_on)],
      ['fresh for', of.ttl_seconds === null ? null : span(of.ttl_seconds)],
      ['why', of.ground ? html`<${Reason} of=${of.ground} />` : null],
    ]} /></section>`;
}

/** @param {{ of: any }} props */
export function Explained({ of }) {
  const stored = of.stored ?? {};
  const last = stored.last_purge;
  return html`<${Decision} of=${of} />
    <section class="panel"><h2>Stored under the key</h2>
      <${Facts} of=${[
        [
          'before',
          stored.before
            ? html`<code>
              ${shown(stored.before.word)}</code> ${shown(stored.before.sentence)}${stored.before.minutes_ago === null ? ''
                : ` ${count(stored.before.minutes_ago)} min ago.`}`
            : null,
        ],
        ['hit-for-miss', stored.hit_for_miss ? 'lately nothing that could be shared came, so no request waits for another' : null],
        ['looked in', joined((stored.stores ?? []).map((/** @type {any} */ one) => `${one.store} (${one.places.join(', ')})`))],
        ['last purge', last ? text(`${last.id}, ${last.mode} by ${named(last)}, ${span(last.age_seconds)} ago`, 400) : null],
        [
          'shared by larders',
          joined(
            (stored.records ?? []).map(
              (/** @type {any} */ one) =>
                `${one.store}: ${one.record ? `fetched by ${one.record.writer}`
                  : 'no record'}; fetch ${one.fetch?.state?.sentence ?? '?'}${one.unused ? `; not used: ${one.unused.sentence}` : ''}`,
            ),
            1500,
          ),
        ],
      ]} />
      ${(stored.responses ?? []).map((/** @type {any} */ one, /** @type {number} */ index) =>
        html`<${Response} of=${one} index=${index} />`)}
      ${stored.responses?.length ? '' : html`<p class="none">No response.</p>`}</section>
    <${Origin} of=${of.origin} /><${Parts} of=${of.parts} /><${Route} of=${of} />
    ${of.removal?.length
      ? html`<section class="panel"><h2>What will remove or renew it</h2><ul>
        ${of.removal.map((/** @type {any} */ one) => html`<li><${Reason} of=${one} /></li>`)}</ul></section>` : ''}`;
}

// Config: the file as it runs, with the traffic of each site and rule beside its lines.
//
// In: the text with secrets cut out, places of sites and rules, warnings, the difference from the file on disk. Out: lines
// with numbers. A URL typed above marks the rule that takes it, and those that were passed over.

import { useEffect, useState } from '../vendor/preact-hooks.js';
import { html } from '../vendor/htm-preact.js';
import { get } from '../api.js';
import { scopesIn, split } from '../account.js';
import { moment, percent, rate, shown } from '../format.js';
import { app, lately, useNow } from '../state.js';
import { Text } from '../parts/text.js';

const DIFFERS = /** @type {Record<string, string>} */ ({
  changed: 'It was changed since larder read it. A reload (HUP) takes it.',
  unseen: 'Secrets or ends of lines were changed, which are not shown here. A reload (HUP) takes them.',
  absent: 'It is not there any more. What runs stays in force; a start would fail.',
  unreadable: 'It cannot be read, or has an error: a reload would not take it. larder check says what is wrong.',
});

/** @param {{ differs: any }} props */
function Difference({ differs }) {
  if (!differs) return null;
  return html`<section class="panel"><h2>The file on disk differs from what runs</h2>
    <p>${DIFFERS[differs.why] ?? `It cannot be compared: ${shown(differs.why)}.`}</p>
    ${differs.diff?.length
      ? html`<pre class="code" tabindex="0" aria-label="Difference">
        ${differs.diff.map((/** @type {any} */ line) =>
          html`<span class=${`codeline ${line.kind === '+' ? 'plus' : line.kind === '-' ? 'minus' : ''}`}><span class="nr">
            ${line.line}</span><span class="code-text">${line.kind} <${Text} of=${line.text} max=${1000} /></span>${'\n'}</span>`)}</pre>`
              : ''}</section>`;
}

/** @param {{ query: URLSearchParams }} props */
export function Config({ query }) {
  useNow();
  const [config, setConfig] = useState(/** @type {any} */ (null));
  const [fault, setFault] = useState('');
  const [url, setUrl] = useState('');
  const [route, setRoute] = useState(/** @type {any} */ (null));
  const loaded = app.about?.config?.loaded;
  useEffect(() => {
    get('/api/v1/config').then(setConfig, (error) => setFault(error.message));
  }, [loaded]);
  const line = Number(query.get('line')) || 0;
  useEffect(() => {
    if (line && config) document.getElementById(`line-${line}`)?.scrollIntoView({ block: 'center' });
  }, [line, config]);
  const find = (/** @type {Event} */ event) => {
    event.preventDefault();
    get('/explain', { url: url.trim(), offline: true }).then(
      (json) => {
        setRoute(json.route);
        setFault('');
      },
      (error) => {
        setRoute(null);
        setFault(error.message);
      },
    );
  };
  if (!config) return html`<p class=${fault ? 'fault' : 'none'}>${fault ? shown(fault) : 'Loading.'}</p>`;
  if (!config.file && !config.text) return html`<p class="empty">This larder runs without a config file.</p>`;
  const { values: minute, words: minuteWords } = lately();
  const scopes = scopesIn(minute);
  const lines = String(config.text).split('\n');
  if (lines[lines.length - 1] === '') lines.pop();
  const ruleAt = new Map((config.rules ?? []).map((/** @type {any} */ rule) => [rule.line, rule]));
  const siteAt = new Map((config.sites ?? []).map((/** @type {any} */ site) => [site.line, site]));
  const warnings = config.warnings ?? [];
  const over = new Set((route?.passed_over ?? []).map((/** @type {any} */ rule) => rule.line));
  const within = (/** @type {number} */ number, /** @type {number | null} */ first) => {
    const rule = first ? ruleAt.get(first) : null;
    return rule ? number >= rule.line && number <= rule.end : false;
  };
  const side = (/** @type {number} */ number) => {
    const rule = ruleAt.get(number);
    if (rule) {
      const own = split(minute, scopes(rule.site, rule.rule));
      return own.all ? `${rate(own.all)}, hits ${percent(own.hits)}` : `no request in ${minuteWords}`;
    }
    const site = siteAt.get(number);
    if (!site) return '';
    const all = (config.rules ?? []).filter((/** @type {any} */ one) => one.site === site.site).concat({ site: site.site, rule: '(site)' });
    return `site: ${rate(all.reduce((/** @type {number} */ sum, /** @type {any} */ one) =>
      sum + split(minute, scopes(one.site, one.rule)).all, 0))}`;
  };
  const mark = (/** @type {number} */ number) => {
    if (within(number, route?.line ?? null)) return 'taken';
    if ([...over].some((first) => within(number, /** @type {any} */ (first)))) return 'passed';
    return number === line ? 'here' : '';
  };
  return html`<p class="lead">
    <${Text} of=${config.file ?? ''} max=${200} /> as it runs since ${moment(config.loaded)}. Secrets are replaced by <code>***</code>.</p>
    <form class="filter" onSubmit=${find}><label for="config-url">Which rule takes the URL</label>
      <input id="config-url" type="url" required value=${url} spellcheck=${false} placeholder="https://shop.example/blog/a"
        onInput=${(/** @type {any} */ event) => setUrl(event.currentTarget.value)} /><button type="submit">Mark it</button>
      <p class="fault" role="alert">${shown(fault)}</p></form>
    <p role="status">
      ${route ? html`Site <${Text} of=${route.site} max=${80} />: ${route.rule
        ? html`rule ${route.rule}, <${Text} of=${route.label} max=${80} />, takes it`
          : 'no rule takes it; the site itself decides'}${over.size ? `, after ${route.passed_over.length} passed over` : ''}.` : ''}</p>
    <${Difference} differs=${config.differs} />
    ${warnings.length
      ? html`<section class="panel"><h2>Warnings</h2><ul>
        ${warnings.map((/** @type {any} */ warning) =>
          html`<li>line ${warning.line}: <${Text} of=${warning.message} max=${600} /></li>`)}</ul></section>`
            : html`<p class="note">Without warnings.</p>`}
    <h2>The file</h2><p class="note">Beside each site and rule: its requests in ${minuteWords}.</p>
    <div class="code" tabindex="0" role="region" aria-label="The config file">${lines.map((text, index) => {
      const number = index + 1;
      const warned = warnings.some((/** @type {any} */ warning) => warning.line === number);
      return html`<div id=${`line-${number}`} class=${`codeline ${mark(number)} ${warned ? 'warned' : ''}`}><span class="nr">
        ${number}</span><span class="code-text"><${Text} of=${text} max=${1000} /></span><span class="beside">
          ${[side(number), number === route?.line && 'takes it',
            over.has(number) && 'passed over'].filter(Boolean).join(', ')}</span></div>`;
    })}</div>`;
}

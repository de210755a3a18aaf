// Rules: each rule in the order of the file, with its traffic, its results and what it saved.
//
// In: the config's list of rules, figures of this moment, series by rule. Out: a list by site. Rules that never matched, and
// those behind a rule that takes every request, are marked.

import { useEffect, useState } from '../vendor/preact-hooks.js';
import { html } from '../vendor/htm-preact.js';
import { get } from '../api.js';
import { scopesIn, split } from '../account.js';
import { byteRate, number, percent, rate, seconds, shown } from '../format.js';
import { below, means, usePast } from '../past.js';
import { app, lately, useNow, windowWords } from '../state.js';
import { results } from '../words.js';
import { ResultBar } from '../parts/bar.js';
import { Spark } from '../parts/spark.js';
import { Table } from '../parts/table.js';
import { Top } from '../parts/top.js';
import { RuleName, SiteName, Text, isNoSite, noSiteSentence } from '../parts/text.js';

/** The rules of the file, then what else was counted. @param {any} config @param {any} stats */
function listed(config, stats) {
  const counted = stats?.rules ?? [];
  const rows = (config?.rules ?? []).map((/** @type {any} */ rule) => ({ ...rule }));
  for (const rule of counted) {
    if (!rows.some((/** @type {any} */ row) => row.site === rule.site && row.rule === rule.rule))
      rows.push({ site: rule.site, rule: rule.rule, line: null });
  }
  const behind = new Map();
  return rows.map((/** @type {any} */ row) => {
    const totals = counted.find((/** @type {any} */ rule) => rule.site === row.site && rule.rule === row.rule);
    const after = row.rule === '(site)' ? null : behind.get(row.site);
    // Patterns that take every path; what stands below them is never asked.
    if (row.rule === '/*' || row.rule === '*') behind.set(row.site, row.rule);
    return { ...row, totals, after };
  });
}

/** Hit ratio over time. @param {import('../past.js').Series | null} series @param {string} scope */
function ratios(series, scope) {
  if (!series) return [];
  return series.times.map((_, index) => {
    /** @type {Record<string, number>} */
    const values = {};
    let known = false;
    for (const { word, value } of below(series.values, `${scope}result.`)) {
      if (value[index] !== null && value[index] !== undefined) known = true;
      values[`result.${word}`] = value[index] ?? 0;
    }
    return known ? split(values).hits : null;
  });
}

export function Rules() {
  const now = useNow();
  const [config, setConfig] = useState(/** @type {any} */ (null));
  const loaded = app.about?.config?.loaded;
  useEffect(() => {
    get('/api/v1/config').then(setConfig, () => setConfig({}));
  }, [loaded]);
  const rows = listed(config, now?.stats);
  const scopes = scopesIn(lately().values);
  const scopeOf = (/** @type {any} */ row) => scopes(row.site, row.rule);
  const busy = rows.filter((/** @type {any} */ row) => row.totals?.requests > 0).slice(0, 48);
  const past = usePast(busy.flatMap((/** @type {any} */ row) => [`${scopeOf(row)}result.*`]));
  const values = means(past.now);
  const before = app.compare && past.before ? means(past.before) : null;
  const { values: minute, words: minuteWords } = lately();
  if (!now || !config) return html`<p class="none">${shown(app.nowFault || 'Loading.')}</p>`;
  const words = results((word) => rows.some((/** @type {any} */ row) => (values[`${scopeOf(row)}result.${word}`] ?? 0) > 0));
  const all = rows.map((/** @type {any} */ row) => {
    const scope = scopeOf(row);
    const own = split(values, scope);
    const fresh = split(minute, scope);
    const answers = minute[`${scope}origin_answers`] ?? 0;
    const each = answers > 0 ? (minute[`${scope}origin_seconds`] ?? 0) / answers : null;
    return {
      ...row,
      own,
      scope,
      each,
      then: before ? split(before, scope) : null,
      line_of: ratios(past.now, scope),
      line_before: app.compare && past.before ? ratios(past.before, scope) : [],
      store: minute[`${scope}bytes_store`] ?? 0,
      origin: minute[`${scope}bytes_origin`] ?? 0,
      fetched: minute[`${scope}bytes_in`] ?? 0,
      saved: each === null ? null : (fresh.all - fresh.asked) * each,
    };
  });
  const columns = [
    {
      key: 'rule',
      name: 'rule',
      wide: true,
      cell: (/** @type {any} */ row) =>
        html`${row.line ? html`<a href=${`#/config?line=${row.line}`}><${Text} of=${row.rule} max=${80} /></a>`
        : html`<${RuleName} site=${row.site} rule=${row.rule} max=${80} />`}
      ${!row.totals?.requests ? html`<span class="tag warn">never matched</span>` : ''}${row.after
        ? html`<span class="tag warn">behind ${row.after}, which takes all</span>` : ''}`,
    },
    {
      key: 'rate',
      name: 'requests/s',
      number: true,
      cell: (/** @type {any} */ row) =>
        html`${rate(row.own.all)}${row.then ? html`<span class="note">before ${rate(row.then.all)}</span>` : ''}`,
    },
    {
      key: 'ratio',
      name: 'hit ratio',
      number: true,
      cell: (/** @type {any} */ row) =>
        html`${percent(row.own.hits)}${row.then ? html`<span class="note">before ${percent(row.then.hits)}</span>` : ''}`,
    },
    {
      key: 'line',
      name: 'over time',
      cell: (/** @type {any} */ row) =>
        html`<${Spark} values=${row.line_of} before=${row.line_before} max=${1}
          sentence=${`Hit ratio in ${windowWords()}: ${percent(row.own.hits)}`} />`,
    },
    {
      key: 'results',
      name: 'results',
      wide: true,
      cell: (/** @type {any} */ row) => html`<${ResultBar} of=${row.own.results} all=${row.own.all} />`,
    },
    { key: 'store', name: 'from store', number: true, cell: (/** @type {any} */ row) => byteRate(row.store) },
    { key: 'origin', name: 'from origin', number: true, cell: (/** @type {any} */ row) => byteRate(row.origin) },
    { key: 'fetched', name: 'fetched', number: true, cell: (/** @type {any} */ row) => byteRate(row.fetched) },
    { key: 'each', name: 'origin time', number: true, cell: (/** @type {any} */ row) => seconds(row.each) },
    {
      key: 'saved',
      name: 'saved',
      number: true,
      cell: (/** @type {any} */ row) => (row.saved === null ? '–' : `${number(row.saved)} s/s`),
    },
  ];
  const sites = [...new Set(all.map((/** @type {any} */ row) => row.site))];
  const idle = all.filter((/** @type {any} */ row) => !row.totals?.requests).length;
  return html`<p class="lead">
    ${all.length - idle} of ${all.length} rules have taken requests since larder was started. Rules stand in the order of the file; the
      first one that matches decides.</p>
    <ul class="keys">${words.map((word) => html`<li><span class=${`dot c-r-${word}`}></span>${word}</li>`)}</ul>
    ${sites.map(
      (site) => html`<section class="panel"><h2>${isNoSite(site) ? 'No site' : html`Site <${SiteName} site=${site} max=${80} />`}</h2>
      ${isNoSite(site) ? html`<p class="note">${noSiteSentence}</p>` : ''}
      <${Table} caption=${`Rules of ${site}`} columns=${columns} rows=${all.filter((/** @type {any} */ row) => row.site === site)}
        mark=${(/** @type {any} */ row) => (row.totals?.requests ? '' : 'idle')} />
      ${isNoSite(site) ? html`<${Top} of="hosts" title="Hosts that no site has" />` : ''}</section>`,
    )}
    <p class="note">Requests, hit ratio and results: mean of ${windowWords()}. Bytes, origin time and what was saved (seconds of the
      origin's work each second): ${minuteWords}.${past.failed ? ` ${past.failed}` : ''}</p>`;
}

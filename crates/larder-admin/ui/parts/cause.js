// One cause in full: its sentence, what helps, its trend, and where it occurs.
//
// In: a cause, series of the window. Out: what opens below its step. By site and rule all requests of the window are counted;
// folders and URLs come from the samples that larder remembers, and how far back these reach is said.

import { useEffect, useState } from '../vendor/preact-hooks.js';
import { html } from '../vendor/htm-preact.js';
import { get } from '../api.js';
import { clock, count, percent, rate, shown, span } from '../format.js';
import { mean } from '../past.js';
import { app, serverNow, windowWords } from '../state.js';
import { told } from '../words.js';
import { Bar } from './bar.js';
import { Picture } from './picture.js';
import { Series } from './series.js';
import { RuleName, SiteName, Text, UrlLink } from './text.js';
import { rowsOf } from './traffic.js';

/** `counted`: larder counts it for every request, so that no filter over samples is needed. */
const BY = [
  { by: 'site', title: 'by site', counted: true },
  { by: 'site,rule', title: 'by rule', counted: true },
  { by: 'folder', title: 'by folder', counted: false },
  { by: 'url', title: 'by URL', counted: false },
];

/** @param {{ cause: import('../account.js').Cause, past: import('../past.js').Past, all: number }} props */
export function CauseDetail({ cause, past }) {
  const word = told(cause.kind, cause.word);
  const [lists, setLists] = useState(/** @type {any[]} */ ([]));
  const [fault, setFault] = useState('');
  useEffect(() => {
    const own = new AbortController();
    const filter = `${cause.kind}=${cause.word}`;
    const asked = BY.map(({ by, counted }) =>
      get(
        '/api/v1/breakdown',
        { by: `${cause.kind},${by}`, from: app.window, where: counted ? '' : filter, limit: counted ? 1000 : 100 },
        own.signal,
      ),
    );
    Promise.allSettled(asked).then((answers) => {
      if (own.signal.aborted) return;
      setLists(answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : {})));
      setFault(answers.find((answer) => answer.status === 'rejected')?.reason.message ?? '');
    });
    return () => own.abort();
  }, [cause.kind, cause.word, app.window]);
  const name = `${cause.kind}.${cause.word}`;
  const sampled = lists.find((list) => list.source === 'samples');
  const series = past.now;
  const before = app.compare && past.before ? [{ times: past.before.times, values: past.before.values[name] ?? [] }] : [];
  return html`<div class="detail">
    <p>${word.sentence ? shown(word.sentence) : 'This word has no sentence.'} ${word.section
      ? html`<span class="note">[${shown(word.section)}]</span>` : ''}</p>
    ${word.helps ? html`<p><strong>What helps:</strong> ${shown(word.helps)}</p>` : ''}
    ${
      series?.values[name]
        ? html`<${Picture} title=${`Trend of ${cause.word}`} note=${`per second, ${windowWords()}`}
          sentence=${`${cause.word} in ${windowWords()}: ${rate(mean(series, name))} as a mean, ${rate(Math.max(0,
            ...(series.values[name] ?? []).map(Number)))} at most.`}
      columns=${[
        { key: 'at', name: 'time', cell: (/** @type {any} */ row) => clock(row.at, true) },
        { key: 'rate', name: 'requests/s', number: true, cell: (/** @type {any} */ row) => rate(series.values[name]?.[row.index]) },
      ]} rows=${rowsOf(series.times)}>
      <${Series} times=${series.times} lines=${[{ name: cause.word, colour: 'r-asked', values: series.values[name] }]} before=${before}
        unit=${rate} height=${120} /><//>`
        : ''
    }
    ${fault ? html`<p class="fault" role="alert">${shown(fault)}</p>` : ''}
    <div class="grid four">
      ${lists.map((list, index) => html`<${Where} list=${list} cause=${cause} by=${BY[index]?.by} title=${BY[index]?.title} />`)}</div>
    ${sampled ? html`<p class="note">
      ${lists[0]?.source === 'history' ? `By site and rule: all of ${windowWords()}. By folder and URL: from` : 'From'}
      ${' '}${count(sampled.samples)} samples of the last ${span(serverNow() - sampled.from)}.</p>` : ''}
    <p><a href=${`#/requests?filter=${encodeURIComponent(`${cause.kind}=${cause.word}`)}`}>See such requests as they happen</a></p>
  </div>`;
}

/** @param {{ list: any, cause: import('../account.js').Cause, by: string, title: string }} props */
function Where({ list, cause, by, title }) {
  const rows = (list.rows ?? []).filter((/** @type {any} */ row) => row.key[0] === cause.word);
  const sum = rows.reduce((/** @type {number} */ total, /** @type {any} */ row) => total + row.rate, 0);
  return html`<section><h3>${title}</h3><ul class="glance">${rows.slice(0, 8).map((/** @type {any} */ row) => {
    const [, text, rule] = row.key;
    const known = text === null ? '(none)' : text;
    const name =
      by === 'site'
        ? html`<${SiteName} site=${text} max=${70} />`
        : by === 'site,rule'
          ? html`<${RuleName} site=${text} rule=${rule} max=${70} />`
          : html`<${Text} of=${known} max=${70} />`;
    return html`<li>
      ${by === 'url' && text ? html`<${UrlLink} url=${/^https?:/.test(text) ? text : `http://${text}`}>${name}<//>`
        : html`<span>${name}</span>`}<span class="value">${percent(row.rate / sum, 0)}</span>
      <${Bar} share=${row.rate / sum} kind="r-asked" /><span class="note">${rate(row.rate)}</span></li>`;
  })}</ul>${rows.length ? '' : html`<p class="none">No sample of it is remembered.</p>`}</section>`;
}

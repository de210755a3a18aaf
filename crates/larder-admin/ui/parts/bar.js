// Bars that lie: one value of a whole, and one that is made of parts.
//
// In: shares, results or classes of statuses. Out: HTML boxes whose widths are set by the style object, which the policy allows. An hour before is a dotted
// mark.

import { html } from '../vendor/htm-preact.js';
import { percent, rate } from '../format.js';
import { resultClass, results } from '../words.js';

/** @param {number} share */
const width = (share) => `${Math.max(0, Math.min(1, share || 0)) * 100}%`;

/** @param {{ share: number, before?: number | null, from?: number, kind?: string }} props */
export const Bar = ({ share, before, from = 0, kind = '' }) =>
  html`<span class="bar" aria-hidden="true"><span class=${`fill ${kind}`} style=${{ left: width(from), width: width(share) }}></span>
    ${before !== null && before !== undefined ? html`<span class="mark" style=${{ left: width(from + before) }}></span>` : ''}</span>`;

/** Results as parts of one bar. @param {{ of: Record<string, number>, all: number }} props */
export function ResultBar({ of, all }) {
  const parts = results((word) => (of[word] ?? 0) > 0).filter((word) => (of[word] ?? 0) > 0);
  const sentence = parts.map((word) => `${word} ${percent((of[word] ?? 0) / all)}`).join(', ');
  return html`<span class="bar whole" role="img" aria-label=${sentence || 'no request'}>${parts.map(
    (word) =>
      html`<span class=${`part ${resultClass(word)}`} title=${`${word} ${rate(of[word])}, ${percent((of[word] ?? 0) / all)}`}
        style=${{ width: width((of[word] ?? 0) / (all || 1)) }}></span>`,
  )}</span>`;
}

const CLASSES = [
  ['1xx', 'r-own'],
  ['2xx', 'r-memory'],
  ['3xx', 'r-disk'],
  ['4xx', 'r-stale'],
  ['5xx', 'r-asked'],
];

/** Classes of statuses as parts of one bar, with their words below. @param {{ of: Record<string, number> }} props */
export function ClassBar({ of }) {
  const all = Object.values(of).reduce((sum, value) => sum + value, 0);
  const parts = CLASSES.filter(([word = '']) => (of[word] ?? 0) > 0);
  if (!all) return html`<span class="none">–</span>`;
  return html`<span class="bar whole" aria-hidden="true">
    ${parts.map(([word = '', kind]) => html`<span class=${`part ${kind}`} style=${{ width: width((of[word] ?? 0) / all) }}></span>`)}</span>
    <span class="keys">${parts.map(([word = '', kind]) =>
      html`<span><span class=${`dot ${kind}`}></span> ${word} ${percent((of[word] ?? 0) / all)}</span>`)}</span>`;
}

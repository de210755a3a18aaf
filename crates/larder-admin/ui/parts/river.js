// The river: from the clients over the results to the origins.
//
// In: rates by result, what the clients and origins show. Out: boxes, one bar for each result, and bands between them whose
// thickness is the rate. On a narrow screen the same is one stacked bar with a list.

import { html } from '../vendor/htm-preact.js';
import { percent, rate } from '../format.js';
import { resultClass, told } from '../words.js';
import { Bar, ResultBar } from './bar.js';

const ROW = 38;
const GAP = 84;
const THICKEST = 36;

/** A band between two heights, as a path. @param {number} from @param {number} to @param {number} thick */
function band(from, to, thick) {
  const half = thick / 2;
  const mid = GAP / 2;
  return `M0 ${from - half}C${mid} ${from - half} ${mid} ${to - half} ${GAP} ${to - half}V${to + half}C${mid} ${to + half} ${mid} ${from + half} 0 ${from + half}Z`;
}

/**
 * @param {{
 *   words: string[], of: Record<string, number>, before: Record<string, number> | null, all: number,
 *   clients: any, origins: { name: string, rate: number, box: any }[], ways: { origins: string }
 * }} props
 */
export function River({ words, of, before, all, clients, origins, ways }) {
  const top = Math.max(...words.map((word) => Math.max(of[word] ?? 0, before?.[word] ?? 0)), 1e-9);
  const height = Math.max(words.length * ROW, origins.length * (before ? 172 : 150), before ? 230 : 190);
  const start = (height - words.length * ROW) / 2;
  const row = (/** @type {number} */ index) => start + index * ROW + ROW / 2;
  const thick = (/** @type {number} */ value) => (value > 0 ? Math.max(1.5, (value / (all || 1)) * THICKEST) : 0);
  // Bands leave the clients beside each other, in the order of the rows.
  let left = height / 2 - words.reduce((sum, word) => sum + thick(of[word] ?? 0), 0) / 2;
  const bands = words.map((word, index) => {
    const own = thick(of[word] ?? 0);
    const from = left + own / 2;
    left += own;
    return { word, path: band(from, row(index), own), own };
  });
  const asked = row(words.length - 1);
  const each = height / Math.max(origins.length, 1);
  const sum = origins.reduce((total, origin) => total + origin.rate, 0);
  return html`<div class="river">
    <div class="flow" style=${{ height: `${height}px` }}>
      <div class="end clients">${clients}</div>
      <svg viewBox=${`0 0 ${GAP} ${height}`} preserveAspectRatio="none">
        ${bands.map((one) => one.own > 0 && html`<path class=${`band ${resultClass(one.word)}`} d=${one.path} />`)}</svg>
      <div class="rows" style=${{ paddingTop: `${start}px` }}>${words.map(
        (word) => html`<div class=${`row ${resultClass(word)} ${word === 'asked' ? 'asked' : ''}`}
          style=${{ '--thick': `${Math.max(2.5, thick(of[word] ?? 0)).toFixed(1)}px` }} title=${told('result', word).sentence ?? ''}>
          <span class="name">${word}</span><span class="value">${rate(of[word] ?? 0)}</span><span class="share">
            ${percent((of[word] ?? 0) / (all || 1))}</span>
          <${Bar} share=${(of[word] ?? 0) / top} before=${before ? (before[word] ?? 0) / top : null} kind=${resultClass(word)} /></div>`,
      )}</div>
      <svg viewBox=${`0 0 ${GAP} ${height}`} preserveAspectRatio="none">${origins.map((origin, index) => {
        const own = sum > 0 ? Math.max(2.5, thick(of.asked ?? 0) * (origin.rate / sum)) : 0;
        return own > 0 && html`<path class="band r-asked" d=${band(asked, index * each + each / 2, own)} />`;
      })}</svg>
      <div class="end origins">${origins.map((origin) => html`<a class="origin" href=${ways.origins}>${origin.box}</a>`)}</div>
    </div>
    <div class="stacked">
      <div class="end clients">${clients}</div>
      <${ResultBar} of=${of} all=${all} />
      <ul class="legend">${words.map(
        (word) => html`<li><span class=${`dot ${resultClass(word)}`}></span><span class="name">${word}</span><span class="value">
          ${rate(of[word] ?? 0)}</span><span class="share">${percent((of[word] ?? 0) / (all || 1))}</span>
        ${before ? html`<span class="note">before ${rate(before[word] ?? 0)}</span>` : ''}</li>`,
      )}</ul>
      ${origins.map((origin) => html`<a class="end origin" href=${ways.origins}>${origin.box}</a>`)}
    </div>
  </div>`;
}

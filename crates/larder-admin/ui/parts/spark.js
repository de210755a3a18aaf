// A small line without axes, for a row of a table.
//
// In: values with gaps, and the same an hour before. Out: SVG. The sentence beside it has the numbers.

import { html } from '../vendor/htm-preact.js';

const WIDTH = 120;
const HEIGHT = 24;

/** @param {(number | null)[]} values @param {number} top @param {number} low */
function path(values, top, low) {
  let text = '';
  let drawing = false;
  const step = Math.max(1, Math.ceil(values.length / WIDTH));
  for (let from = 0; from < values.length; from += step) {
    const known = values.slice(from, from + step).filter((value) => value !== null);
    if (!known.length) {
      drawing = false;
      continue;
    }
    const value = known.reduce((/** @type {number} */ sum, one) => sum + (one ?? 0), 0) / known.length;
    const x = values.length > 1 ? (from / (values.length - 1)) * WIDTH : 0;
    const y = HEIGHT - 2 - ((value - low) / (top - low || 1)) * (HEIGHT - 4);
    text += `${drawing ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`;
    drawing = true;
  }
  return text;
}

/** @param {{ values: (number | null)[], before?: (number | null)[], sentence: string, max?: number }} props */
export function Spark({ values, before = [], sentence, max }) {
  const known = [...values, ...before].filter((value) => value !== null).map(Number);
  if (!known.length) return html`<span class="none">–</span>`;
  const top = max ?? Math.max(...known, 1e-9);
  return html`<svg class="spark" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${sentence}>
    ${before.length ? html`<path class="before" d=${path(before, top, 0)} />` : ''}
    <path d=${path(values, top, 0)} />
  </svg>`;
}

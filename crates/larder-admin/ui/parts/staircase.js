// The staircase: how all requests come down to those that no store could answer.
//
// In: steps, each with its share, one after the other. Out: bars of which each begins where the last one ended, and a line
// at the ceiling: the hit ratio that would be left if everything were kept that may be kept.

import { html } from '../vendor/htm-preact.js';
import { percent, rate } from '../format.js';

/**
 * @typedef {{ key: string, name: any, rate: number, kind: string, group: string, before?: number | null, open?: () => void, isOpen?: boolean, below?: any, help?: string }} Step
 * @param {{ steps: Step[], all: number, ceiling: number | null }} props
 */
export function Staircase({ steps, all, ceiling }) {
  let from = 0;
  let group = '';
  const place = (/** @type {number} */ share) => `${Math.min(1, Math.max(0, share)) * 100}%`;
  return html`<div class="stairs">
    ${ceiling === null ? '' : html`<div class="ceiling"><span></span><span class="track"><span class="flag" style=${ceiling > 0.6 ? { right: place(1 - ceiling) } : { left: place(ceiling) }}>ceiling ${percent(ceiling)}</span></span></div>`}
    <ol>${steps.map((step) => {
      const share = all ? step.rate / all : 0;
      const start = from;
      from += share;
      const heading = step.group !== group && html`<li class="group"><span>${step.group}</span></li>`;
      group = step.group;
      const label = html`<span class="name">${step.name}</span><span class="value">${rate(step.rate)}</span><span class="share">${percent(share)}</span>
        <span class="track"><span class=${`step ${step.kind}`} style=${{ left: place(start), width: `max(2px, ${place(share)})` }}></span>
        ${step.before === null || step.before === undefined ? '' : html`<span class="mark" style=${{ left: place(start + step.before) }}></span>`}
        ${ceiling === null ? '' : html`<span class="line" style=${{ left: place(ceiling) }}></span>`}</span>
        <span class="more">${step.open ? (step.isOpen ? '▾' : '▸') : ''}</span>`;
      return html`${heading}<li key=${step.key}>${step.open
        ? html`<button type="button" class="stair" aria-expanded=${String(!!step.isOpen)} onClick=${step.open} title=${step.help ?? ''}>${label}</button>`
        : html`<div class="stair" title=${step.help ?? ''}>${label}</div>`}${step.isOpen ? step.below : ''}</li>`;
    })}</ol>
  </div>`;
}

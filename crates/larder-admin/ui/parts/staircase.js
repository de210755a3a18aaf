// The staircase: how all requests come down to those that no store could answer.
//
// In: what was answered here, and the steps of the rest, each with its rate. Out: one bar for all requests, whose rest is
// drawn larger below: each step begins where the last one ended, and a line stands at the ceiling, which is what would be
// left if everything were kept that may be kept.

import { html } from '../vendor/htm-preact.js';
import { percent, rate } from '../format.js';

/**
 * @typedef {{ key: string, name: any, rate: number, kind: string, group: string, before?: number | null, open?: () => void, isOpen?: boolean, below?: any, help?: string }} Step
 * @param {{ here: Step[], steps: Step[], all: number, ceiling: number }} props
 */
export function Staircase({ here, steps, all, ceiling }) {
  const share = (/** @type {number} */ value) => (all ? value / all : 0);
  const first = share(here.reduce((sum, step) => sum + step.rate, 0));
  const rest = Math.max(1 - first, 1e-9);
  const width = (/** @type {number} */ part) => `${Math.min(1, Math.max(0, part)) * 100}%`;
  // Where a share of all requests lies on the scale of the rest.
  const place = (/** @type {number} */ part) => width((part - first) / rest);
  const top = html`<span class="track whole">
    ${here.map((step) =>
      html`<span class=${`part ${step.kind}`} title=${`${step.name} ${rate(step.rate)}, ${percent(share(step.rate))}`}
        style=${{ width: width(share(step.rate)) }}></span>`)}<span class="part rest" style=${{ width: width(rest) }}></span></span>`;
  let from = first;
  let group = '';
  return html`<div class="stairs">
    <ul class="here">
      ${here.map((step) =>
        html`<li title=${step.help ?? ''}><span class=${`dot ${step.kind}`}></span>${step.name} ${rate(step.rate)} <span class="note">
          ${percent(share(step.rate))}${step.before === null || step.before === undefined ? ''
            : `, before ${percent(step.before)}`}</span></li>`)}</ul>
    <div class="stair all"><span class="name">all requests</span><span class="value">${rate(all)}</span><span class="share">100 %</span>
      ${top}<span></span></div>
    ${
      steps.length
        ? html`<div class="zoom stair"><span class="name">the rest, drawn larger</span><span class="value">
          ${rate(all * rest)}</span><span class="share">${percent(rest)}</span>
      <span class="wedge"><svg viewBox="0 0 100 30" preserveAspectRatio="none"><path d=${`M${first * 100} 0L100 0L100 30L0 30Z`} /></svg>
        <span class="scale"><span>${percent(first)}</span><span>100 %</span></span>
        <span class="flags"><span class="flag" style=${(ceiling - first) / rest > 0.5 ? { right: width(1 - (ceiling - first) / rest) }
          : { left: place(ceiling) }}>ceiling ${percent(ceiling)}</span></span></span><span></span></div>`
        : ''
    }
    <ol>${steps.map((step) => {
      const start = from;
      from += share(step.rate);
      const heading = step.group !== group && html`<li class="group"><span>${step.group}</span></li>`;
      group = step.group;
      const label = html`<span class="name">${step.name}</span><span class="value">${rate(step.rate)}</span><span class="share">
        ${percent(share(step.rate))}</span>
        <span class="track">
          <span class=${`step ${step.kind}`} style=${{ left: place(start), width: `max(2px, ${width(share(step.rate) / rest)})` }}></span>
        ${step.before === null || step.before === undefined ? ''
          : html`<span class="mark" style=${{ left: place(start + step.before) }}></span>`}
        <span class="line" style=${{ left: place(ceiling) }}></span></span><span class="more" aria-hidden="true">
          ${step.open ? (step.isOpen ? '▾' : '▸') : ''}</span>`;
      return html`${heading}
        <li key=${step.key}>
          <button type="button" class="stair" aria-expanded=${String(!!step.isOpen)} onClick=${step.open} title=${step.help ?? ''}>
            ${label}</button>${step.isOpen ? step.below : ''}</li>`;
    })}</ol>
  </div>`;
}

// The steps of one request: what it waited for, one after the other.
//
// In: the members of a request. Out: a bar for each step from where the last one ended. What is not measured apart is the
// rest, before the answer had been sent.

import { html } from '../vendor/htm-preact.js';
import { seconds } from '../format.js';

/** @type {[string, string, string][]} */
const STEPS = [
  ['wait', 'waited for the fetch of another', 'r-joined'],
  ['queue', 'in the queue of the origin', 'r-stale'],
  ['connect', 'connect', 'r-own'],
  ['first_byte', 'first byte of the origin', 'r-asked'],
];

/** @param {{ of: any }} props */
export function Waterfall({ of }) {
  const whole = of.time ?? 0;
  if (!whole) return null;
  let from = 0;
  const steps = STEPS.filter(([name]) => of[name] > 0).map(([name, words, kind]) => {
    const step = { words, kind, from, time: of[name] };
    from += of[name];
    return step;
  });
  if (whole > from)
    steps.push({ words: steps.length ? 'read and sent' : 'looked up and sent', kind: 'r-memory', from, time: whole - from });
  const end = Math.max(whole, from);
  const place = (/** @type {number} */ time) => `${(time / end) * 100}%`;
  return html`<ul class="waterfall" aria-label="Steps of the request">${steps.map(
    (step) =>
      html`<li><span class="name">${step.words}</span><span class="value">
        ${seconds(step.time)}</span>
          <span class="track" aria-hidden="true"><span class=${`fill ${step.kind}`} style=${{ left: place(step.from),
            width: `max(2px, ${place(step.time)})` }}></span></span></li>`,
  )}</ul>`;
}

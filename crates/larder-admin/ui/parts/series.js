// Lines over time, alone or stacked, with an hour before as a dotted line.
//
// In: times, one list of values for each line, and the same an hour before. Out: a canvas by uPlot, with a legend in HTML.
// Values that are not known leave a gap.

import { useEffect, useRef } from '../vendor/preact-hooks.js';
import { html } from '../vendor/htm-preact.js';
import uPlot from '../vendor/uplot.js';
import { clock } from '../format.js';
import { HOUR } from '../past.js';
import { colour } from '../words.js';

/**
 * @typedef {{ name: string, colour: string, values: (number | null)[] }} Line
 * @typedef {{ times: number[], values: (number | null)[], name?: string }} Before
 */

/** Sums from the bottom up, for areas on top of each other. @param {Line[]} lines @param {number} length */
function stacked(lines, length) {
  const sums = new Array(length).fill(null);
  return lines.map((line) =>
    sums.map((sum, index) => {
      const value = line.values[index] ?? null;
      if (value !== null) sums[index] = (sum ?? 0) + value;
      return value === null ? null : sums[index];
    }),
  );
}

/** Values at the times of another series, an hour later. @param {Before} before @param {number[]} times */
export function shifted(before, times) {
  let from = 0;
  const step = (before.times[1] ?? 0) - (before.times[0] ?? 0) || 1;
  return times.map((time) => {
    while (from + 1 < before.times.length && (before.times[from + 1] ?? 0) + HOUR <= time) from += 1;
    const at = (before.times[from] ?? 0) + HOUR;
    return at <= time && time - at < step * 2 ? (before.values[from] ?? null) : null;
  });
}

/**
 * @param {{ times: number[], lines: Line[], stack?: boolean, before?: Before[], unit: (value: number | null) => string, height?: number, max?: number, sparse?: boolean }} props `sparse`: a value may stand alone between gaps
 */
export function Series({ times, lines, stack = false, before = [], unit, height = 210, max, sparse = false }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const chart = useRef(/** @type {any} */ (null));
  const shape =
    lines.map((line) => line.name).join() +
    before.length +
    stack +
    document.documentElement.dataset.theme +
    matchMedia('(prefers-color-scheme: dark)').matches;
  const drawn = stack ? stacked(lines, times.length) : lines.map((line) => line.values);
  const past = before.map((one) => shifted(one, times));
  // The topmost sum is drawn first, so that the others lie on it.
  const data = [times, ...(stack ? [...drawn].reverse() : drawn), ...past];
  useEffect(() => {
    const own = box.current;
    if (!own) return undefined;
    const ink = colour('faint');
    const order = stack ? [...lines].reverse() : lines;
    const axis = { stroke: colour('soft'), grid: { stroke: ink, width: 1 }, ticks: { show: false }, font: '12px system-ui, sans-serif' };
    chart.current = new uPlot(
      {
        width: own.clientWidth || 300,
        height,
        cursor: { show: false },
        legend: { show: false },
        padding: [10, 8, 0, 0],
        scales: {
          x: { time: true },
          y: {
            range: (/** @type {any} */ _u, /** @type {number} */ _low, /** @type {number} */ high) => [
              0,
              max ?? (high > 0 ? high * 1.08 : 1),
            ],
          },
        },
        axes: [
          { ...axis, size: 26, space: 70, values: (/** @type {any} */ _u, /** @type {number[]} */ at) => at.map((one) => clock(one)) },
          { ...axis, size: 68, space: 36, values: (/** @type {any} */ _u, /** @type {number[]} */ at) => at.map((one) => unit(one)) },
        ],
        series: [
          {},
          ...order.map((line) => ({
            stroke: colour(line.colour),
            fill: stack ? colour(line.colour) : undefined,
            width: stack ? 0 : 2,
            points: { show: sparse, size: 5, fill: colour(line.colour) },
          })),
          ...before.map(() => ({ stroke: colour('text'), width: 1.5, dash: [2, 4], points: { show: false } })),
        ],
      },
      data,
      own,
    );
    const size = new ResizeObserver(() => own.clientWidth && chart.current?.setSize({ width: own.clientWidth, height }));
    size.observe(own);
    return () => {
      size.disconnect();
      chart.current?.destroy();
      chart.current = null;
    };
  }, [shape, height, times.length > 1]);
  useEffect(() => {
    chart.current?.setData(data);
  });
  return html`<div class="chart"><div class="plot" ref=${box} style=${{ height: `${height}px` }}></div>
    <ul class="keys">
      ${lines.map((line) => html`<li><span class=${`dot c-${line.colour}`}></span>${line.name}</li>`)}${before.length
        ? html`<li><span class="dots"></span>${before[0]?.name ?? 'an hour before'}</li>` : ''}</ul></div>`;
}

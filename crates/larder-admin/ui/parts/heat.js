// The heat map of times to answer: how many requests took how long, over time, with p50 and p99 as lines.
//
// In: times, upper bounds in seconds, counts per second, and two series. Out: a canvas. The bounds are powers of two, so
// the rows are of one height; a fuller colour has more requests, by its square root, so that rare slow ones are seen.

import { useEffect, useRef } from '../vendor/preact-hooks.js';
import { html } from '../vendor/htm-preact.js';
import { clock, seconds } from '../format.js';
import { colour } from '../words.js';

const LEFT = 62;
const BOTTOM = 26;
const TOP = 6;

/** @typedef {{ at: number, step: number, from: number, bounds: number[], counts: (number[] | null)[] }} Heat */
/** @typedef {{ times: number[], values: (number | null)[], name: string, dash: number[], shift?: number }} HeatLine */

/** Rows that are used, with one more at each end. @param {Heat} heat */
function range(heat) {
  let [low, high] = [heat.bounds.length, 0];
  heat.counts.forEach((column) =>
    column?.forEach((value, index) => {
      if (value > 0) [low, high] = [Math.min(low, index), Math.max(high, index)];
    }),
  );
  return low > high ? [0, heat.bounds.length - 1] : [Math.max(0, low - 1), Math.min(heat.bounds.length - 1, high + 1)];
}

/** @param {HTMLCanvasElement} canvas @param {Heat} heat @param {HeatLine[]} lines @param {number} height */
function draw(canvas, heat, lines, height) {
  const ratio = devicePixelRatio || 1;
  const width = canvas.parentElement?.clientWidth ?? 300;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext('2d');
  if (!pen) return;
  pen.scale(ratio, ratio);
  pen.font = '12px system-ui, sans-serif';
  const [low = 0, high = 21] = range(heat);
  const rows = high - low + 1;
  const tall = (height - BOTTOM - TOP) / rows;
  const columns = Math.min(heat.counts.length, Math.floor((width - LEFT) / 4)) || 1;
  const wide = (width - LEFT) / columns;
  const group = heat.counts.length / columns;
  const sums = Array.from({ length: columns }, (_, index) => {
    const part = heat.counts.slice(Math.floor(index * group), Math.floor((index + 1) * group)).filter((column) => column !== null);
    return part.length ? heat.bounds.map((_bound, row) => part.reduce((sum, column) => sum + (column?.[row] ?? 0), 0) / part.length) : null;
  });
  const most = Math.max(...sums.flatMap((column) => column ?? [0]), 1e-9);
  pen.fillStyle = colour('accent');
  sums.forEach((column, x) =>
    column?.forEach((value, row) => {
      if (value <= 0 || row < low || row > high) return;
      pen.globalAlpha = 0.12 + 0.88 * Math.sqrt(value / most);
      const [left, right] = [x, x + 1].map((edge) => Math.round((LEFT + edge * wide) * ratio) / ratio);
      const [above, below] = [high - row, high - row + 1].map((edge) => Math.round((TOP + edge * tall) * ratio) / ratio);
      pen.fillRect(left ?? 0, above ?? 0, (right ?? 0) - (left ?? 0), (below ?? 0) - (above ?? 0));
    }),
  );
  pen.globalAlpha = 1;
  pen.fillStyle = colour('soft');
  pen.textAlign = 'right';
  const every = Math.max(1, Math.ceil(18 / tall));
  for (let row = low; row <= high; row += every) {
    pen.fillText(seconds(heat.bounds[row]), LEFT - 8, TOP + (high - row) * tall + Math.min(tall, 12));
  }
  const span = heat.step * heat.counts.length;
  pen.textAlign = 'center';
  const places = Math.max(2, Math.floor((width - LEFT) / 110));
  for (let index = 1; index < places; index += 1) {
    pen.fillText(clock(heat.from + (span * index) / places), LEFT + ((width - LEFT) * index) / places, height - 8);
  }
  const first = Math.log2(heat.bounds[low] ?? 1) - 1;
  const y = (/** @type {number} */ value) => TOP + rows * tall - (Math.log2(value) - first) * tall;
  for (const line of lines) {
    pen.beginPath();
    let drawing = false;
    // One point for each column: what is finer than that is a scribble.
    const each = Math.max(1, Math.ceil(line.times.length / columns));
    for (let index = 0; index < line.times.length; index += each) {
      const part = line.values.slice(index, index + each).filter((one) => one !== null && one > 0);
      const value = part.length ? part.reduce((/** @type {number} */ sum, one) => sum + (one ?? 0), 0) / part.length : null;
      const time = line.times[Math.min(index + Math.floor(each / 2), line.times.length - 1)] ?? 0;
      const x = LEFT + ((time + (line.shift ?? 0) - heat.from) / span) * (width - LEFT);
      if (!value || x < LEFT || x > width) {
        drawing = false;
        continue;
      }
      if (drawing) pen.lineTo(x, y(value));
      else pen.moveTo(x, y(value));
      drawing = true;
    }
    pen.setLineDash([]);
    pen.strokeStyle = colour('ground');
    pen.lineWidth = 4;
    if (!line.shift) pen.stroke();
    pen.setLineDash(line.dash);
    pen.strokeStyle = colour('text');
    pen.lineWidth = 1.75;
    pen.stroke();
  }
  pen.setLineDash([]);
}

/** @param {{ heat: Heat | null, lines: HeatLine[], height?: number }} props */
export function HeatMap({ heat, lines, height = 210 }) {
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  useEffect(() => {
    const own = canvas.current;
    if (!own?.parentElement || !heat) return undefined;
    draw(own, heat, lines, height);
    const size = new ResizeObserver(() => own.isConnected && draw(own, heat, lines, height));
    size.observe(own.parentElement);
    return () => size.disconnect();
  });
  return html`<div class="chart"><div class="plot" style=${{ height: `${height}px` }}><canvas ref=${canvas}></canvas></div>
    <ul class="keys"><li><span class="dot c-accent"></span>fuller: more requests</li><li><span class="dash solid"></span>p50</li>
      <li><span class="dash"></span>p99</li>
        ${lines.some((line) => line.shift) ? html`<li><span class="dots"></span>an hour before</li>` : ''}</ul></div>`;
}

// Numbers, times and foreign text as people read them.
//
// In: values of the API. Out: short texts, each with its unit. A value that is not known is a dash. Text that a peer
// sent is made harmless here: controls and marks that change the direction of text are shown as escapes.

export const NONE = '–';

/** Groups of three digits, with a space that does not break. @param {number} value @param {number} digits */
function grouped(value, digits) {
  const [whole, part] = value.toFixed(digits).split('.');
  const groups = (whole ?? '').replace(/\B(?=(\d{3})+$)/g, '\u202f');
  return part === undefined ? groups : `${groups}.${part}`;
}

/** A number with as many digits as it deserves. @param {number | null | undefined} value */
export function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  if (value === 0) return '0';
  if (size < 0.01) return '<0.01';
  return grouped(value, size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2);
}

/** @param {number | null | undefined} value */
export const count = (value) => (value === null || value === undefined ? NONE : grouped(Math.round(value), 0));

/** @param {number | null | undefined} value */
export const rate = (value) => (value === null || value === undefined ? NONE : `${number(value)}/s`);

/** @param {number | null | undefined} value */
export function bytes(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let size = value;
  let unit = 0;
  while (Math.abs(size) >= 999.5 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? count(size) : number(size)}\u00a0${units[unit]}`;
}

/** @param {number | null | undefined} value */
export const byteRate = (value) => (value === null || value === undefined ? NONE : `${bytes(value)}/s`);

/** A part of one, in per cent. @param {number | null | undefined} share @param {number} [digits] */
export function percent(share, digits) {
  if (share === null || share === undefined || !Number.isFinite(share)) return NONE;
  const value = share * 100;
  if (value > 0 && value < 0.05) return '<0.1\u00a0%';
  const places = digits ?? (value === 0 || value >= 99.95 || value <= -99.95 ? 0 : 1);
  return `${value.toFixed(places)}\u00a0%`;
}

/** A short time, such as a latency. @param {number | null | undefined} value */
export function seconds(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  if (size === 0) return '0\u00a0s';
  if (size < 0.001) return `${number(value * 1e6)}\u00a0us`;
  if (size < 1) return `${number(value * 1e3)}\u00a0ms`;
  if (size < 120) return `${number(value)}\u00a0s`;
  return span(value);
}

/** A long time, in its largest unit. @param {number | null | undefined} value */
export function span(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  const sign = value < 0 ? '-' : '';
  const size = Math.abs(value);
  if (size < 120) return `${sign}${Math.round(size)}\u00a0s`;
  if (size < 7200) return `${sign}${Math.round(size / 60)}\u00a0min`;
  if (size < 172800) return `${sign}${Math.round(size / 3600)}\u00a0h`;
  return `${sign}${Math.round(size / 86400)}\u00a0d`;
}

/** @param {number} at seconds since 1970 @param {boolean} [fine] */
export function clock(at, fine) {
  const date = new Date(at * 1000);
  const two = (/** @type {number} */ part) => String(part).padStart(2, '0');
  const text = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return fine ? `${text}:${two(date.getSeconds())}` : text;
}

/** With the day, where that is not today. @param {number} at */
export function moment(at) {
  const date = new Date(at * 1000);
  if (date.toDateString() === new Date().toDateString()) return clock(at, true);
  const two = (/** @type {number} */ part) => String(part).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(at)}`;
}

/** The number with the right form of its noun. @param {number} value @param {string} one @param {string} [many] */
export const counted = (value, one, many) => `${count(value)} ${value === 1 ? one : (many ?? `${one}s`)}`;

// Controls, marks of direction, invisible spaces, line separators, halves of pairs, tags, and the marks that a shaper joins.
const UNSAFE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\udb40[\udc00-\udfff]/g;

/** Foreign text as it may be shown. @param {unknown} value */
export function shown(value) {
  return String(value ?? '').replace(UNSAFE, (found) =>
    [...Array(found.length).keys()].map((index) => `\\u${found.charCodeAt(index).toString(16).padStart(4, '0')}`).join(''),
  );
}

/** A link's target where it is one of http or https, else null. @param {string} text */
export function webLink(text) {
  if (!/^https?:\/\//i.test(text)) return null;
  try {
    const url = new URL(text);
    return url.protocol === 'http:' || url.protocol === 'https:' ? url.href : null;
  } catch {
    return null;
  }
}

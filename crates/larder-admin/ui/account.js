// The account of requests: what came from a store, what did not and why, what was saved.
//
// In: rates by name of series. Out: the parts that pictures and sentences are made of. Each request that was forwarded is
// counted under one cause: its forward reason; where nothing lay under the URL, what became of it before; where it had not
// been stored, what forbade that. Nothing is drawn here.

import { below, decoded, encoded } from './past.js';
import { FROM_STORE, forbids } from './words.js';

/** @typedef {{ kind: 'reason' | 'before' | 'not_stored', word: string, rate: number, stage: Stage }} Cause */
/** @typedef {'kept' | 'first' | 'forbidden' | 'never'} Stage */

/** In the order of the staircase: what larder itself could keep, what comes first, what the answers forbid, what stays. */
export const STAGES = /** @type {Stage[]} */ (['kept', 'first', 'forbidden', 'never']);

const KEPT_BEFORE = ['evicted', 'idle', 'purged', 'invalidated', 'unknown'];
const KEPT_REASON = ['stale', 'vary-miss', 'partial', 'miss'];

/** @param {Cause['kind']} kind @param {string} word @returns {Stage} */
function stage(kind, word) {
  if (kind === 'before') return KEPT_BEFORE.includes(word) ? 'kept' : 'first';
  if (kind === 'reason' && KEPT_REASON.includes(word)) return 'kept';
  if (kind === 'reason' && word === 'uri-miss') return 'first';
  return forbids(kind, word) ? 'never' : 'forbidden';
}

/** @param {Record<string, number>} values @param {string} [scope] such as `rule:shop:/blog/*:` @returns {Cause[]} */
export function causes(values, scope = '') {
  /** @type {Cause[]} */
  const found = [];
  const add = (/** @type {Cause['kind']} */ kind, /** @type {string} */ word, /** @type {number} */ rate) => {
    if (rate > 0) found.push({ kind, word, rate, stage: stage(kind, word) });
  };
  const parts = (/** @type {string} */ start) => below(values, `${scope}${start}`);
  const total = (/** @type {{ value: number }[]} */ list) => list.reduce((sum, part) => sum + part.value, 0);
  const before = parts('before.');
  const missed = values[`${scope}reason.uri-miss`] ?? 0;
  const explained = total(before);
  parts('reason.').forEach(({ word, value }) => word === 'uri-miss' || add('reason', word, value));
  // The two were counted at slightly different times: the reason is the account, the rest its parts.
  const scale = explained > 0 ? missed / explained : 0;
  if (!scale) add('reason', 'uri-miss', missed);
  const refused = parts('not_stored.');
  const all = total(refused);
  before.forEach(({ word, value }) => {
    if (word !== 'not-stored' || !all) return add('before', word, value * scale);
    refused.forEach((part) => add('not_stored', part.word, (value * scale * part.value) / all));
  });
  return found.sort((one, other) => other.rate - one.rate);
}

/** Requests by result, and what they add up to. @param {Record<string, number>} values @param {string} [scope] */
export function split(values, scope = '') {
  /** @type {Record<string, number>} */
  const results = {};
  below(values, `${scope}result.`).forEach(({ word, value }) => (results[word] = value));
  const all = Object.values(results).reduce((sum, value) => sum + value, 0);
  const asked = results.asked ?? 0;
  const store = FROM_STORE.reduce((sum, word) => sum + (results[word] ?? 0), 0);
  const looked = store + asked + (results.joined ?? 0);
  return {
    results,
    all,
    asked,
    store,
    joined: results.joined ?? 0,
    without: all ? 1 - asked / all : null,
    hits: looked ? store / looked : null,
  };
}

/** The rules whose series are in `values`. @param {Record<string, number>} values */
export function rulesIn(values) {
  const scopes = new Set(
    Object.keys(values)
      .filter((name) => name.startsWith('rule:'))
      .map((name) => name.split(':').slice(0, 3).join(':')),
  );
  return [...scopes].map((scope) => {
    const [, site, rule] = scope.split(':').map(decoded);
    return { scope: `${scope}:`, site: site ?? '', rule: rule ?? '' };
  });
}

/** The scope of a rule as larder writes it, or as it would. @param {Record<string, number>} values */
export function scopesIn(values) {
  const known = new Map(rulesIn(values).map(({ scope, site, rule }) => [`${site}\n${rule}`, scope]));
  return (/** @type {string} */ site, /** @type {string} */ rule) =>
    known.get(`${site}\n${rule}`) ?? `rule:${encoded(site)}:${encoded(rule)}:`;
}

/** The rule where a cause occurs most. @param {Record<string, number>} values @param {Cause} cause */
export function where(values, cause) {
  let most = { rule: '', site: '', share: 0 };
  let sum = 0;
  for (const { scope, site, rule } of rulesIn(values)) {
    const value = values[`${scope}${cause.kind}.${cause.word}`] ?? 0;
    sum += value;
    if (value > most.share) most = { rule, site, share: value };
  }
  return sum > 0 ? { ...most, share: most.share / sum } : null;
}

/** What the origins were spared, each second. @param {Record<string, number>} values */
export function saved(values) {
  const { all, asked } = split(values);
  let work = 0;
  for (const { scope } of rulesIn(values)) {
    const answers = values[`${scope}origin_answers`] ?? 0;
    const rule = split(values, scope);
    if (answers > 0) work += (rule.all - rule.asked) * ((values[`${scope}origin_seconds`] ?? 0) / answers);
  }
  return { requests: all - asked, bytes: values.bytes_store ?? 0, seconds: work };
}

// The words of larder with their sentences, as `about` tells them.
//
// In: `about.words`. Out: sentence, section and what helps, by kind and word. The page has no list of its own, so that a
// word of a later larder appears by itself; only colours and the order in pictures are fixed here.

import { app } from './state.js';

/** @typedef {{ word: string, sentence?: string, section?: string, helps?: string, forbids?: boolean }} Word */

/** Results in the order of pictures; those that did not trouble the origin come first. */
const ORDER = ['memory', 'disk', 'file', 'remote', 'stale', 'joined', 'own', 'refused', 'asked'];

/** Answered from a store. */
export const FROM_STORE = ['memory', 'disk', 'file', 'remote', 'stale'];

/** Results that are shown even while none occurs. */
const ALWAYS = ['memory', 'stale', 'joined', 'own', 'asked'];

/** @param {string} kind @returns {Word[]} */
export const wordsOf = (kind) => app.about?.words?.[kind] ?? [];

/** @param {string} kind @param {string} word @returns {Word} */
export const told = (kind, word) => wordsOf(kind).find((one) => one.word === word) ?? { word };

/** Whether a word says that the request or the origin's answer forbids storing; an older larder does not tell. @param {string} kind @param {string} word */
export function forbids(kind, word) {
  const tells = ['reason', 'not_stored'].some((one) => wordsOf(one).some((known) => known.forbids !== undefined));
  return tells ? told(kind, word).forbids === true : !told(kind, word).helps;
}

/** Results for pictures: known ones in their order, then words of a later larder. @param {(word: string) => boolean} occurs */
export function results(occurs) {
  const known = [
    ...ORDER.slice(0, -1),
    ...wordsOf('result')
      .map((one) => one.word)
      .filter((word) => !ORDER.includes(word)),
    'asked',
  ];
  return known.filter((word) => ALWAYS.includes(word) || occurs(word));
}

/** The class that gives a result its colour. @param {string} word */
export const resultClass = (word) => (ORDER.includes(word) ? `r-${word}` : 'r-else');

/** The colour itself, for canvas. @param {string} name of a custom property, without its dashes */
export function colour(name) {
  const style = getComputedStyle(document.documentElement);
  return style.getPropertyValue(`--${name}`).trim() || style.getPropertyValue('--r-else').trim() || '#888';
}

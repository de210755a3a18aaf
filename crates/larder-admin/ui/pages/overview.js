// Overview: one sentence, the river, and what leads to the other pages.
//
// In: series of the window, `now`, events. Out: the first page. Each part leads to the page that has its why.

import { useEffect, useState } from '../vendor/preact-hooks.js';
import { html } from '../vendor/htm-preact.js';
import { get } from '../api.js';
import { causes, saved, split, where } from '../account.js';
import { byteRate, count, counted, number, percent, rate, seconds } from '../format.js';
import { below, decoded, last, means, usePast } from '../past.js';
import { app, lately, useNow, windowStep, windowWords } from '../state.js';
import { results } from '../words.js';
import { Later } from '../parts/later.js';
import { Nothing } from '../parts/notices.js';
import { Picture } from '../parts/picture.js';
import { River } from '../parts/river.js';
import { RuleName, Text } from '../parts/text.js';

const DRAWN = ['result.*', 'connections', 'latency:all:*'];
/** Of these only the means are shown. */
const MEANS = ['reason.*', 'before.*', 'not_stored.*', 'failure.*', 'refused.*', 'bytes_out', 'bytes_in', 'origin:*'];

/** What stands below the first picture, and is fetched after it. */
const pictures = () => import('../parts/below.js').then((module) => module.Below);
const lists = () => import('../parts/below.js').then((module) => module.Lists);

/** Boxes of origins in the river; the others share the last one. */
const ORIGINS_MAX = 4;

/** The sentence above all. @param {{ values: Record<string, number>, before: Record<string, number> | null, minute: Record<string, number> }} props */
function Sentence({ values, before, minute }) {
  const now = split(values);
  const then = before ? split(before) : null;
  const main = causes(values)[0];
  const place = main ? where(minute, main) : null;
  const points = then?.without !== null && then?.without !== undefined && now.without !== null ? (now.without - then.without) * 100 : null;
  const beside =
    points === null
      ? ''
      : Math.abs(points) < 0.05
        ? ', as an hour before'
        : `, ${Math.abs(points).toFixed(1)} points ${points < 0 ? 'less' : 'more'} than an hour before`;
  return html`<p class="lead"><strong>${percent(now.without)}</strong> answered without the origin in ${windowWords()}${beside}. ${
    main
      ? html`Most of the rest: <a href=${`#/why?open=${main.kind}.${main.word}`}>
        ${main.word}${place?.rule ? html` on <${RuleName} site=${place.site} rule=${place.rule} max=${60} />` : ''}</a>.`
      : ''
  }</p>`;
}

/** Rates an hour before of what the sentence compares, also where the pictures compare nothing. */
function useHourBefore() {
  const [values, set] = useState(/** @type {Record<string, number> | null} */ (null));
  useEffect(() => {
    const own = new AbortController();
    get('/api/v1/series', { names: 'result.*', from: app.window + 3600, to: 3600, step: windowStep(true) }, own.signal).then(
      (json) => {
        const all = means({ step: json.step, times: [], values: json.values });
        set(split(all).all > 0 ? all : null);
      },
      () => {},
    );
    return () => own.abort();
  }, [app.window, app.returns]);
  return values;
}

/** @param {Record<string, number>} values @param {any} stats @param {Record<string, number> | null} before */
function originBoxes(values, stats, before) {
  const names = new Set([
    ...below(values, 'origin:').map(({ word }) => decoded(word.split(':')[0] ?? '')),
    ...(stats?.origins ?? []).map((/** @type {any} */ one) => one.name),
  ]);
  const boxes = [...names].map((name) => {
    const key =
      Object.keys(values)
        .find((one) => one.startsWith('origin:') && decoded(one.split(':')[1] ?? '') === name)
        ?.split(':')[1] ?? name;
    const of = (/** @type {string} */ what, /** @type {Record<string, number>} */ from = values) => from[`origin:${key}:${what}`] ?? 0;
    const servers = (stats?.origins ?? []).find((/** @type {any} */ one) => one.name === name)?.servers ?? [];
    const up = servers.filter((/** @type {any} */ one) => one.state === 'up' || one.state === 'slow-start').length;
    const asked = of('requests');
    return {
      name,
      rate: asked,
      box: html`<strong><${Text} of=${name} max=${40} /></strong><span class="big">${rate(asked)}</span>
        ${before ? html`<span class="note">before ${rate(of('requests', before))}</span>` : ''}
        <span>${byteRate(of('bytes'))}</span>
        <span>p50 ${seconds(of('p50') || null)}, p99 ${seconds(of('p99') || null)}</span>
        ${servers.length ? html`<span class=${up < servers.length ? 'bad' : ''}>${up} of ${counted(servers.length, 'server')} up</span>`
          : ''}
        <span>${percent(asked > 0 ? of('failures') / asked : 0)} failed</span>`,
    };
  });
  boxes.sort((one, other) => other.rate - one.rate);
  if (boxes.length <= ORIGINS_MAX) return boxes;
  const rest = boxes.splice(ORIGINS_MAX - 1);
  const sum = rest.reduce((total, one) => total + one.rate, 0);
  return [...boxes,
    { name: 'more', rate: sum, box: html`<strong>${count(rest.length)} more</strong><span class="big">${rate(sum)}</span>` }];
}

export function Overview() {
  const now = useNow();
  const past = usePast(DRAWN);
  const coarse = usePast(MEANS, { coarse: true });
  const hour = useHourBefore();
  if (!past.now) return html`<p class="none">${past.failed || 'Loading.'}</p>`;
  const values = { ...means(coarse.now), ...means(past.now) };
  const before = app.compare && past.before ? { ...means(coarse.before), ...means(past.before) } : null;
  const { all, results: of, asked } = split(values);
  const { values: minute, words: minuteWords } = lately();
  if (all === 0)
    return html`<${Nothing} words=${windowWords()} /><${Later} key="lists" load=${lists} stats=${now?.stats} past=${coarse} />`;
  const words = results((word) => (of[word] ?? 0) > 0 || (before?.[`result.${word}`] ?? 0) > 0);
  const ofBefore = before ? split(before).results : null;
  const spared = saved(minute);
  const sentence = `Of ${rate(all)} in ${windowWords()}: ${words.map((word) =>
    `${word} ${rate(of[word] ?? 0)}`).join(', ')}. The origins are asked ${rate(asked)}, and send ${byteRate(values.bytes_in ?? 0)}.`;
  const clients = html`<strong>clients</strong><span class="big">${rate(all)}</span>
    ${before ? html`<span class="note">before ${rate(split(before).all)}</span>` : ''}
    <span>${byteRate(values.bytes_out)}</span>
      <span><span class="keep">p50 ${seconds(values['latency:all:p50'] || null)},</span> <span
        class="keep">p99 ${seconds(values['latency:all:p99'] || null)}</span></span>
    <span>${count(last(past.now, 'connections') ?? 0)} open</span>
      <span class="note">last second ${rate(app.tick?.values.requests ?? 0)}</span>`;
  return html`<${Sentence} values=${values} before=${hour} minute=${minute} />
    <${Picture} title="From clients to origins" class="first" live=${true} sentence=${sentence} note=${`mean of ${windowWords()}`}
      columns=${[{ key: 'word', name: 'result' }, { key: 'rate', name: 'requests/s', number: true },
        { key: 'share', name: 'share', number: true }, ...(before ? [{ key: 'before', name: 'an hour before', number: true }] : [])]}
      rows=${words.map((word) =>
        ({ word, rate: rate(of[word] ?? 0), share: percent((of[word] ?? 0) / all), before: rate(ofBefore?.[word] ?? 0) }))}>
      <${River} words=${words} of=${of} before=${ofBefore} all=${all} clients=${clients} origins=${originBoxes(values, now?.stats, before)}
        ways=${{ origins: '#/origins' }} />
    <//>
    ${now ? html`<p class="saved">Saved in ${minuteWords}${minuteWords.endsWith('minute') ? ', each second' : ''}: <strong>${number(spared.requests)}</strong> requests, <strong>
      ${byteRate(spared.bytes).replace('/s', '')}</strong> and <strong>
        ${number(spared.seconds)} s</strong> of the origins' work. <a href="#/rules">By rule</a></p>` : ''}
    <${Later} key="pictures" load=${pictures} past=${past} coarse=${coarse} values=${values} before=${before} minute=${minute} stats=${now?.stats} />`;
}

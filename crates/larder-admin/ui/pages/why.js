// Why: the staircase from all requests down to those that no store could answer, and each reason in full.
//
// In: series of the window. Out: a step for each result and cause; a cause opens its sentence, what helps, its trend, and
// where it occurs, by site, rule, folder and URL.

import { useState } from '../vendor/preact-hooks.js';
import { html } from '../vendor/htm-preact.js';
import { STAGES, causes, split } from '../account.js';
import { percent, rate } from '../format.js';
import { means, usePast } from '../past.js';
import { app, windowWords } from '../state.js';
import { FROM_STORE, resultClass, told } from '../words.js';
import { CauseDetail } from '../parts/cause.js';
import { Nothing } from '../parts/notices.js';
import { Picture } from '../parts/picture.js';
import { Staircase } from '../parts/staircase.js';

const GROUPS = {
  store: 'answered here',
  kept: 'lost, although it could be kept: more room, longer lifetimes, fewer purges',
  first: 'asked for the first time',
  forbidden: 'not stored, although a setting, a header or more room would change that',
  never: 'cannot be stored, or must not be used',
};

/** @param {{ query: URLSearchParams }} props */
export function Why({ query }) {
  const past = usePast(['result.*', 'reason.*', 'before.*', 'not_stored.*']);
  const [open, setOpen] = useState(query.get('open') ?? '');
  if (!past.now || !app.about) return html`<p class="none">${past.failed || 'Loading.'}</p>`;
  const values = means(past.now);
  const before = app.compare && past.before ? means(past.before) : null;
  const { all, results: of, hits } = split(values);
  if (all === 0) return html`<${Nothing} words=${windowWords()} />`;
  const then = before ? { ...split(before), causes: causes(before) } : null;
  const share = (/** @type {number | undefined} */ value) => (then ? (value ?? 0) / (then.all || 1) : null);
  const found = causes(values);
  const own = ['own', 'refused'].filter((word) => (of[word] ?? 0) > 0);
  /** @type {import('../parts/staircase.js').Step[]} */
  const here = [...FROM_STORE.filter((word) => (of[word] ?? 0) > 0), ...own].map((word) => ({
    key: word,
    name: word,
    rate: of[word] ?? 0,
    kind: resultClass(word),
    group: GROUPS.store,
    before: share(then?.results[word]),
    help: told('result', word).sentence,
  }));
  /** @type {import('../parts/staircase.js').Step[]} */
  const steps = [];
  for (const stage of STAGES) {
    for (const cause of found.filter((one) => one.stage === stage)) {
      const key = `${cause.kind}.${cause.word}`;
      steps.push({
        key,
        name: cause.word,
        rate: cause.rate,
        kind: `s-${stage}`,
        group: GROUPS[stage],
        help: told(cause.kind, cause.word).sentence,
        before: share(then?.causes.find((one) => one.kind === cause.kind && one.word === cause.word)?.rate),
        isOpen: open === key,
        open: () => setOpen(open === key ? '' : key),
        below: html`<${CauseDetail} cause=${cause} past=${past} all=${all} />`,
      });
    }
  }
  const never = found.filter((cause) => cause.stage === 'never').reduce((sum, cause) => sum + cause.rate, 0);
  const ceiling = (all - never) / all;
  const biggest = found.find((cause) => cause.stage === 'kept' || cause.stage === 'forbidden');
  const sentence = `Of ${rate(all)}, ${percent(split(values).store / all)} came from a store. At most ${percent(ceiling)} could be answered without the origin. ${biggest
    ? `The largest step that could be gained is ${biggest.word} with ${percent(biggest.rate / all)}.` : ''}`;
  return html`<p class="lead">
    ${sentence} ${of.joined
      ? html`Of the requests that were not answered here, ${rate(of.joined)} waited for the fetch of another one (<em>joined</em>) and did
        not reach the origin.` : ''}</p>
    <${StaircasePicture} sentence=${sentence} here=${here} steps=${steps} all=${all} ceiling=${ceiling} />
    <p class="note">The hit ratio, hits of all look-ups, is ${percent(hits)} in ${windowWords()}. Open a step to see what it means and where
      it occurs.</p>`;
}

/** The steps are buttons, so the picture is a group and no image. @param {any} props */
function StaircasePicture({ sentence, here, steps, all, ceiling }) {
  return html`<${Picture} title="From all requests down to the rest" note=${`requests/s, mean of ${windowWords()}`} sentence=${sentence}
    live=${true}
    columns=${[
      { key: 'name', name: 'step' },
      { key: 'group', name: 'what it is' },
      { key: 'rate', name: 'requests/s', number: true, cell: (/** @type {any} */ row) => rate(row.rate) },
      { key: 'share', name: 'share of all', number: true, cell: (/** @type {any} */ row) => percent(row.rate / all) },
    ]}
    rows=${[...here, ...steps]}><${Staircase} here=${here} steps=${steps} all=${all} ceiling=${ceiling} /><//>`;
}

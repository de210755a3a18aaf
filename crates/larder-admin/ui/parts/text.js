// Text that a peer sent: escaped, set apart from the text around it, never markup.
//
// In: any string. Out: a `bdi` element with a text node. Long values are cut where a page asks for it, with more of them in
// the title.

import { html } from '../vendor/htm-preact.js';
import { shown, webLink } from '../format.js';

const TITLE_MAX = 2000;

/** @param {{ of: unknown, max?: number, class?: string }} props */
export function Text({ of, max = 160, class: kind = '' }) {
  const whole = shown(of);
  const cut = whole.length > max;
  return html`<bdi class=${`foreign ${kind}`} title=${cut ? whole.slice(0, TITLE_MAX) : undefined}>
    ${cut ? `${whole.slice(0, max)}…` : whole}</bdi>`;
}

/** A link to the page about a URL. @param {{ url: string, max?: number, children?: any }} props */
export const UrlLink = ({ url, max, children }) =>
  html`<a href=${`#/url?url=${encodeURIComponent(url)}`}>${children ?? html`<${Text} of=${url} max=${max} />`}</a>`;

/** A link out of the page, where the URL is one of the web. @param {{ url: string }} props */
export function OutLink({ url }) {
  const target = webLink(url);
  if (!target) return html`<${Text} of=${url} max=${2000} />`;
  return html`<a href=${target} rel="noopener noreferrer" target="_blank">open the URL<span class="hidden"> in a new tab</span></a>`;
}

/** A word of larder with its sentence behind it. @param {{ of: string, sentence?: string }} props */
export const Word = ({ of, sentence }) => html`<code class="word" title=${sentence ? shown(sentence) : undefined}>${shown(of)}</code>`;

/** How larder counts what belongs to no site. */
const NO_SITE = 'other';
const NO_SITE_TITLE = 'Requests that no site has, such as those for an unknown host, and rules beyond the first 1024.';

/** @param {string | null | undefined} site @param {string | null | undefined} [rule] */
export const isNoSite = (site, rule = NO_SITE) => site === NO_SITE && rule === NO_SITE;

/** The name of a site, or what stands for none. @param {{ site: string | null, max?: number }} props */
export const SiteName = ({ site, max }) =>
  isNoSite(site) || site === null ? html`<span title=${NO_SITE_TITLE}>no site</span>` : html`<${Text} of=${site} max=${max} />`;

/** The name of a rule, or what stands for none. @param {{ site: string | null, rule: string | null, max?: number }} props */
export const RuleName = ({ site, rule, max }) =>
  rule === null || isNoSite(site, rule) ? html`<span title=${NO_SITE_TITLE}>no site</span>` : html`<${Text} of=${rule} max=${max} />`;

/** The sentence behind it, where there is room for one. */
export const noSiteSentence = NO_SITE_TITLE;

// Keeps the rest of the page when a part of it cannot be drawn.
//
// In: a page. Out: the same, or a note in its place, where an answer had another form than the page expects, as of another
// version of larder. The head stays, so that the other pages can be reached.

import { Component } from '../vendor/preact.js';
import { html } from '../vendor/htm-preact.js';
import { shown } from '../format.js';

export class Boundary extends Component {
  /** @param {any} props */
  constructor(props) {
    super(props);
    /** @type {{ fault: string }} */
    this.state = { fault: '' };
  }

  /** @param {any} error */
  componentDidCatch(error) {
    this.setState({ fault: String(error?.message ?? error) });
  }

  render() {
    if (!this.state.fault) return this.props.children;
    return html`<p class="notice warn" role="alert">
      This page cannot show what larder has answered: ${shown(this.state.fault)}. Reload it; the page and larder may be of two versions.
    </p>`;
  }
}

// ask.js - the form that says what to listen to, as a request, and as the address's fragment.

import { $, $$ } from './dom.js';

const SELECTORS = ['track', 'follow', 'locations', 'rule'];
const FIELDS = [...SELECTORS, 'language', 'percent'];

// Which fields a stream has; the others are hidden, and keep what was typed.
const FIELDS_OF = {
  filter: [...SELECTORS, 'language'],
  sample: ['percent', 'language'],
  firehose: ['language'],
  home: [],
};

const NAMES = { track: 'track', follow: 'follow', locations: 'within', rule: 'rule', language: 'in', percent: 'percent' };

export class Ask {
  // `onChange()`: what is asked for is another thing than before.
  constructor(onChange) {
    this.form = $('#ask');
    this.onChange = onChange;
    this.form.addEventListener('change', (event) => {
      if (event.target.id !== 'token') this.changed();
    });
    this.showFields();
  }

  changed() {
    this.showFields();
    this.clearErrors();
    this.remember();
    this.onChange();
  }

  get stream() {
    return this.form.elements.stream.value;
  }

  set stream(name) {
    if (name in FIELDS_OF) this.form.elements.stream.value = name;
    this.showFields();
  }

  value(field) {
    return this.form.elements[field].value.trim();
  }

  setValue(field, value) {
    this.form.elements[field].value = value;
  }

  types() {
    return $$('input[name=types]:checked', this.form).map((box) => box.value);
  }

  showFields() {
    for (const field of FIELDS) {
      $(`#field-${field}`).hidden = !FIELDS_OF[this.stream].includes(field);
    }
  }

  // { path, parameters }, or null: nothing is asked for yet.
  request() {
    const { stream } = this;
    const parameters = new URLSearchParams();
    for (const field of FIELDS_OF[stream]) {
      const value = this.value(field);
      if (value) parameters.set(field, value);
    }
    if (stream === 'filter' && !SELECTORS.some((field) => parameters.has(field))) return null;
    const types = this.types();
    if (types.length === 0) return null;
    if (types.join() !== 'post,delete') parameters.set('types', types.join(','));
    return { path: `/v1/stream/${stream}`, parameters };
  }

  // In words, for people.
  describe() {
    const { stream } = this;
    const parts = FIELDS_OF[stream].filter((field) => this.value(field))
      .map((field) => `${NAMES[field]} ${this.value(field)}`);
    return [stream[0].toUpperCase() + stream.slice(1), parts.join(', ')].filter(Boolean).join(': ');
  }

  // Beside its field what the server found wrong with it. False: there is no such field.
  showError(field, message) {
    const error = field && $(`#error-${field}`);
    if (!error) return false;
    error.textContent = message;
    error.hidden = false;
    this.form.elements[field].setAttribute('aria-invalid', 'true');
    return true;
  }

  clearErrors() {
    for (const error of $$('.error', this.form)) error.hidden = true;
    for (const field of $$('[aria-invalid]', this.form)) field.removeAttribute('aria-invalid');
  }

  // --- the fragment of the address: can be shared, and never has the token ---

  remember() {
    const fragment = new URLSearchParams({ stream: this.stream });
    for (const field of FIELDS_OF[this.stream]) {
      if (this.value(field)) fragment.set(field, this.value(field));
    }
    if (this.types().join() !== 'post,delete') fragment.set('types', this.types().join(','));
    history.replaceState(null, '', `${location.pathname}${location.search}#${fragment}`);
  }

  // False: the address says nothing.
  recall() {
    const fragment = new URLSearchParams(location.hash.slice(1));
    if (!fragment.has('stream')) return false;
    this.stream = fragment.get('stream');
    for (const field of FIELDS) this.setValue(field, fragment.get(field) ?? '');
    const types = (fragment.get('types') ?? 'post,delete').split(',');
    for (const box of $$('input[name=types]', this.form)) box.checked = types.includes(box.value);
    return true;
  }
}

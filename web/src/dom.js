// dom.js - elements without innerHTML: what a post says is text, whatever it looks like.

export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

// make('a.link', { href }, 'text', node, ...) - null and undefined are left out, of both.
export function make(what, attributes = {}, ...children) {
  const [tag, ...classes] = what.split('.');
  const element = document.createElement(tag);
  if (classes.length > 0) element.className = classes.join(' ');
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const SVG = 'http://www.w3.org/2000/svg';

export function icon(path) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 16 16');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  const shape = document.createElementNS(SVG, 'path');
  shape.setAttribute('d', path);
  svg.append(shape);
  return svg;
}

export const ICON_REPLY = 'M6.5 3.5 2.5 7.5l4 4M3 7.5h6.5a4 4 0 0 1 4 4v1';

// Says `text` to a screen reader, once it has finished what it is at.
export function announce(text) {
  $('#say').textContent = text;
}

export async function copyText(button, text) {
  const isCopied = navigator.clipboard ? await navigator.clipboard.writeText(text).then(() => true, () => false)
    : copySelected(text);
  flash(button, isCopied ? 'Copied' : 'Not permitted');
}

// Over plain HTTP from another machine a page has no navigator.clipboard.
function copySelected(text) {
  const field = make('textarea.unseen', { readonly: '', 'aria-hidden': 'true' }, text);
  const focused = document.activeElement;
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand('copy');
  field.remove();
  focused?.focus({ preventScroll: true });
  return isCopied;
}

function flash(button, text) {
  const label = button.dataset.label ?? button.textContent;
  button.dataset.label = label;
  button.textContent = text;
  announce(text);
  setTimeout(() => { button.textContent = label; }, 1600);
}

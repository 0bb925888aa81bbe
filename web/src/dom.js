// dom.js - creates elements without innerHTML, so that the text of a post is never interpreted as HTML.

export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

// make('a.link', { href }, 'text', node, ...); attributes and children that are null or undefined are left out.
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

// Changes a text only if it is another one, because even the same text is laid out and drawn again.
export function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
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

// Has a screen reader say `text` when it has finished its current output.
export function announce(text) {
  $('#say').textContent = text;
}

export async function copyText(button, text) {
  const isCopied = navigator.clipboard ? await navigator.clipboard.writeText(text).then(() => true, () => false)
    : copySelected(text);
  flash(button, isCopied ? 'Copied' : 'Not permitted');
}

// On pages over plain HTTP from another host there is no navigator.clipboard.
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

// theme.js - the theme: light, dark, or that of the system. The choice is stored.

import { $ } from './dom.js';

const KEY = 'sluice.theme';
const ORDER = ['auto', 'light', 'dark'];

export function startTheme() {
  const button = $('#theme');
  const apply = (theme) => {
    document.documentElement.dataset.theme = theme;
    const name = { auto: 'system', light: 'light', dark: 'dark' }[theme];
    button.setAttribute('aria-label', `Color theme: ${name}. Change`);
    button.title = `Color theme: ${name}`;
    announceChange();
  };
  const remembered = localStorage.getItem(KEY);
  apply(ORDER.includes(remembered) ? remembered : 'auto');
  button.addEventListener('click', () => {
    const next = ORDER[(ORDER.indexOf(document.documentElement.dataset.theme) + 1) % ORDER.length];
    localStorage.setItem(KEY, next);
    apply(next);
  });
  for (const media of ['(prefers-color-scheme: dark)', '(forced-colors: active)']) matchMedia(media).addEventListener('change', announceChange);
}

const colours = new Map(); // read since the theme changed

function announceChange() {
  colours.clear();
  document.dispatchEvent(new Event('themechange'));
}

// The current value of a colour of common.css.
export function colour(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return colours.get(name);
}

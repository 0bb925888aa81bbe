// theme.js - the theme: light, dark, or that of the system. The choice is stored.

import { $ } from './dom.js';

const KEY = 'sluice.theme';
const ORDER = ['auto', 'light', 'dark'];

export function startTheme() {
  const button = $('#theme');
  const apply = (theme) => {
    document.documentElement.dataset.theme = theme;
    const name = { auto: 'as the system has them', light: 'light', dark: 'dark' }[theme];
    button.setAttribute('aria-label', `Colours: ${name}. Change`);
    button.title = `Colours: ${name}`;
    document.dispatchEvent(new Event('themechange'));
  };
  const remembered = localStorage.getItem(KEY);
  apply(ORDER.includes(remembered) ? remembered : 'auto');
  button.addEventListener('click', () => {
    const next = ORDER[(ORDER.indexOf(document.documentElement.dataset.theme) + 1) % ORDER.length];
    localStorage.setItem(KEY, next);
    apply(next);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change',
    () => document.dispatchEvent(new Event('themechange')));
}

// The current value of a colour of common.css.
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

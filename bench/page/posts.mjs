// posts.mjs - posts in which words, languages and places of several kinds occur.
import { writeFileSync } from 'node:fs';

const WORDS = 'tea coffee rain train night city the a of and music game news bread river 東京 咖啡'.split(' ');
const LANGUAGES = ['en', 'en', 'en', 'ja', 'es', 'pt', 'ar', 'de'];

const pick = (list, n) => list[n % list.length];

// Without ids.
export function posts(count) {
  return Array.from({ length: count }, (_, i) => ({
    user: { id: String(i % 500), login: `user${i % 500}` }, lang: pick(LANGUAGES, i * 7),
    text: Array.from({ length: 14 }, (__, k) => pick(WORDS, i * 13 + k * k * 5)).join(' '),
    ...(i % 10 === 0 ? { geo: { lon: ((i * 37) % 360) - 180, lat: ((i * 11) % 120) - 50 } } : {}) }));
}

// For `sluice replay`.
export function writePosts(file, count) {
  const lines = posts(count).map((post, i) => JSON.stringify({ id: String(i + 1), type: 'post', post: { id: String(i + 1), ...post } }));
  writeFileSync(file, `${lines.join('\n')}\n`);
}

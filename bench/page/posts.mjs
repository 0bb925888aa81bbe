// posts.mjs - a file of posts for `sluice replay`: words, languages and places of several kinds.
import { writeFileSync } from 'node:fs';

const WORDS = 'tea coffee rain train night city the a of and music game news bread river 東京 咖啡'.split(' ');
const LANGUAGES = ['en', 'en', 'en', 'ja', 'es', 'pt', 'ar', 'de'];

export function writePosts(file, count) {
  const pick = (list, n) => list[n % list.length];
  const lines = Array.from({ length: count }, (_, i) => JSON.stringify({ id: String(i + 1), type: 'post', post: { id: String(i + 1),
    user: { id: String(i % 500), login: `user${i % 500}` }, lang: pick(LANGUAGES, i * 7),
    text: Array.from({ length: 14 }, (__, k) => pick(WORDS, i * 13 + k * k * 5)).join(' '),
    ...(i % 10 === 0 ? { geo: { lon: ((i * 37) % 360) - 180, lat: ((i * 11) % 120) - 50 } } : {}) } }));
  writeFileSync(file, `${lines.join('\n')}\n`);
}

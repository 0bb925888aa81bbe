// text.js - splits the text of a post into links, hashtags, mentions and the rest.
//
// docs/filters.md defines exactly what filters recognize; this is for display only, so normalization and emoji in names
// are ignored.

const PART = new RegExp([
  /(?<![A-Za-z0-9_])(?<link>https?:\/\/[!#$%&'()*+,./0-9:;=?@A-Z[\]_a-z~-]+)/,
  /(?<![\p{L}\p{M}\p{N}_&])(?<tag>[#＃][\p{L}\p{M}\p{N}_]*\p{L}[\p{L}\p{M}\p{N}_]*[#＃]?)/,
  /(?<![\p{L}\p{M}\p{N}_])(?<name>[@＠][\p{L}\p{M}\p{N}_]+)/,
].map(({ source }) => source).join('|'), 'giu');

const PUNCTUATION_BEHIND = /[.,;:!?')\]]+$/;

// [{ kind: 'text' | 'link' | 'tag' | 'name', text }, ...]; the texts joined are `text`.
export function splitText(text) {
  const parts = [];
  let done = 0;
  const add = (kind, from, to) => {
    if (to > from) parts.push({ kind, text: text.slice(from, to) });
    done = to;
  };
  for (const found of text.matchAll(PART)) {
    const { link, tag } = found.groups;
    const kind = link ? 'link' : tag ? 'tag' : 'name';
    let end = found.index + found[0].length;
    if (link) end -= PUNCTUATION_BEHIND.exec(link)?.[0].length ?? 0;
    if (found.index < done) continue;
    add('text', done, found.index);
    add(kind, found.index, end);
  }
  add('text', done, text.length);
  return parts;
}

const RIGHT_TO_LEFT = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u;

// The direction of the first letter outside of links, tags and mentions: a reply in Hebrew that begins with @noa is
// Hebrew. `auto`: there is no such letter.
export function directionOf(parts) {
  for (const { kind, text } of parts) {
    const letter = kind === 'text' && /\p{L}/u.exec(text)?.[0];
    if (letter) return RIGHT_TO_LEFT.test(letter) ? 'rtl' : 'ltr';
  }
  return 'auto';
}

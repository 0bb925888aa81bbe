// fault.js - turns the server's error message about a rule into sentences.
//
// The message contains an excerpt of the rule, which the page shows separately:
// "unknown operator 'lng:' at character 1: ^lng:en tea; to look for such a word, quote it".

const SHOWN = 24; // characters of the excerpt on each side of the error, as in filters/filter_fault.c
const PLACE = / at (?:character \d+|the end): /;

export const sentence = (text) => (text ? `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}` : '');

function excerptOf(characters, at) {
  const left = characters.slice(Math.max(0, at - SHOWN), at).join('');
  const right = characters.slice(at, at + SHOWN).join('');
  const excerpt = `${at > SHOWN ? '...' : ''}${left}^${right}${at + SHOWN < characters.length ? '...' : ''}`;
  return excerpt.replace(/[\0-\x1f\x7f]/g, ' ');
}

// `text` is the rule, `at` the position of the error in it, in characters.
export function describeFault(message, text, at) {
  const [what, rest] = [message.split(PLACE, 1)[0], message.split(PLACE)[1] ?? ''];
  const excerpt = excerptOf([...text], at);
  const hint = rest.startsWith(excerpt) ? rest.slice(excerpt.length).replace(/^; /, '') : '';
  return [what, hint].map(sentence).filter(Boolean).join(' ');
}

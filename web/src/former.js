// former.js - reads addresses of the previous version of the page: `#stream=filter&track=tea&language=en`.
//
// That version had a field for each member of a filter. Such an address is converted to a question.

const split = (text) => (text ?? '').split(/[,，]/).map((one) => one.trim()).filter(Boolean);
const anyOf = (items) => (items.length > 1 ? `(${items.join(' OR ')})` : items[0]);

// A term of `track` is a word of a rule; it is quoted where it would mean something else.
const termOf = (term) => (/^[-"]|[:()"~*]|^(AND|OR)$/.test(term) ? `"${term.replaceAll('"', ' ')}"` : term);
const phraseOf = (phrase) => phrase.split(/\s+/).map(termOf).join(' ');

// With the meaning of `follow`: docs/filters.md, section 7.
function userOf(user) {
  const byId = [`from:${user}`, `to:${user}`, `repost_of:${user}`];
  if (/^\d+$/.test(user)) return byId.join(' OR ');
  if (user.startsWith('@')) return `from:${user} OR ${user}`;
  return [...byId, `@${user}`].join(' OR ');
}

function boxesOf(locations) {
  const numbers = split(locations);
  return Array.from({ length: Math.floor(numbers.length / 4) }, (_, i) => `bounding_box:[${numbers.slice(4 * i, 4 * i + 4).join(' ')}]`);
}

// The question of such an address; null: it is not one.
export function formerQuestion(fragment) {
  const parameters = new URLSearchParams(fragment);
  const languages = split(parameters.get('language')).map((language) => `lang:${language}`);
  switch (parameters.get('stream')) {
    case 'home': return 'home:';
    case 'sample': return `sample:${parameters.get('percent') || 1}%`.replace('%%', '%');
    case 'firehose': return languages.join(' OR ');
    case 'filter': break;
    default: return null;
  }
  const rule = parameters.get('rule')?.trim();
  const items = [...split(parameters.get('track')).map(phraseOf), ...split(parameters.get('follow')).map(userOf),
    ...boxesOf(parameters.get('locations')), ...(rule ? [rule] : [])];
  if (items.length === 0) return null;
  if (languages.length === 0) return items.join(' OR ');
  return `${items.length > 1 || / OR /.test(items[0]) ? `(${items.join(' OR ')})` : items[0]} ${anyOf(languages)}`;
}

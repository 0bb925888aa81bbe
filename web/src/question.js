// question.js - converts the text of the search field to requests.
//
// A question is a rule (docs/filters.md, section 9), or empty for all posts. Three forms are not rules: `lang:ja`
// alone, which is the firehose in one language, `sample:1%`, and `home:`.

const LANGUAGE = /^lang:([a-z]{2,8}(?:-[a-z0-9]{1,8})*)$/i;
const SAMPLE = /^sample:(\d+(?:\.\d+)?)%?$/i;
const HOME = /^home:$/i;
const TERM = /^(-?)([a-z_]+):/i;

// { stream, parameters }: the stream that answers the question, and its parameters.
export function requestOf(question) {
  const text = question.trim();
  if (text === '') return { stream: 'firehose', parameters: {} };
  if (HOME.test(text)) return { stream: 'home', parameters: {} };
  const [, percent] = SAMPLE.exec(text) ?? [];
  if (percent) return { stream: 'sample', parameters: { percent } };
  const [, language] = LANGUAGE.exec(text) ?? [];
  if (language) return { stream: 'firehose', parameters: { language } };
  return { stream: 'filter', parameters: { rule: text } };
}

const pathOf = (path, parameters) => {
  const query = new URLSearchParams(parameters).toString();
  return query ? `${path}?${query}` : path;
};

export function postsPath(question, more) {
  const { stream, parameters } = requestOf(question);
  return pathOf(`/v1/stream/${stream}`, { ...parameters, ...more });
}

// null: a home stream has no counts.
export function countsPath(question, more, root = '/v1/stream/counts') {
  const { stream, parameters } = requestOf(question);
  return stream === 'home' ? null : pathOf(root, { ...parameters, ...more });
}

// Splits a rule into items at spaces outside of quotes, brackets and parentheses.
function splitItems(text) {
  const items = [];
  let item = '';
  let depth = 0;
  let isQuoted = false;
  for (const c of text) {
    if (c === '"') isQuoted = !isQuoted;
    else if (!isQuoted && '([{'.includes(c)) depth++;
    else if (!isQuoted && ')]}'.includes(c)) depth--;
    if (/\s/.test(c) && depth === 0 && !isQuoted) {
      if (item) items.push(item);
      item = '';
    } else {
      item += c;
    }
  }
  if (item) items.push(item);
  return items;
}

// The items by which a post may match, including those in parentheses, without negated ones.
export function termsOf(question) {
  const items = splitItems(question.trim()).filter((item) => item !== 'OR' && item !== 'AND' && !item.startsWith('-'));
  return [...new Set(items.flatMap((item) => (/^\(.*\)$/s.test(item) ? termsOf(item.slice(1, -1)) : item)))];
}

// Adds `term` to the question. There is at most one language, country and box: the new one.
export function narrow(question, term) {
  const items = splitItems(question.trim());
  if (items.length === 0 || requestOf(question).stream === 'home') return term;
  const [, , operator] = TERM.exec(term) ?? [];
  const isOneOf = ['lang', 'country', 'bounding_box'].includes(operator);
  const rest = items.filter((item) => item !== term && !(isOneOf && item.startsWith(`${operator}:`)));
  if (rest.includes('OR')) return `(${rest.join(' ')}) ${term}`;
  return [...rest, term].join(' ');
}

// Removes one item of the question.
export const leaveOut = (question, item) => splitItems(question).filter((one) => one !== item).join(' ');

export const boxTerm = (box) => `bounding_box:[${box.join(' ')}]`;

// The boxes in a question, as [west, south, east, north].
export function boxesOf(question) {
  return [...question.matchAll(/bounding_box:\[([^\]]*)\]/gi)]
    .map(([, numbers]) => numbers.split(/[\s,]+/).filter(Boolean).map(Number))
    .filter((box) => box.length === 4 && box.every(Number.isFinite));
}

// A short form for chips.
export function titleOf(question) {
  if (question === '') return 'All posts';
  return question.replace(/bounding_box:\[[^\]]*\]/gi, 'in a box');
}

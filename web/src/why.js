// why.js - which question, and which part of it, a post is there for.
//
// The server is asked: each part by itself, as a stream that begins before the post and ends with it. So what is said is what
// the filters do, not what a page makes of a text.

import { postsPath, requestOf, termsOf } from './question.js';

const PARTS = 8;

// Whether the stream had the post; null: nobody says.
async function asks(streams, question, id) {
  const path = postsPath(question, { since: String(BigInt(id) - 1n), until: id, max: '1', fields: 'text' });
  try {
    for await (const { type } of streams.read(path)) if (type === 'post') return true;
    return false;
  } catch {
    return null;
  }
}

// `questions`: [[letter, question], ...]. Resolves to [{ letter, question, terms }, ...] of those which the post is there for.
export async function why(streams, questions, { id }) {
  if (!/^\d{13,19}$/.test(id)) return []; // its producer gave it: no log has it
  const answers = await Promise.all(questions.map(async ([letter, question]) => {
    if (question === '' || requestOf(question).stream === 'home') return { letter, question, terms: [] };
    if (!await asks(streams, question, id)) return null;
    const parts = termsOf(question).slice(0, PARTS);
    if (parts.length < 2) return { letter, question, terms: [] };
    const terms = [];
    for (const part of parts) if (await asks(streams, part, id)) terms.push(part); // one by one: a connection has room for few
    return { letter, question, terms };
  }));
  return answers.filter(Boolean);
}

// why.js - finds the questions, and their parts, that a post matches.
//
// It asks the server: for each part it requests a stream that begins before the post and ends with it. So the result is
// what the filters do, not a guess from the text.

import { postsPath, requestOf, termsOf } from './question.js';

const PARTS = 8;

// Whether the stream contained the post; null: unknown.
async function asks(streams, question, id) {
  const path = postsPath(question, { since: String(BigInt(id) - 1n), until: id, max: '1', fields: 'text' });
  try {
    for await (const { type } of streams.read(path)) if (type === 'post') return true;
    return false;
  } catch {
    return null;
  }
}

// `questions`: [[letter, question], ...]. Resolves to [{ letter, question, terms }, ...] for those that the post
// matches.
export async function why(streams, questions, { id }) {
  if (!/^\d{13,19}$/.test(id)) return []; // the id is from its producer, so the post is in no log
  const answers = await Promise.all(questions.map(async ([letter, question]) => {
    if (question === '' || requestOf(question).stream === 'home') return { letter, question, terms: [] };
    if (!await asks(streams, question, id)) return null;
    const parts = termsOf(question).slice(0, PARTS);
    if (parts.length < 2) return { letter, question, terms: [] };
    const terms = [];
    for (const part of parts) if (await asks(streams, part, id)) terms.push(part); // one after the other, because a connection permits few streams
    return { letter, question, terms };
  }));
  return answers.filter(Boolean);
}

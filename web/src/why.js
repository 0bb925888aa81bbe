// why.js - which question, and which part of it, a post is there for.
//
// The server is asked: each part by itself, as a stream that begins before the post and ends with it. So what is said is what
// the filters do, not what a page makes of a text.

import { postsPath, requestOf, termsOf } from './question.js';

const PARTS = 8;

// Resolves when the stream has ended: whether it had the post; null: nobody says.
function asks(link, question, id) {
  return new Promise((resolve) => {
    let has = false;
    const key = link.open(postsPath(question, { since: String(BigInt(id) - 1n), until: id, max: '1', fields: 'text' }), (message) => {
      if (message.type === 'post') has = true;
      else if (message.type === 'refused' || message.type === 'disconnect') {
        link.close(key);
        resolve(message.type === 'refused' ? null : has);
      }
    });
  });
}

// `questions`: [[letter, question], ...]. Resolves to [{ letter, question, terms }, ...] of those which the post is there for.
export async function why(link, questions, { id }) {
  if (!/^\d{13,19}$/.test(id)) return []; // its producer gave it: no log has it
  const answers = await Promise.all(questions.map(async ([letter, question]) => {
    if (question === '' || requestOf(question).stream === 'home') return { letter, question, terms: [] };
    if (!await asks(link, question, id)) return null;
    const parts = termsOf(question).slice(0, PARTS);
    if (parts.length < 2) return { letter, question, terms: [] };
    const terms = [];
    for (const part of parts) if (await asks(link, part, id)) terms.push(part); // one by one: a connection has room for few
    return { letter, question, terms };
  }));
  return answers.filter(Boolean);
}

// told.mjs - what a client is given, and how it tells what it gets: a line of JSON each.
export const { URL, TOKEN } = process.env;

export function tell(what) {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}

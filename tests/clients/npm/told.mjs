// told.mjs - the parameters of a client, and the format of its output: one line of JSON per
// message.
export const { URL, TOKEN } = process.env;

export function tell(what) {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}

// As python_blocking.py, with the package that is built in the folder SLUICE_TYPESCRIPT.
import { pathToFileURL } from 'node:url';
import { text } from 'node:stream/consumers';

const { Client, Disconnected, Refused, SluiceError } = await import(pathToFileURL(`${process.env.SLUICE_TYPESCRIPT}/index.js`));
const plan = JSON.parse(await text(process.stdin));
let count = 0;
const client = new Client(plan.url, {
  token: plan.renews ? () => `token-${++count}` : 'token-1',
  maxTries: plan.max_tries ?? undefined,
  silenceMs: plan.silence_s * 1000,
  waitScale: 0.02,
});
let end = 'complete';
try {
  for await (const message of client[plan.stream](plan.parameters)) console.log(JSON.stringify(message));
} catch (error) {
  if (!(error instanceof SluiceError)) throw error;
  end = error instanceof Disconnected ? error.code : error instanceof Refused ? String(error.status) : error.name;
}
console.log(JSON.stringify({ end }));

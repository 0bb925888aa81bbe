// The SharedWorker: new SharedWorker(url of this file, { type: 'module' }).
import { Client } from './client.js';
import { Disconnected, Refused } from './errors.js';
import type { FromTab, ToTab } from './shared.js';

interface Listener { port: MessagePort; id: number }
interface Open { listeners: Listener[]; abort: AbortController }

const clients = new Map<string, Client>(), streams = new Map<string, Open>();
const ports: MessagePort[] = [];
let asking: ((token: string) => void) | undefined;

/** Of the tab that has come last, which is the one least likely to be gone. */
function askToken(): Promise<string> {
  return new Promise((resolve) => {
    asking = resolve;
    for (const port of ports.slice(-3)) port.postMessage({ op: 'token' } satisfies ToTab);
  });
}

function tell(open: Open, message: ToTab): void {
  for (const { port, id } of open.listeners) port.postMessage({ ...message, id });
}

function errorOf(error: unknown): ToTab['error'] {
  if (error instanceof Refused) return { name: 'Refused', args: [error.status, error.code, error.message, error.param] };
  if (error instanceof Disconnected) return { name: 'Disconnected', args: [error.code, error.message, error.cursor] };
  return { name: 'SluiceError', args: [String(error)] };
}

async function read(key: string, open: Open, { url, stream, parameters }: FromTab): Promise<void> {
  let client = clients.get(url!);
  if (!client) clients.set(url!, (client = new Client(url!, { token: askToken })));
  let end: ToTab = { op: 'end' };
  try {
    for await (const message of client[stream!](parameters!, { signal: open.abort.signal })) tell(open, { op: 'message', message });
  } catch (error) {
    end = { op: 'end', error: errorOf(error) };
  }
  if (streams.get(key) === open) streams.delete(key);
  tell(open, end);
}

function take(port: MessagePort, asked: FromTab): void {
  if (asked.op === 'token') {
    asking?.(asked.token!);
  } else if (asked.op === 'open') {
    const key = JSON.stringify([asked.url, asked.stream, asked.parameters]);
    const known = streams.get(key), open = known ?? { listeners: [], abort: new AbortController() };
    open.listeners.push({ port, id: asked.id! });
    if (known) return;
    streams.set(key, open);
    void read(key, open, asked);
  } else {
    for (const [key, open] of streams) {
      open.listeners = open.listeners.filter((listener) => listener.port !== port || listener.id !== asked.id);
      if (open.listeners.length > 0) continue;
      open.abort.abort();
      streams.delete(key);
    }
  }
}

(globalThis as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = ({ ports: [port] }) => {
  ports.push(port!);
  port!.onmessage = ({ data }) => take(port!, data);
};

// Bundles src/ into a folder of files that sluiced serves, each also compressed as .gz, and manifest.txt, which
// has a line for each file: the path of its URL, its name in the folder, `page` or `asset`, and its audience: all,
// or operators, if those have a port of their own. The API descriptions in docs/ are served as YAML, as JSON, and
// as the page at /docs. /licenses.txt contains the licences of all packages with code or data in the bundle.
//
//     node build.mjs FOLDER_WITH_NODE_MODULES OUTPUT_FOLDER
import { createRequire } from 'node:module';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { referencePage } from './reference.mjs';

const source = path.join(path.dirname(fileURLToPath(import.meta.url)), 'src');
const [packages, output] = process.argv.slice(2).map((folder) => path.resolve(folder));
const load = createRequire(path.join(packages, 'package.json'));
const { buildSync } = load('esbuild');
const { parse: parseYaml } = load('yaml');

const pages = { '/': 'index.html', '/status': 'status.html' };
// The page uses clients/typescript for its streams; the worker of that package is served as hub.js.
const hub = '../../clients/typescript/src/worker.ts';
const entries = ['dashboard.js', 'worker.js', 'status.js', 'common.css', 'dashboard.css', 'status.css', 'icon.svg', 'warning.svg', 'critical.svg'];

const bundle = buildSync({
  absWorkingDir: source,
  entryPoints: [...entries.map((entry) => ({ in: entry, out: path.parse(entry).name })), { in: hub, out: 'hub' }],
  nodePaths: [path.join(packages, 'node_modules')],
  outdir: output,
  entryNames: '[name]-[hash]',
  chunkNames: 'shared-[hash]',
  assetNames: '[name]-[hash]',
  publicPath: '/assets/',
  loader: { '.json': 'file', '.svg': 'copy' },
  bundle: true,
  splitting: true,
  format: 'esm',
  minify: true,
  target: ['es2022', 'chrome109', 'firefox115', 'safari16.4'],
  charset: 'utf8',
  legalComments: 'inline',
  metafile: true,
  write: false,
  logLevel: 'warning',
});

const files = bundle.outputFiles.map(({ path: name, contents }) => ({
  name: path.basename(name),
  url: `/assets/${path.basename(name)}`,
  kind: 'asset',
  contents,
}));

// Names such as /assets/common.css in a page are replaced by names with a hash.
const renamed = new Map();
for (const [name, { entryPoint }] of Object.entries(bundle.metafile.outputs)) {
  if (entryPoint === hub) renamed.set('/assets/hub.js', `/assets/${path.basename(name)}`);
  if (entries.includes(entryPoint)) renamed.set(`/assets/${entryPoint}`, `/assets/${path.basename(name)}`);
}
for (const entry of entries) {
  if (renamed.has(`/assets/${entry}`)) continue; // a copied file has no entry point in the metafile
  const { name, ext } = path.parse(entry);
  const file = files.find((one) => one.name.startsWith(`${name}-`) && one.name.endsWith(ext));
  renamed.set(`/assets/${entry}`, file.url);
}
const withAssets = (name, text) => Buffer.from(text.replace(/\/assets\/[\w.-]+/g, (asset) => {
  if (renamed.has(asset)) return renamed.get(asset);
  if (!files.some(({ url }) => url === asset)) throw new Error(`${name}: there is no ${asset}`);
  return asset;
}));

// The modules that a page's script imports are preloaded, so that they are not requested one after the other.
function withPreloads(text) {
  const asked = new Set();
  return text.replace(/^<script type="module" src="\/assets\/([\w.]+)"><\/script>$/gm, (script, entry) => {
    const { imports } = Object.values(bundle.metafile.outputs).find(({ entryPoint }) => entryPoint === entry);
    const links = imports.filter(({ kind, path: one }) => kind === 'import-statement' && !asked.has(one) && asked.add(one))
      .map((one) => `<link rel="modulepreload" href="/assets/${path.basename(one.path)}">\n`);
    return links.join('') + script;
  });
}

for (const [url, name] of Object.entries(pages)) {
  files.push({ name, url, kind: 'page', contents: Buffer.from(withPreloads(readFileSync(path.join(source, name), 'utf8'))) });
}
for (const file of files.filter(({ kind }) => kind === 'page')) file.contents = withAssets(file.name, file.contents.toString());

// The API descriptions, and the assets of their page, are for everybody.
const docs = path.resolve(source, '../../docs');
const descriptions = ['openapi', 'asyncapi'].map((name) => {
  const text = readFileSync(path.join(docs, `${name}.yaml`));
  const parsed = parseYaml(text.toString());
  files.push({ name: `${name}.yaml`, url: `/${name}.yaml`, kind: 'page', audience: 'all', contents: text });
  files.push({ name: `${name}.json`, url: `/${name}.json`, kind: 'page', audience: 'all', contents: Buffer.from(`${JSON.stringify(parsed)}\n`) });
  return parsed;
});
files.push({ name: 'docs.html', url: '/docs', kind: 'page', audience: 'all', contents: withAssets('docs.html', referencePage(...descriptions)) });
for (const file of files) {
  if (/^(common|icon)-/.test(file.name)) file.audience = 'all';
}
const icon = files.find(({ name }) => name.startsWith('icon-'));
files.push({ name: 'favicon.svg', url: '/favicon.ico', kind: 'page', audience: 'all', contents: icon.contents });

// The licences of all packages from which esbuild has read a file. A package without one is an error.
function notices() {
  const names = new Set();
  for (const input of Object.keys(bundle.metafile.inputs)) {
    const [, name] = /.*\/?node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input) ?? [];
    if (name) names.add(name);
  }
  return [...names].sort().map((name) => {
    const folder = path.join(packages, 'node_modules', name);
    const { version, license } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
    const file = readdirSync(folder).find((one) => /^(licen[cs]e|copying)/i.test(one));
    if (!file || !license) throw new Error(`${name}: which licence?`);
    return `${name} ${version} (${license})\n\n${readFileSync(path.join(folder, file), 'utf8').trim()}\n`;
  });
}
files.push({
  name: 'licenses.txt',
  url: '/licenses.txt',
  kind: 'page',
  audience: 'all',
  contents: Buffer.from(['These pages contain parts of the following packages.\n', ...notices()].join('\n\n')),
});

rmSync(output, { recursive: true, force: true });
mkdirSync(output, { recursive: true });
for (const { name, contents } of files) {
  writeFileSync(path.join(output, name), contents);
  writeFileSync(path.join(output, `${name}.gz`), gzipSync(contents, { level: 9 }));
}
files.sort((a, b) => (a.url < b.url ? -1 : 1));
writeFileSync(path.join(output, 'manifest.txt'),
  files.map(({ url, name, kind, audience = 'operators' }) => `${url}\t${name}\t${kind}\t${audience}\n`).join(''));

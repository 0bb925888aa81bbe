// Third-party code in the bundle must be served with its notices. This test determines the packages independently: it
// asks esbuild to bundle each source separately.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const source = path.join(path.dirname(fileURLToPath(import.meta.url)), '../src');
const build = process.env.SLUICE_WEB_BUILD;
const modules = path.join(build, 'node_modules');
const { buildSync } = createRequire(path.join(build, 'package.json'))('esbuild');
const served = readFileSync(path.join(build, 'dist/licenses.txt'), 'utf8');

const inputs = readdirSync(source).filter((name) => /\.(js|css)$/.test(name)).flatMap((name) => {
  const { metafile } = buildSync({
    absWorkingDir: source, entryPoints: [name], nodePaths: [modules], bundle: true, write: false, outdir: 'out',
    external: ['/assets/*'], loader: { '.json': 'file', '.svg': 'file' }, format: 'esm', metafile: true,
  });
  return Object.keys(metafile.inputs);
});
const bundled = new Set(inputs.filter((input) => input.includes('node_modules/'))
  .map((input) => input.slice(input.lastIndexOf('node_modules/') + 'node_modules/'.length).split('/'))
  .map(([first, second]) => (first.startsWith('@') ? `${first}/${second}` : first)));

test('every dependency of the pages is seen, tools are not', () => {
  const { dependencies } = JSON.parse(readFileSync(path.join(source, '../package.json'), 'utf8'));
  for (const name of Object.keys(dependencies)) {
    assert.equal(bundled.has(name), name !== 'esbuild' && name !== 'yaml', name);
  }
});

for (const name of bundled) {
  test(`the notice of ${name} is served, word for word`, () => {
    const { version, license } = JSON.parse(readFileSync(path.join(modules, name, 'package.json'), 'utf8'));
    const file = ['LICENSE', 'LICENSE.md', 'LICENSE.txt', 'LICENCE'].find((one) => existsSync(path.join(modules, name, one)));
    const text = readFileSync(path.join(modules, name, file), 'utf8').trim();
    assert.match(text, /copyright|©/i);
    assert.ok(served.includes(`\n${name} ${version} (${license})\n\n${text}\n`), served);
  });
}

test('nobody else is named', () => {
  assert.equal(served.match(/^\S+ \d+\.\d+\.\d+ \(.*\)$/gm).length, bundled.size);
});

test('it is one of the files that sluiced serves', () => {
  assert.match(readFileSync(path.join(build, 'dist/manifest.txt'), 'utf8'), /^\/licenses\.txt\tlicenses\.txt\tpage\tall$/m);
});

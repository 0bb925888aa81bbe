// The messages of streams as types, from docs/asyncapi.yaml.
//
//     node scripts/types.mjs FOLDER_WITH_NODE_MODULES FILE [--check]     check: fail if FILE has other types
import { createRequire } from 'node:module';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const [packages, output, check] = process.argv.slice(2);
const load = createRequire(path.resolve(packages, 'package.json'));
const { parse } = load('yaml');
const { compile } = load('json-schema-to-typescript');

const GIVEN = ['PostEvent', 'DeleteEvent', 'FollowEvent', 'UnfollowEvent', 'UserEvent', 'ReducedEvent', 'Gap', 'Warning',
  'Skipped', 'Counts', 'Trends'];

const all = parse(readFileSync(path.join(here, '../../../docs/asyncapi.yaml'), 'utf8')).components.schemas;
const text = JSON.stringify({ definitions: all }).replaceAll('#/components/schemas/', '#/definitions/');
const { definitions } = JSON.parse(text);
const schema = { title: 'Message', definitions, oneOf: GIVEN.filter((name) => definitions[name]).map((name) => ({ $ref: `#/definitions/${name}` })) };
const types = await compile(schema, 'Message', {
  bannerComment: '// Made of docs/asyncapi.yaml by scripts/types.mjs.',
  additionalProperties: true,
  style: { singleQuote: true, printWidth: 120 },
});
if (!check) writeFileSync(output, types);
else if (readFileSync(output, 'utf8') !== types) throw new Error(`${output} differs from docs/asyncapi.yaml: npm run types`);

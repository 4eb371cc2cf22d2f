// page.mjs loads modules of the page in Node, which takes a .js file for a
// module only where a package.json says so.
import {cpSync, mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';

const folder = mkdtempSync(join(tmpdir(), 'waybill-page-'));
cpSync(fileURLToPath(new URL('../page', import.meta.url)), folder, {recursive: true});
writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
process.on('exit', () => rmSync(folder, {recursive: true, force: true}));

/** load returns a module of the page. */
export const load = (name) => import(pathToFileURL(join(folder, name)));

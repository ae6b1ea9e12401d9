import { readdir, realpath, stat } from 'node:fs/promises';
import { join, relative, resolve, sep } from 'node:path';

/** Somebody asked for a folder that cannot be audited; the message says why, in words for them. */
export class TreeError extends Error {}

/**
 * The folder that is asked for, without symbolic links in its path. @throws TreeError unless it is a folder in `root`
 *
 * @param dir absolute, or relative to `root`.
 */
export async function findTree(root: string, dir: unknown): Promise<string> {
  if (typeof dir !== 'string' || dir === '') throw new TreeError('dir must be the path of a folder');
  const base = await realFolder(root, root);
  const asked = resolve(base, dir);
  const outside = new TreeError(`${dir} is outside of the folder that may be audited`);
  if (!lies(asked, base)) throw outside; // said before anything is looked at: a stranger cannot feel out the disk
  const tree = await realFolder(asked, dir);
  if (!lies(tree, base)) throw outside; // a link led out
  return tree;
}

/**
 * Every Markdown file of the tree, relative to it. Links to folders are not followed: they may lead in circles.
 * @throws TreeError when a folder in it cannot be listed
 */
export async function findMarkdown(tree: string): Promise<string[]> {
  const entries = await readdir(tree, { recursive: true, withFileTypes: true }).catch((error: Error) => {
    throw new TreeError(`the folder cannot be listed: ${error.message}`);
  });
  return entries
    .filter((entry) => /\.(md|markdown)$/i.test(entry.name) && (entry.isFile() || entry.isSymbolicLink()))
    .map((entry) => relative(tree, join(entry.parentPath, entry.name)))
    .sort();
}

function lies(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

async function realFolder(path: string, shown: string): Promise<string> {
  try {
    const real = await realpath(path);
    if ((await stat(real)).isDirectory()) return real;
  } catch {
    throw new TreeError(`there is no folder ${shown}`);
  }
  throw new TreeError(`${shown} is no folder`);
}

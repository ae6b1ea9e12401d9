import { lexer, type Token, walkTokens } from 'marked';

export interface Markdown {
  words: number;
  headings: number;
  /** Where links and images lead, as written. */
  links: string[];
}

const WORD = /[\p{L}\p{N}]+(?:['’_-][\p{L}\p{N}]+)*/gu;

/** Counts what a reader would see: prose and code in the line, not blocks of code, not markup. */
export function readMarkdown(text: string): Markdown {
  const found: Markdown = { words: 0, headings: 0, links: [] };
  walkTokens(lexer(text), (token: Token) => {
    if (token.type === 'heading') found.headings += 1;
    if (token.type === 'link' || token.type === 'image') found.links.push(token.href);
    // A text token with tokens of its own is only their wrapper: its words would count twice.
    const leaf = (token.type === 'text' && !token.tokens) || token.type === 'codespan';
    if (leaf) found.words += token.text.match(WORD)?.length ?? 0;
  });
  return found;
}

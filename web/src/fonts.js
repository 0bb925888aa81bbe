// fonts.js - detects scripts for which the system has no font.
//
// A page cannot include fonts for all scripts, but it can name the missing one. When the first post in a script
// arrives, one of its characters is drawn: without a font it looks like a character that does not exist.

const SCRIPTS = [
  [/\p{Script=Han}/u, '永', 'Chinese', 'fonts-noto-cjk'],
  [/[\p{Script=Hiragana}\p{Script=Katakana}]/u, 'あ', 'Japanese', 'fonts-noto-cjk'],
  [/\p{Script=Hangul}/u, '한', 'Korean', 'fonts-noto-cjk'],
  [/\p{Script=Devanagari}/u, 'क', 'Hindi', 'fonts-noto-core'],
  [/\p{Script=Arabic}/u, 'ع', 'Arabic', 'fonts-noto-core'],
  [/\p{Script=Hebrew}/u, 'א', 'Hebrew', 'fonts-noto-core'],
  [/\p{Script=Thai}/u, 'ก', 'Thai', 'fonts-noto-core'],
  [/\p{Script=Bengali}/u, 'ক', 'Bengali', 'fonts-noto-core'],
  [/\p{Script=Tamil}/u, 'க', 'Tamil', 'fonts-noto-core'],
  [/\p{Emoji_Presentation}/u, '🍅', 'emoji', 'fonts-noto-color-emoji'],
];
const NOBODYS = '\u{10fffd}'; // a private-use character, which no font has
const SIDE = 24;

let pen = null;

function picture(character) {
  pen ??= new OffscreenCanvas(SIDE, SIDE).getContext('2d', { willReadFrequently: true });
  pen.clearRect(0, 0, SIDE, SIDE);
  pen.font = '18px system-ui, sans-serif';
  pen.fillText(character, 2, 18);
  return pen.getImageData(0, 0, SIDE, SIDE).data.join();
}

const looked = new Map(); // character -> whether there is a font for it

const isDrawn = (character) => picture(character) !== picture(NOBODYS);

// { language, package } for the first script of `text` without a font; null: there are fonts for all.
export function missingFont(text) {
  for (const [script, character, language, font] of SCRIPTS) {
    if (!script.test(text)) continue;
    if (!looked.has(character)) looked.set(character, isDrawn(character));
    if (!looked.get(character)) return { language, package: font };
  }
  return null;
}

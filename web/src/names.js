// names.js - names of languages and countries, from the browser.

const names = (type) => {
  const known = new Intl.DisplayNames(undefined, { type, fallback: 'code' });
  return (code) => {
    try {
      return known.of(code);
    } catch {
      return code; // not a valid code
    }
  };
};

const language = names('language');
const country = names('region');

export const languageName = (tag) => (tag === 'und' ? 'unspecified' : language(tag));
export const countryName = (code) => (code === 'none' ? 'no country' : country(code));

// names.js - languages and countries as people call them; browsers know the names.

const names = (type) => {
  const known = new Intl.DisplayNames(undefined, { type, fallback: 'code' });
  return (code) => {
    try {
      return known.of(code);
    } catch {
      return code; // no code of its kind
    }
  };
};

const language = names('language');
const country = names('region');

export const languageName = (tag) => (tag === 'und' ? 'unspecified' : language(tag));
export const countryName = (code) => (code === 'none' ? 'no country' : country(code));
